/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: may this pipeline run with the guarantee it asks for? Pure functions on contracts and
 * schemas; nothing outside is touched. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connector/connector.h"

const char *connector_guarantee_name(int32_t guarantee) {
  static const char *const names[] = {"best_effort", "at_least_once", "exactly_once"};
  return guarantee >= 0 && guarantee < (int32_t)BASE_COUNT(names) ? names[guarantee]
                                                                  : "unknown";
}

static const char *const admission_replay[] = {"ephemeral", "replayable",
                                               "commit_coupled"};
static const char *const admission_consistency[] = {"ephemeral", "durable_at_least_once",
                                                    "committable"};
static const char *const admission_topology[] = {"singleton", "multi_writer",
                                                 "node_local"};
static const char *const admission_input[] = {"append", "keyed", "changelog"};

/* One sink with one of its sources. source is NULL while the sink alone is looked at. */
typedef struct admission_pair {
  const connector_admission *in;
  const connector_admission_sink *sink;
  const connector_admission_source *source;
  weir_error err; /* the first refusal */
} admission_pair;

static weir_status refuse(admission_pair *pair, weir_status code, const char *fmt, ...)
    WEIR_PRINTF(3, 4);
static weir_status refuse(admission_pair *pair, weir_status code, const char *fmt, ...) {
  char text[800];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  return weir_error_set(&pair->err, code, 0, "sink %s: %s", pair->sink->name, text);
}

static bool admission_keyed(const connector_admission_sink *sink) {
  return sink->key && sink->key->release;
}

/* What the pair can keep, whatever is asked for. */
static int32_t admission_delivers(const connector_admission_sink *sink,
                                  const connector_admission_source *source) {
  if (source->contract.replay == WEIR_SOURCE_EPHEMERAL) return WEIR_BEST_EFFORT;
  switch (sink->contract.consistency) {
    case WEIR_COMMITTABLE:
      return WEIR_EXACTLY_ONCE;
    case WEIR_DURABLE_AT_LEAST_ONCE:
      return WEIR_AT_LEAST_ONCE;
    default:
      return WEIR_BEST_EFFORT;
  }
}

/* ---- first pass: the sink alone ------------------------------------------------------------------- */

static weir_status admit_committer(admission_pair *pair) {
  const connector_admission_sink *s = pair->sink;
  bool committable = s->contract.consistency == WEIR_COMMITTABLE;
  if (committable && !s->has_committer) {
    return refuse(
        pair, WEIR_E_ADMISSION,
        "connector %s says that it is committable but has no committer, so nobody could "
        "publish its epochs",
        s->type);
  }
  if (committable && pair->in->store_remote && !pair->in->staging_shared &&
      s->contract.staging == WEIR_STAGING_NODE) {
    return refuse(
        pair, WEIR_E_ADMISSION,
        "what it prepares lies on this machine only, but with 'store' another machine "
        "may "
        "take over and would not find it; say 'shared: true' where the sink has that "
        "option and its place is the same on every machine, name such a folder as "
        "'spool' "
        "where it has not, or leave 'store' out");
  }
  if (committable && s->flush_interval_given) {
    return refuse(pair, WEIR_E_INVALID_CONFIG,
                  "'flush_interval' has no effect on a committable sink, which flushes "
                  "at checkpoints; "
                  "remove it, or set 'checkpoint.interval'");
  }
  return WEIR_OK;
}

static weir_status admit_writers(admission_pair *pair) {
  const connector_admission_sink *s = pair->sink;
  if (s->writers == 0)
    return refuse(pair, WEIR_E_INVALID_CONFIG, "'writers' must be at least 1");
  if (s->writers == 1 || s->contract.topology == WEIR_MULTI_WRITER) return WEIR_OK;
  return refuse(pair, WEIR_E_ADMISSION,
                "'writers: %u', but connector %s takes %s; set 'writers: 1'", s->writers,
                s->type,
                s->contract.topology == WEIR_SINGLETON ? "a single writer"
                                                       : "one writer a machine");
}

static weir_status admit_key(admission_pair *pair) {
  const connector_admission_sink *s = pair->sink;
  bool keyed = admission_keyed(s);
  if (s->contract.input == WEIR_INPUT_KEYED && !keyed) {
    return refuse(pair, WEIR_E_ADMISSION,
                  "connector %s says that its input is keyed but names no key", s->type);
  }
  if (s->contract.input != WEIR_INPUT_KEYED && keyed) {
    return refuse(pair, WEIR_E_ADMISSION,
                  "connector %s names a key but says that its input is %s", s->type,
                  admission_input[s->contract.input]);
  }
  if (keyed && s->takes_letters) {
    return refuse(
        pair, WEIR_E_INVALID_CONFIG,
        "it applies rows by key, and dead letters have none; set 'mode: append', "
        "or name another sink in 'on_bad_row'");
  }
  if (keyed && s->n_from > 1) {
    return refuse(pair, WEIR_E_INVALID_CONFIG,
                  "it applies rows by key and has %zu sources in 'from', between which "
                  "no order is kept; "
                  "name one",
                  s->n_from);
  }
  if (keyed && s->changelog_as_rows) {
    return refuse(pair, WEIR_E_INVALID_CONFIG,
                  "'changelog: as_rows' is for sinks that append; this one applies rows "
                  "by key, remove it");
  }
  return WEIR_OK;
}

static weir_status admit_sink(admission_pair *pair) {
  const connector_admission_sink *s = pair->sink;
  if (s->n_from == 0)
    return refuse(pair, WEIR_E_INVALID_CONFIG, "'from' names no source");
  BASE_TRY(admit_committer(pair));
  BASE_TRY(admit_writers(pair));
  return admit_key(pair);
}

/* ---- first pass: the sink with a source ------------------------------------------------------------ */

static weir_status admit_guarantee(admission_pair *pair) {
  int32_t asked = pair->in->guarantee;
  const connector_admission_sink *s = pair->sink;
  const connector_admission_source *r = pair->source;
  int32_t delivers = admission_delivers(s, r);
  if (delivers >= asked) return WEIR_OK;
  if (r->contract.replay == WEIR_SOURCE_EPHEMERAL) {
    return refuse(
        pair, WEIR_E_ADMISSION,
        "%s needs a source that can be read again from a position, but source %s (%s) is "
        "ephemeral; read from something replayable, or set 'guarantee: best_effort'",
        connector_guarantee_name(asked), r->name, r->type);
  }
  return refuse(
      pair, WEIR_E_ADMISSION,
      "%s needs a sink that is %s, but this one (%s) is %s; use another sink, or set "
      "'guarantee: %s'",
      connector_guarantee_name(asked),
      asked == WEIR_EXACTLY_ONCE ? "committable" : "at least durable_at_least_once",
      s->type, admission_consistency[s->contract.consistency],
      connector_guarantee_name(delivers));
}

static weir_status admit_changes(admission_pair *pair) {
  const connector_admission_sink *s = pair->sink;
  const connector_admission_source *r = pair->source;
  if (!r->contract.keyed || s->contract.input != WEIR_INPUT_APPEND ||
      s->changelog_as_rows || s->takes_letters) {
    return WEIR_OK;
  }
  return refuse(pair, WEIR_E_ADMISSION,
                "source %s sends changes by key ('_op'), which connector %s cannot apply "
                "as configured; "
                "set a 'key' where it has one, or 'changelog: as_rows' to append every "
                "change as a row",
                r->name, s->type);
}

/* ---- second pass: schemas --------------------------------------------------------------------------- */

static const struct ArrowSchema *admission_column(const struct ArrowSchema *schema,
                                                  const char *name) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (strcmp(schema->children[i]->name, name) == 0) return schema->children[i];
  }
  return NULL;
}

static weir_status admit_op_column(admission_pair *pair) {
  const struct ArrowSchema *schema = pair->source->schema;
  const struct ArrowSchema *last =
      schema->n_children ? schema->children[schema->n_children - 1] : NULL;
  if (last && strcmp(last->name, "_op") == 0 && strcmp(last->format, "u") == 0)
    return WEIR_OK;
  return refuse(pair, WEIR_E_SCHEMA,
                "source %s says that it sends changes by key, but its last column is not "
                "a utf8 '_op'",
                pair->source->name);
}

static weir_status admit_key_columns(admission_pair *pair) {
  const weir_names *key = pair->sink->key;
  for (size_t i = 0; i < key->n; i++) {
    if (strcmp(key->v[i], "_op") == 0) {
      return refuse(pair, WEIR_E_SCHEMA,
                    "'_op' says what happens to a key, it cannot be part of it");
    }
    if (!admission_column(pair->source->schema, key->v[i])) {
      return refuse(pair, WEIR_E_SCHEMA,
                    "key column '%s' is not among the columns of source %s", key->v[i],
                    pair->source->name);
    }
    if (pair->sink->binding && !admission_column(pair->sink->binding, key->v[i])) {
      return refuse(pair, WEIR_E_SCHEMA,
                    "key column '%s' is not among the columns of the target", key->v[i]);
    }
  }
  return WEIR_OK;
}

static weir_status admit_letters(admission_pair *pair) {
  const connector_admission_sink *s = pair->sink;
  char what[200];
  if (!s->binding || !s->letters) return WEIR_OK;
  snprintf(what, sizeof(what), "sink %.80s: dead letters do not fit it", s->name);
  return weir_schema_check(s->binding, s->letters, what, &pair->err);
}

static weir_status admit_schema(admission_pair *pair) {
  if (pair->sink->takes_letters) return admit_letters(pair);
  if (!pair->source->schema) return WEIR_OK;
  if (pair->source->contract.keyed) BASE_TRY(admit_op_column(pair));
  if (admission_keyed(pair->sink)) BASE_TRY(admit_key_columns(pair));
  if (!pair->sink->binding) return WEIR_OK;
  char what[200];
  snprintf(what, sizeof(what), "sink %.80s: source %.80s does not fit it",
           pair->sink->name, pair->source->name);
  return weir_schema_check(pair->sink->binding, pair->source->schema, what, &pair->err);
}

/* ---- the table ---------------------------------------------------------------------------------------- */

static void admission_explain(connector_admission_row *row,
                              const connector_admission_sink *sink,
                              const connector_admission_source *source) {
  const char *r = source->name, *s = sink->name;
  bool good = source->sets_aside || sink->sets_aside;
  const char *kind = sink->takes_letters ? "bad " : good ? "good " : "";
  bool ephemeral = source->contract.replay == WEIR_SOURCE_EPHEMERAL;
  char *out = row->crash;
  size_t size = sizeof(row->crash);
  if (row->delivers == WEIR_EXACTLY_ONCE) {
    snprintf(out, size,
             "after a kill -9, every %srow of %.60s is in %.60s exactly once: the open "
             "epoch is dropped and "
             "read again, a decided one is published",
             kind, r, s);
  } else if (row->delivers == WEIR_AT_LEAST_ONCE) {
    snprintf(out, size,
             "after a kill -9, no %srow of %.60s is missing in %.60s, but rows since the "
             "last checkpoint may "
             "be there twice",
             kind, r, s);
  } else if (ephemeral && sink->contract.consistency == WEIR_COMMITTABLE) {
    snprintf(out, size,
             "after a kill -9, what %.60s sent since the last checkpoint is lost; what "
             "was decided before "
             "is in %.60s once",
             r, s);
  } else if (ephemeral) {
    snprintf(
        out, size,
        "after a kill -9, what %.60s sent and %.60s had not yet made durable is lost", r,
        s);
  } else {
    snprintf(out, size,
             "after a kill -9, rows of %.60s since the last checkpoint are sent to %.60s "
             "again, and what "
             "that one had not made durable before is lost",
             r, s);
  }
}

static void admission_fill_row(connector_admission_row *row, const admission_pair *pair,
                               weir_status status, const weir_error *why) {
  const connector_admission_sink *s = pair->sink;
  const connector_admission_source *r = pair->source;
  *row = (connector_admission_row){
      .source = r->name,
      .sink = s->name,
      .replay = admission_replay[r->contract.replay],
      .consistency = admission_consistency[s->contract.consistency],
      .topology = admission_topology[s->contract.topology],
      .input = admission_input[s->contract.input],
      .writers = s->writers,
      .delivers = admission_delivers(s, r),
      .admitted = !status};
  if (status) snprintf(row->reason, sizeof(row->reason), "%.511s", why->message);
  admission_explain(row, s, r);
}

static const connector_admission_source *admission_source(const connector_admission *in,
                                                          const char *name) {
  for (size_t i = 0; i < in->n_sources; i++) {
    if (strcmp(in->sources[i].name, name) == 0) return &in->sources[i];
  }
  return NULL;
}

static weir_status admission_from(admission_pair *pair, size_t at) {
  const char *const *from = pair->sink->from;
  for (size_t i = 0; i < at; i++) {
    if (strcmp(from[i], from[at]) == 0) {
      return refuse(pair, WEIR_E_INVALID_CONFIG, "'from' names source %s twice",
                    from[at]);
    }
  }
  pair->source = admission_source(pair->in, from[at]);
  if (pair->source) return WEIR_OK;
  return refuse(pair, WEIR_E_INVALID_CONFIG,
                "'from' names source %s, which is not in the pipeline", from[at]);
}

/* The first refusal is kept; the table still gets every line. */
static void admission_keep(weir_status *first, weir_status status,
                           const admission_pair *pair, weir_error *err) {
  if (*first || !status) return;
  *first = status;
  if (err) *err = pair->err;
}

weir_status connector_admit(const connector_admission *in,
                            connector_admission_table *table, weir_error *err) {
  weir_status first = WEIR_OK;
  connector_admission_row *rows = NULL;
  size_t n_rows = 0, room = 0;
  for (size_t i = 0; i < in->n_sinks; i++) room += in->sinks[i].n_from;
  rows = base_calloc(room, sizeof(*rows), err);
  if (!rows) return WEIR_E_NOMEM;
  for (size_t i = 0; i < in->n_sinks; i++) {
    admission_pair pair = {.in = in, .sink = &in->sinks[i]};
    weir_status alone = admit_sink(&pair);
    weir_error alone_err = pair.err;
    admission_keep(&first, alone, &pair, err);
    for (size_t j = 0; j < pair.sink->n_from; j++) {
      weir_status status = admission_from(&pair, j);
      admission_keep(&first, status, &pair, err);
      if (status) continue;
      if (!alone) {
        status = admit_guarantee(&pair);
        if (!status) status = admit_changes(&pair);
        if (!status) status = admit_schema(&pair);
        admission_keep(&first, status, &pair, err);
      }
      admission_fill_row(&rows[n_rows++], &pair, alone ? alone : status,
                         alone ? &alone_err : &pair.err);
    }
  }
  if (table) {
    *table = (connector_admission_table){.rows = rows, .n_rows = n_rows};
  } else {
    free(rows);
  }
  return first;
}

void connector_admission_table_done(connector_admission_table *table) {
  free(table->rows);
  *table = (connector_admission_table){0};
}
