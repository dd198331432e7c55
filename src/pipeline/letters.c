/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters: which sink takes the bad rows of which source or sink. It takes nothing else: those of sources come on
 * their lanes, those of a sink from each of its participants, and so do the barriers. So it seals after all of them.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

#define OPTION "on_bad_row.dead_letter"

/* The sink that the option names; PIPE_NONE: it is not given. */
static weir_status find_target(pipe_plan *plan, const weir_config *config, int32_t kind,
                               size_t i, const connector_spec *spec, uint32_t *out,
                               weir_error *err) {
  const char *name = weir_options_string(connector_spec_options(spec), OPTION);
  config_connector c = {0};
  *out = PIPE_NONE;
  if (!name) return WEIR_OK;
  for (uint32_t k = 0; k < plan->n_sinks; k++)
    if (strcmp(plan->sinks[k].name, name) == 0) *out = k;
  BASE_TRY(config_connector_at(config, kind, i, &c, err));
  if (*out != PIPE_NONE) {
    plan->sinks[*out].takes_letters = true;
    return WEIR_OK;
  }
  const char **names = base_calloc(plan->n_sinks, sizeof(*names), err);
  if (!names) return WEIR_E_NOMEM;
  for (size_t k = 0; k < plan->n_sinks; k++) names[k] = plan->sinks[k].name;
  const char *near = base_nearest_name(name, names, plan->n_sinks);
  free(names);
  return config_option_error(config, &c, OPTION, err, "there is no sink '%.64s'%s%s%s",
                             name, near ? "; did you mean '" : "", near ? near : "",
                             near ? "'?" : "");
}

static weir_status set_aside(pipe_plan *plan, const weir_config *config, size_t i,
                             weir_error *err) {
  config_connector c = {0};
  weir_error why = {0};
  if (!connector_source_set_aside(plan->sources[i].source, &why)) return WEIR_OK;
  BASE_TRY(config_connector_at(config, CONFIG_SOURCES, i, &c, err));
  return config_option_error(config, &c, OPTION, err, "%s", why.message);
}

/* Along the sinks that take letters of letters: back to the first one? */
static weir_status check_chain(const pipe_plan *plan, const weir_config *config,
                               size_t first, weir_error *err) {
  config_connector c = {0};
  uint32_t at = plan->sinks[first].letters;
  for (size_t n = 0; at != PIPE_NONE && at != first && n < plan->n_sinks; n++)
    at = plan->sinks[at].letters;
  if (at != first) return WEIR_OK;
  BASE_TRY(config_connector_at(config, CONFIG_SINKS, first, &c, err));
  return config_option_error(
      config, &c, OPTION, err, "%s; the last sink for bad rows must fail at its own",
      plan->sinks[first].letters == first ? "a sink cannot take its own bad rows"
                                          : "its bad rows would come back to it");
}

weir_status plan_find_letters(pipe_plan *plan, const weir_config *config,
                              weir_error *err) {
  bool any = false;
  for (size_t i = 0; i < plan->n_sources; i++) {
    pipe_source *s = &plan->sources[i];
    BASE_TRY(find_target(plan, config, CONFIG_SOURCES, i, s->spec, &s->letters, err));
    if (s->letters == PIPE_NONE) continue;
    BASE_TRY(set_aside(plan, config, i, err));
    any = true;
  }
  for (size_t i = 0; i < plan->n_sinks; i++) {
    pipe_sink *s = &plan->sinks[i];
    BASE_TRY(find_target(plan, config, CONFIG_SINKS, i, s->spec, &s->letters, err));
    any |= s->letters != PIPE_NONE;
  }
  for (size_t i = 0; i < plan->n_sinks; i++) BASE_TRY(check_chain(plan, config, i, err));
  return any ? connector_letters_schema(&plan->letters, err) : WEIR_OK;
}

static void add_from(const pipe_plan *plan, pipe_sink *s, uint32_t source) {
  for (size_t i = 0; i < s->n_from; i++)
    if (s->from[i] == source) return;
  s->from[s->n_from] = source;
  s->from_names[s->n_from++] = plan->sources[source].name;
}

static weir_status prepare_from(pipe_plan *plan, const weir_config *config, size_t i,
                                weir_error *err) {
  pipe_sink *s = &plan->sinks[i];
  config_connector c = {0};
  BASE_TRY(config_connector_at(config, CONFIG_SINKS, i, &c, err));
  if (weir_options_given(connector_spec_options(s->spec), "from"))
    return config_option_error(
        config, &c, "from", err,
        "this sink takes dead letters, and then nothing else; remove 'from', or name "
        "another sink in 'on_bad_row'");
  s->from = base_calloc(plan->n_sources, sizeof(*s->from), err);
  s->from_names = base_calloc(plan->n_sources, sizeof(*s->from_names), err);
  return s->from && s->from_names ? WEIR_OK : WEIR_E_NOMEM;
}

weir_status plan_route_letters(pipe_plan *plan, const weir_config *config,
                               weir_error *err) {
  for (size_t i = 0; i < plan->n_sinks; i++)
    if (plan->sinks[i].takes_letters) BASE_TRY(prepare_from(plan, config, i, err));
  for (uint32_t i = 0; i < plan->n_sources; i++) {
    const pipe_source *source = &plan->sources[i];
    if (source->letters == PIPE_NONE) continue;
    pipe_sink *to = &plan->sinks[source->letters];
    add_from(plan, to, i);
    memset(to->fed + source->lane_0, 1, source->lanes);
  }
  /* Letters of letters: as many times as such a chain may be long. */
  for (size_t n = 0; n < plan->n_sinks; n++)
    for (size_t i = 0; i < plan->n_sinks; i++) {
      const pipe_sink *s = &plan->sinks[i];
      for (size_t k = 0; s->letters != PIPE_NONE && k < s->n_from; k++)
        add_from(plan, &plan->sinks[s->letters], s->from[k]);
    }
  return WEIR_OK;
}

uint32_t plan_letter_feeders(const pipe_plan *plan, size_t sink, size_t end) {
  uint32_t n = 0;
  for (size_t i = 0; i < end; i++)
    if (plan->sinks[i].letters == sink) n += plan->sinks[i].writers;
  return n;
}
