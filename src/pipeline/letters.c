/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters: which sink takes the bad rows of which source or sink. It takes nothing else, and is fed on the
 * same lanes, so its barriers are those of whoever sends to it.
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
  return any ? connector_letters_schema(&plan->letters, err) : WEIR_OK;
}

weir_status plan_route_letters(pipe_plan *plan, const weir_config *config,
                               weir_error *err) {
  for (uint32_t i = 0; i < plan->n_sinks; i++) {
    pipe_sink *s = &plan->sinks[i];
    config_connector c = {0};
    if (!s->takes_letters) continue;
    BASE_TRY(config_connector_at(config, CONFIG_SINKS, i, &c, err));
    if (weir_options_given(connector_spec_options(s->spec), "from"))
      return config_option_error(
          config, &c, "from", err,
          "this sink takes dead letters, and then nothing else; remove 'from', or name "
          "another sink in 'on_bad_row'");
    s->from = base_calloc(plan->n_sources, sizeof(*s->from), err);
    s->from_names = base_calloc(plan->n_sources, sizeof(*s->from_names), err);
    if (!s->from || !s->from_names) return WEIR_E_NOMEM;
    for (uint32_t k = 0; k < plan->n_sources; k++) {
      const pipe_source *source = &plan->sources[k];
      if (source->letters != i) continue;
      s->from[s->n_from] = k;
      s->from_names[s->n_from++] = source->name;
      memset(s->fed + source->lane_0, 1, source->lanes);
    }
  }
  return WEIR_OK;
}
