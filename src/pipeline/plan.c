/* SPDX-License-Identifier: Apache-2.0 */
/* From a config to sources and sinks with contracts. No I/O beyond secret files. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

static weir_status add_notes(pipe_plan *plan, const weir_options *options,
                             weir_error *err) {
  for (size_t i = 0; i < config_options_notes(options); i++) {
    const char *note = config_options_note(options, i);
    BASE_TRY(base_buf_append(&plan->notes, note, strlen(note) + 1, err));
  }
  return WEIR_OK;
}

static int64_t given_or(const weir_options *options, const char *name, int64_t other) {
  return weir_options_given(options, name) ? weir_options_int(options, name) : other;
}

static weir_status plan_source(pipe_plan *plan, const weir_config *config, size_t i,
                               weir_error *err) {
  pipe_source *s = &plan->sources[i];
  config_connector c = {0};
  const weir_source_ops *ops = NULL;
  weir_options *options = NULL;
  weir_error found = {0};
  BASE_TRY(config_connector_at(config, CONFIG_SOURCES, i, &c, err));
  char *base = config_path(config, ".", err);
  if (!base) return WEIR_E_NOMEM;
  weir_status status = connector_find_source(c.type, base, &ops, &found);
  free(base);
  if (status) return config_option_error(config, &c, "type", err, "%s", found.message);
  BASE_TRY(config_options(config, &c, ops->options, &options, err));
  s->name = base_strdup(c.name, err);
  status = s->name ? add_notes(plan, options, err) : WEIR_E_NOMEM;
  s->push = strcmp(ops->name, "push") == 0;
  s->lanes = s->push ? (uint32_t)weir_options_int(options, "lanes") : 1;
  s->lane_0 = plan->n_lanes;
  plan->n_lanes += s->lanes;
  s->open_timeout_ns = weir_options_int(options, "timeouts.open");
  s->read_timeout_ns = given_or(options, "timeouts.read", plan->top.timeout_ns);
  s->letters = PIPE_NONE;
  if (!status)
    status = connector_spec_new_source(ops, plan->host, options, &s->spec, err);
  if (status) {
    weir_options_free(options);
    return status;
  }
  BASE_TRY(connector_source_new(s->spec, 1, &s->source, err));
  return connector_source_contract(s->source, &s->contract, err);
}

/* `from`: the only source, or names of sources. */
static weir_status plan_from(pipe_plan *plan, const weir_config *config,
                             const config_connector *c, pipe_sink *s, weir_error *err) {
  const weir_options *options = connector_spec_options(s->spec);
  size_t n = weir_options_count(options, "from");
  if (!n && plan->n_sources != 1)
    return config_option_error(config, c, "from", err,
                               "there are %zu sources; name the ones that feed this sink",
                               plan->n_sources);
  s->n_from = n ? n : 1;
  s->from = base_calloc(s->n_from, sizeof(*s->from), err);
  s->from_names = base_calloc(s->n_from, sizeof(*s->from_names), err);
  if (!s->from || !s->from_names) return WEIR_E_NOMEM;
  for (size_t i = 0; i < s->n_from; i++) {
    const char *name = n ? weir_options_item(options, "from", i) : plan->sources[0].name;
    size_t k = 0;
    while (k < plan->n_sources && strcmp(plan->sources[k].name, name) != 0) k++;
    if (k == plan->n_sources) {
      const char **names = base_calloc(plan->n_sources, sizeof(*names), err);
      if (!names) return WEIR_E_NOMEM;
      for (size_t j = 0; j < plan->n_sources; j++) names[j] = plan->sources[j].name;
      const char *near = base_nearest_name(name, names, plan->n_sources);
      free(names);
      return config_option_error(config, c, "from", err, "there is no source '%s'%s%s%s",
                                 name, near ? "; did you mean '" : "", near ? near : "",
                                 near ? "'?" : "");
    }
    for (size_t j = 0; j < i; j++)
      if (s->from[j] == k)
        return config_option_error(config, c, "from", err, "source '%s' is named twice",
                                   name);
    s->from[i] = (uint32_t)k;
    s->from_names[i] = plan->sources[k].name;
  }
  return WEIR_OK;
}

/* What a connector suggests, in ns. */
static int64_t suggested(uint64_t ms) {
  return ms < INT64_MAX / BASE_NS_PER_MS ? (int64_t)ms * BASE_NS_PER_MS : BASE_FOREVER;
}

static void plan_times(const pipe_plan *plan, pipe_sink *s) {
  const weir_options *o = connector_spec_options(s->spec);
  int64_t other = plan->top.timeout_ns;
  s->timeouts = (task_timeouts){
      .open = weir_options_int(o, "timeouts.open"),
      .begin = given_or(o, "timeouts.begin", other),
      .write = given_or(o, "write_timeout",
                        suggested(connector_sink_write_timeout_ms(s->first[0]))),
      .pre_commit = given_or(o, "timeouts.pre_commit", other),
      .commit = given_or(o, "timeouts.commit", other),
      .rollback = given_or(o, "timeouts.rollback", other),
      .clean = given_or(o, "timeouts.clean", other),
      .flush = given_or(o, "timeouts.flush", other),
      .close = given_or(o, "timeouts.close", other)};
  s->flush_interval_given = weir_options_given(o, "flush_interval");
  s->flush_interval_ns = given_or(
      o, "flush_interval", suggested(connector_sink_flush_interval_ms(s->first[0])));
}

static weir_status note_no_claims(pipe_plan *plan, const pipe_sink *s, weir_error *err) {
  BASE_TRY(base_buf_printf(
      &plan->notes, err,
      "%s: connector %s keeps no deployment claims at its target, so two first starts at "
      "one "
      "moment with two state folders would each deliver everything there; start it once "
      "before anything else can",
      connector_spec_where(s->spec), connector_spec_type(s->spec)));
  return base_buf_append_byte(&plan->notes, 0, err);
}

static weir_status plan_sink(pipe_plan *plan, const weir_config *config, size_t i,
                             weir_error *err) {
  pipe_sink *s = &plan->sinks[i];
  config_connector c = {0};
  const weir_sink_ops *ops = NULL;
  weir_options *options = NULL;
  weir_error found = {0};
  BASE_TRY(config_connector_at(config, CONFIG_SINKS, i, &c, err));
  char *base = config_path(config, ".", err);
  if (!base) return WEIR_E_NOMEM;
  weir_status status = connector_find_sink(c.type, base, &ops, &found);
  free(base);
  if (status) return config_option_error(config, &c, "type", err, "%s", found.message);
  BASE_TRY(config_options(config, &c, ops->options, &options, err));
  s->name = base_strdup(c.name, err);
  status = s->name ? add_notes(plan, options, err) : WEIR_E_NOMEM;
  s->writers = (uint32_t)weir_options_int(options, "writers");
  s->changelog_as_rows = weir_options_given(options, "changelog");
  s->letters = PIPE_NONE;
  s->has_committer = connector_has_committer(ops);
  if (!status) status = connector_spec_new_sink(ops, plan->host, options, &s->spec, err);
  if (status) {
    weir_options_free(options);
    return status;
  }
  s->first = base_calloc(s->writers, sizeof(*s->first), err);
  s->actors = base_calloc(s->writers, sizeof(*s->actors), err);
  s->generations = base_calloc(s->writers, sizeof(*s->generations), err);
  s->fed = base_calloc(plan->n_lanes, 1, err);
  if (!s->first || !s->actors || !s->generations || !s->fed) return WEIR_E_NOMEM;
  for (uint32_t p = 1; p <= s->writers; p++) {
    BASE_TRY(connector_sink_new(s->spec, p, 1, &s->first[p - 1], err));
    s->generations[p - 1] = 1;
    BASE_TRY(connector_sink_contract(s->first[p - 1], &s->contract, err));
  }
  plan_times(plan, s);
  if (s->contract.consistency == WEIR_COMMITTABLE && !s->contract.claims)
    BASE_TRY(note_no_claims(plan, s, err));
  return connector_sink_keyed_mutation_key(s->first[0], &s->key, err);
}

static weir_status plan_feeds(pipe_plan *plan, const weir_config *config,
                              weir_error *err) {
  BASE_TRY(plan_find_letters(plan, config, err));
  for (size_t i = 0; i < plan->n_sinks; i++) {
    pipe_sink *s = &plan->sinks[i];
    config_connector c = {0};
    if (s->takes_letters) continue;
    BASE_TRY(config_connector_at(config, CONFIG_SINKS, i, &c, err));
    BASE_TRY(plan_from(plan, config, &c, s, err));
    for (size_t k = 0; k < s->n_from; k++) {
      const pipe_source *source = &plan->sources[s->from[k]];
      memset(s->fed + source->lane_0, 1, source->lanes);
    }
  }
  return plan->letters ? plan_route_letters(plan, config, err) : WEIR_OK;
}

static weir_status unused_sources(const pipe_plan *plan, weir_error *err) {
  for (size_t i = 0; i < plan->n_sources; i++) {
    bool used = false;
    for (size_t k = 0; k < plan->n_sinks && !used; k++)
      used = !plan->sinks[k].takes_letters && plan->sinks[k].fed[plan->sources[i].lane_0];
    if (!used)
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "pipeline %s: source %s feeds no sink; name it in the `from` of one, or "
          "remove it",
          plan->top.pipeline, plan->sources[i].name);
  }
  return WEIR_OK;
}

weir_status plan_init(pipe_plan *plan, const weir_config *config, const base_log *log,
                      weir_error *err) {
  BASE_TRY(config_top_init(config, &plan->top, err));
  plan->host = connector_host_new(log, err);
  if (!plan->host) return WEIR_E_NOMEM;
  const config_top *top = &plan->top;
  BASE_TRY(connector_host_spool(plan->host, top->spool, top->spool_given,
                                (uint64_t)top->spool_limit, (uint64_t)top->spool_keep,
                                err));
  plan->n_sources = config_connector_count(config, CONFIG_SOURCES);
  plan->n_sinks = config_connector_count(config, CONFIG_SINKS);
  plan->sources = base_calloc(plan->n_sources, sizeof(*plan->sources), err);
  plan->sinks = base_calloc(plan->n_sinks, sizeof(*plan->sinks), err);
  if (!plan->sources || !plan->sinks) return WEIR_E_NOMEM;
  for (size_t i = 0; i < plan->n_sources; i++)
    BASE_TRY(plan_source(plan, config, i, err));
  for (size_t i = 0; i < plan->n_sinks; i++) BASE_TRY(plan_sink(plan, config, i, err));
  BASE_TRY(plan_feeds(plan, config, err));
  return unused_sources(plan, err);
}

weir_schema *plan_input(const pipe_plan *plan, const pipe_sink *s) {
  return s->takes_letters ? plan->letters : plan->sources[s->from[0]].schema;
}

void plan_done(pipe_plan *plan) {
  for (size_t i = 0; plan->sources && i < plan->n_sources; i++) {
    pipe_source *s = &plan->sources[i];
    connector_source_unref(s->source);
    weir_schema_unref(s->schema);
    if (s->spec) connector_spec_unref(s->spec);
    free(s->name);
  }
  for (size_t i = 0; plan->sinks && i < plan->n_sinks; i++) {
    pipe_sink *s = &plan->sinks[i];
    for (uint32_t p = 0; s->first && p < s->writers; p++)
      connector_sink_unref(s->first[p]);
    free(s->first);
    free(s->actors);
    free(s->generations);
    free(s->fed);
    free(s->from);
    free(s->from_names);
    weir_names_release(&s->key);
    weir_binding_done(&s->binding);
    if (s->spec) connector_spec_unref(s->spec);
    free(s->name);
  }
  free(plan->sources);
  free(plan->sinks);
  if (plan->host) {
    connector_host_mute(plan->host);
    connector_host_unref(plan->host);
  }
  weir_schema_unref(plan->letters);
  base_buf_done(&plan->notes);
  config_top_done(&plan->top);
}

weir_status plan_admit(const pipe_plan *plan, bool bound,
                       connector_admission_table *table, weir_error *err) {
  weir_status status = WEIR_E_NOMEM;
  connector_admission_source *sources =
      base_calloc(plan->n_sources, sizeof(*sources), err);
  connector_admission_sink *sinks = base_calloc(plan->n_sinks, sizeof(*sinks), err);
  if (!sources || !sinks) goto out;
  for (size_t i = 0; i < plan->n_sources; i++) {
    const pipe_source *s = &plan->sources[i];
    sources[i] = (connector_admission_source){
        .name = s->name,
        .type = connector_spec_type(s->spec),
        .contract = s->contract,
        .sets_aside = s->letters != PIPE_NONE,
        .schema = bound ? weir_schema_arrow(s->schema) : NULL};
  }
  for (size_t i = 0; i < plan->n_sinks; i++) {
    const pipe_sink *s = &plan->sinks[i];
    sinks[i] = (connector_admission_sink){
        .name = s->name,
        .type = connector_spec_type(s->spec),
        .contract = s->contract,
        .has_committer = s->has_committer,
        .writers = s->writers,
        .from = s->from_names,
        .n_from = s->n_from,
        .key = &s->key,
        .takes_letters = s->takes_letters,
        .sets_aside = s->letters != PIPE_NONE,
        .letters = bound && s->takes_letters ? weir_schema_arrow(plan->letters) : NULL,
        .changelog_as_rows = s->changelog_as_rows,
        .flush_interval_given = s->flush_interval_given,
        .binding = bound ? weir_schema_arrow(s->binding.schema) : NULL};
  }
  connector_admission in = {.guarantee = plan->top.guarantee,
                            .store_remote = plan->top.store != NULL,
                            .sources = sources,
                            .n_sources = plan->n_sources,
                            .sinks = sinks,
                            .n_sinks = plan->n_sinks};
  status = connector_admit(&in, table, err);
out:
  free(sources);
  free(sinks);
  return status;
}
