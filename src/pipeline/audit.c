/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify and clean: what stands at the targets, beside what the store knows.
 *
 * Verify reads the store, then the target, then the store again, so that a live run may go on meanwhile: the
 * target is at least where the first reading saw it, and at most where the second has decided.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "pipeline/pipeline.h"

#define AUDIT_LISTED 1000 /* findings of one kind in a document */
#define AUDIT_HOUR (3600 * BASE_NS_PER_S)

typedef struct audit_published {
  weir_cursor cursor;
  uint64_t rows;
} audit_published;

/* One sink under examination. */
typedef struct audit_sink {
  pipe_sink *sink;
  weir_ledger ledger;
  weir_commit_attempt *decided;
  weir_commit_entry *entries;
  weir_abort_entry *open;
  uint64_t *resolved;
  weir_verified verified;
  base_buf published; /* audit_published */
  weir_status failed; /* of a callback */
  yyjson_mut_doc *doc;
  yyjson_mut_val *faults, *orphans, *unknown;
  uint64_t n_faults, n_orphans, orphan_bytes;
  bool
      disagrees; /* whose the target is, or where it stands: nothing may be removed there */
  char first[600];
} audit_sink;

typedef struct audit {
  pipe_plan plan;
  weir_store *store;
  weir_store_state *before, *after; /* `after` may be NULL: nothing can have changed */
  audit_sink *sinks;
  yyjson_mut_doc *doc;
  yyjson_mut_val *root;
} audit;

/* ---- the store ------------------------------------------------------------------------------------- */

static const weir_store_sink *sink_in(const weir_store_sink *v, size_t n,
                                      const char *id) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(v[i].sink_id, id) == 0) return &v[i];
  return NULL;
}

static const weir_store_sink *part_of(const weir_store_state *state, uint64_t attempt,
                                      const char *id) {
  for (size_t i = 0; state && i < state->n_attempts; i++) {
    const weir_store_attempt *a = &state->attempts[i];
    if (a->attempt == attempt && a->state == WEIR_ATTEMPT_COMMIT)
      return sink_in(a->sinks, a->n_sinks, id);
  }
  return NULL;
}

/* The sink's rows up to and with that attempt, as the store decided them. */
static bool rows_until(const weir_store_state *state, uint64_t attempt, const char *id,
                       uint64_t *rows) {
  const weir_store_sink *part = part_of(state, attempt, id);
  if (!part && state) {
    part = sink_in(state->decided, state->n_decided, id);
    if (part && part->cursor.checkpoint != attempt) part = NULL;
  }
  if (part) *rows = part->rows;
  return part != NULL;
}

/* ---- the ledger -------------------------------------------------------------------------------------- */

static void add_decided(audit_sink *s, const weir_store_state *state,
                        const weir_store_attempt *a, size_t *used) {
  const weir_store_sink *part = sink_in(a->sinks, a->n_sinks, s->sink->name);
  if (!part || weir_store_resolved(state, part->sink_id, a->attempt)) return;
  weir_commit_attempt *out = &s->decided[s->ledger.n_decided++];
  out->cursor = part->cursor;
  out->entries = &s->entries[*used];
  for (size_t i = 0; i < a->n_descriptors; i++) {
    const weir_store_entry *e = &a->descriptors[i];
    if (strcmp(e->sink_id, s->sink->name) != 0) continue;
    s->entries[(*used)++] =
        (weir_commit_entry){e->participant_id, e->present, e->data, e->size};
    out->n_entries++;
  }
}

static void add_open(audit_sink *s, const weir_store_attempt *a) {
  size_t before = s->ledger.n_open;
  for (size_t i = 0; i < a->n_intents; i++) {
    const weir_store_entry *e = &a->intents[i];
    if (strcmp(e->sink_id, s->sink->name) != 0) continue;
    s->open[s->ledger.n_open++] =
        (weir_abort_entry){a->attempt, e->participant_id, e->present, e->data, e->size};
  }
  if (s->ledger.n_open == before && a->state == WEIR_ATTEMPT_RESERVED)
    s->open[s->ledger.n_open++] = (weir_abort_entry){.checkpoint = a->attempt};
}

static weir_status make_ledger(audit *a, audit_sink *s, weir_error *err) {
  const weir_store_state *state = a->before;
  size_t descriptors = 0, intents = 0, used = 0, n = state ? state->n_attempts : 0;
  for (size_t i = 0; i < n; i++) {
    descriptors += state->attempts[i].n_descriptors;
    intents += state->attempts[i].n_intents + 1;
  }
  s->decided = base_calloc(n + 1, sizeof(*s->decided), err);
  s->entries = base_calloc(descriptors + 1, sizeof(*s->entries), err);
  s->open = base_calloc(intents + 1, sizeof(*s->open), err);
  s->resolved = base_calloc((state ? state->n_bindings : 0) + 1, sizeof(uint64_t), err);
  if (!s->decided || !s->entries || !s->open || !s->resolved) return WEIR_E_NOMEM;
  s->ledger = (weir_ledger){.struct_size = sizeof(s->ledger),
                            .ns = &s->sink->ns,
                            .decided = s->decided,
                            .open = s->open,
                            .resolved = s->resolved};
  s->ledger.n_resolved = pipeline_resolved_attempts(state, s->sink->name, s->resolved);
  for (size_t i = 0; i < n; i++) {
    if (state->attempts[i].state == WEIR_ATTEMPT_COMMIT)
      add_decided(s, state, &state->attempts[i], &used);
    else
      add_open(s, &state->attempts[i]);
  }
  return WEIR_OK;
}

/* ---- what the hooks tell ------------------------------------------------------------------------------ */

static void on_published(void *ctx, const weir_cursor *attempt, uint64_t rows) {
  audit_sink *s = ctx;
  audit_published p = {*attempt, rows};
  if (!s->failed) s->failed = base_buf_append(&s->published, &p, sizeof(p), NULL);
}

static void add_fault(audit_sink *s, const char *kind, uint64_t checkpoint,
                      const char *artifact, const char *text) {
  /* A foreign target's text is a sentence of its own. */
  const char *between = !artifact ? "" : strcmp(kind, "foreign") == 0 ? ": " : " ";
  if (!s->n_faults++)
    snprintf(s->first, sizeof(s->first), "%s%s%s", artifact ? artifact : "", between,
             text);
  if (s->n_faults > AUDIT_LISTED) return;
  yyjson_mut_val *v = yyjson_mut_arr_add_obj(s->doc, s->faults);
  yyjson_mut_obj_add_str(s->doc, v, "kind", kind);
  yyjson_mut_obj_add_uint(s->doc, v, "checkpoint", checkpoint);
  if (artifact)
    yyjson_mut_obj_add_strcpy(s->doc, v, "artifact", artifact);
  else
    yyjson_mut_obj_add_null(s->doc, v, "artifact");
  yyjson_mut_obj_add_strcpy(s->doc, v, "text", text);
}

static void on_fault(void *ctx, const weir_finding *f) {
  audit_sink *s = ctx;
  const char *kind = f->kind == WEIR_FOUND_MISSING   ? "missing"
                     : f->kind == WEIR_FOUND_FOREIGN ? "foreign"
                                                     : "changed";
  if (f->kind == WEIR_FOUND_FOREIGN) s->disagrees = true;
  add_fault(s, kind, f->checkpoint, f->artifact, f->text ? f->text : "");
}

static void on_orphan(void *ctx, const weir_finding *f) {
  audit_sink *s = ctx;
  bool orphan = f->kind == WEIR_FOUND_ORPHAN;
  yyjson_mut_val *list = orphan ? s->orphans : s->unknown;
  if (orphan) {
    s->n_orphans++;
    s->orphan_bytes += f->bytes;
  }
  if (!list || yyjson_mut_arr_size(list) >= AUDIT_LISTED) return;
  yyjson_mut_val *v = yyjson_mut_arr_add_obj(s->doc, list);
  yyjson_mut_obj_add_strcpy(s->doc, v, "artifact", f->artifact);
  if (orphan) {
    yyjson_mut_obj_add_uint(s->doc, v, "checkpoint", f->checkpoint);
    yyjson_mut_obj_add_uint(s->doc, v, "bytes", f->bytes);
    yyjson_mut_obj_add_sint(s->doc, v, "age_seconds", f->age_ns / BASE_NS_PER_S);
  } else {
    yyjson_mut_obj_add_strcpy(s->doc, v, "text", f->text ? f->text : "");
  }
}

/* ---- comparing ------------------------------------------------------------------------------------------ */

static void cursor_fault(audit_sink *s, uint64_t checkpoint, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

static void cursor_fault(audit_sink *s, uint64_t checkpoint, const char *fmt, ...) {
  char text[500];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  s->disagrees = true;
  add_fault(s, "cursor", checkpoint, NULL, text);
}

static void compare_cursor(const audit *a, audit_sink *s) {
  const char *id = s->sink->name;
  const weir_store_state *now = a->after ? a->after : a->before;
  const weir_store_sink *seen = NULL, *decided = NULL, *part = NULL;
  uint64_t at = s->verified.cursor.checkpoint;
  if (a->before) seen = sink_in(a->before->seen, a->before->n_seen, id);
  if (now) decided = sink_in(now->decided, now->n_decided, id);
  if (!at && seen && seen->cursor.checkpoint) {
    cursor_fault(s, seen->cursor.checkpoint,
                 "the target has no cursor, but the store saw epoch %" PRIu64
                 " there: it was removed, or put back to an earlier time",
                 seen->cursor.checkpoint);
  } else if (seen && at < seen->cursor.checkpoint) {
    cursor_fault(s, at,
                 "the target stands at epoch %" PRIu64
                 ", but the store saw epoch %" PRIu64
                 " there: it was put back to an earlier time",
                 at, seen->cursor.checkpoint);
  } else if (at && (!decided || at > decided->cursor.checkpoint)) {
    cursor_fault(s, at,
                 "the target stands at epoch %" PRIu64
                 ", but the store has decided no more than epoch %" PRIu64
                 ": a copy of the state folder has published there, or the state folder "
                 "was put back to an earlier time",
                 at, decided ? decided->cursor.checkpoint : 0);
  }
  if (!at || s->disagrees) return;
  part = part_of(a->before, at, id);
  if (!part) part = part_of(a->after, at, id);
  if (!part && seen && seen->cursor.checkpoint == at) part = seen;
  if (part && !weir_cursor_equal(&part->cursor, &s->verified.cursor))
    cursor_fault(s, at,
                 "epoch %" PRIu64
                 " at the target is not the one that the store has decided: another copy "
                 "of the state folder has published its own",
                 at);
}

static void rows_fault(audit_sink *s, uint64_t checkpoint, const char *what,
                       uint64_t there, uint64_t here) {
  char text[200];
  snprintf(text, sizeof(text),
           "%s %" PRIu64 " has %" PRIu64 " rows at the target and %" PRIu64
           " in the store",
           what, checkpoint, there, here);
  add_fault(s, "rows", checkpoint, NULL, text);
}

/* Rows of the attempts between two that the target has a record of, which people have resolved. */
static uint64_t resolved_rows(const audit *a, const audit_sink *s, uint64_t after,
                              uint64_t before) {
  uint64_t rows = 0;
  for (size_t i = 0; a->before && i < a->before->n_bindings; i++) {
    yyjson_doc *doc = pipeline_read_resolution(&a->before->bindings[i]);
    yyjson_val *root = yyjson_doc_get_root(doc);
    uint64_t attempt = yyjson_get_uint(yyjson_obj_get(root, "attempt"));
    if (yyjson_equals_str(yyjson_obj_get(root, "sink"), s->sink->name) &&
        attempt > after && attempt < before)
      rows += yyjson_get_uint(yyjson_obj_get(root, "rows"));
    yyjson_doc_free(doc);
  }
  return rows;
}

/* Epoch by epoch where the store still has two in a row, in sum where the target knows all of them. */
static void compare_rows(const audit *a, audit_sink *s, yyjson_mut_val *out) {
  const audit_published *v = (const audit_published *)s->published.data;
  size_t n = s->published.size / sizeof(*v);
  uint64_t sum = 0, compared = 0, since = 0, all = 0, resolved = 0;
  bool any = false, whole = s->verified.checked & WEIR_CHECKED_ALL_ROWS;
  for (size_t i = 0; i < n; i++) {
    uint64_t upto = 0, before = 0;
    uint64_t gap =
        resolved_rows(a, s, i ? v[i - 1].cursor.checkpoint : 0, v[i].cursor.checkpoint);
    sum += v[i].rows;
    resolved += gap;
    if (!i || !rows_until(a->before, v[i].cursor.checkpoint, s->sink->name, &upto) ||
        !rows_until(a->before, v[i - 1].cursor.checkpoint, s->sink->name, &before))
      continue;
    if (!any) since = v[i - 1].cursor.checkpoint;
    any = true;
    compared += v[i].rows;
    if (v[i].rows != upto - before - gap)
      rows_fault(s, v[i].cursor.checkpoint, "epoch", v[i].rows, upto - before - gap);
  }
  uint64_t at = s->verified.cursor.checkpoint;
  if (whole && n && v[n - 1].cursor.checkpoint == at &&
      (rows_until(a->before, at, s->sink->name, &all) ||
       rows_until(a->after, at, s->sink->name, &all))) {
    any = true;
    since = 0;
    compared = sum;
    if (sum != all - resolved)
      rows_fault(s, at, "everything up to epoch", sum, all - resolved);
  }
  if (!any && at) s->verified.checked &= ~(uint32_t)WEIR_CHECKED_ROWS;
  if (!(s->verified.checked & WEIR_CHECKED_ROWS)) return;
  yyjson_mut_obj_add_uint(s->doc, out, "rows", compared);
  yyjson_mut_obj_add_uint(s->doc, out, "rows_since", since);
}

/* ---- one sink --------------------------------------------------------------------------------------------- */

static weir_status verify_sink(audit *a, audit_sink *s, bool deep, weir_error *err) {
  weir_call *call = weir_call_new(-1);
  weir_verify ask = {.struct_size = sizeof(ask),
                     .ledger = &s->ledger,
                     .deep = deep,
                     .ctx = s,
                     .published = on_published,
                     .found = on_fault};
  if (!call) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  s->faults = yyjson_mut_arr(a->doc);
  weir_status status =
      connector_sink_verify(s->sink->first[0], call, &ask, &s->verified, err);
  weir_call_free(call);
  if (!status && s->failed) status = weir_error_set(err, s->failed, 0, "out of memory");
  return status;
}

static weir_status sweep_sink(audit_sink *s, uint32_t flags, int64_t older_than_ns,
                              weir_swept *out, weir_error *err) {
  weir_call *call = weir_call_new(-1);
  weir_sweep ask = {.struct_size = sizeof(ask),
                    .ledger = &s->ledger,
                    .cursor = s->verified.cursor,
                    .dry_run = flags & WEIR_CLEAN_DRY_RUN ? 1 : 0,
                    .all_namespaces = flags & WEIR_CLEAN_ALL ? 1 : 0,
                    .older_than_ns = older_than_ns,
                    .ctx = s,
                    .found = on_orphan};
  if (!call) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  weir_status status = connector_sink_sweep(s->sink->first[0], call, &ask, out, err);
  weir_call_free(call);
  return status;
}

/* Decided, with rows for this sink, and beyond what the target showed. */
static uint64_t pending(const audit *a, const audit_sink *s) {
  const weir_store_state *state = a->after ? a->after : a->before;
  uint64_t n = 0;
  for (size_t i = 0; state && i < state->n_attempts; i++) {
    const weir_store_sink *part =
        part_of(state, state->attempts[i].attempt, s->sink->name);
    n += part && part->has_rows &&
         part->cursor.checkpoint > s->verified.cursor.checkpoint &&
         !weir_store_resolved(state, part->sink_id, part->cursor.checkpoint);
  }
  return n;
}

/* ---- the pipeline -------------------------------------------------------------------------------------------- */

static void audit_done(audit *a) {
  for (size_t i = 0; a->sinks && i < a->plan.n_sinks; i++) {
    free(a->sinks[i].decided);
    free(a->sinks[i].entries);
    free(a->sinks[i].open);
    free(a->sinks[i].resolved);
    base_buf_done(&a->sinks[i].published);
  }
  free(a->sinks);
  yyjson_mut_doc_free(a->doc);
  weir_store_state_free(a->before);
  weir_store_state_free(a->after);
  weir_store_close(a->store);
  plan_done(&a->plan);
}

/* `deployment` NULL: to none. */
weir_status pipeline_bind_one(const pipe_plan *plan, pipe_sink *s,
                              const uint8_t *deployment, weir_error *err) {
  s->ns = (weir_namespace){
      .struct_size = sizeof(s->ns), .pipeline = plan->top.pipeline, .sink_id = s->name};
  BASE_TRY(pipeline_identify(plan->top.pipeline, s->ns.identity, err));
  if (deployment) memcpy(s->ns.deployment, deployment, WEIR_UUID_SIZE);
  return connector_sink_bind(s->first[0], &s->ns, err);
}

/* Sinks bound to this deployment, or of a lost state folder to none. */
static weir_status bind_all(audit *a, weir_error *err) {
  a->sinks = base_calloc(a->plan.n_sinks, sizeof(*a->sinks), err);
  if (!a->sinks) return WEIR_E_NOMEM;
  BASE_TRY(pipeline_json_new(&a->doc, &a->root, err));
  yyjson_mut_obj_add_strcpy(a->doc, a->root, "pipeline", a->plan.top.pipeline);
  if (a->before)
    pipeline_json_deployment(a->doc, a->root, a->before->deployment);
  else
    yyjson_mut_obj_add_null(a->doc, a->root, "deployment");
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    pipe_sink *s = &a->plan.sinks[i];
    BASE_TRY(
        pipeline_bind_one(&a->plan, s, a->before ? a->before->deployment : NULL, err));
    a->sinks[i].sink = s;
    a->sinks[i].doc = a->doc;
    BASE_TRY(make_ledger(a, &a->sinks[i], err));
  }
  return WEIR_OK;
}

static weir_status verify_all(audit *a, bool deep, weir_error *err) {
  for (size_t i = 0; i < a->plan.n_sinks; i++)
    BASE_TRY(verify_sink(a, &a->sinks[i], deep, err));
  if (a->before && !a->store) BASE_TRY(pipeline_read_store(&a->plan.top, &a->after, err));
  if (a->after &&
      memcmp(a->before->deployment, a->after->deployment, WEIR_UUID_SIZE) != 0)
    return weir_error_set(err, WEIR_E_CONFLICT, 0,
                          "the checkpoint store was replaced meanwhile; look again");
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    audit_sink *s = &a->sinks[i];
    if (s->verified.checked & WEIR_CHECKED_CURSOR)
      compare_cursor(a, s);
    else if (s->n_faults)
      s->disagrees = true;
  }
  return WEIR_OK;
}

static weir_status disagreement(const audit *a, const char *what, weir_error *err) {
  uint64_t n = 0;
  const audit_sink *first = NULL;
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    n += a->sinks[i].n_faults;
    if (!first && a->sinks[i].n_faults) first = &a->sinks[i];
  }
  if (!first) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CONFLICT, 0, "%s: sink %s: %s%s", what,
                        first->sink->name, first->first, n > 1 ? "; and more" : "");
}

/* ---- verify ------------------------------------------------------------------------------------------------------ */

static void add_checked(const audit_sink *s, yyjson_mut_val *out) {
  static const struct {
    uint32_t bit;
    const char *name;
  } names[] = {{WEIR_CHECKED_CURSOR, "cursor"},
               {WEIR_CHECKED_ARTIFACTS, "artifacts"},
               {WEIR_CHECKED_CONTENT, "content"},
               {WEIR_CHECKED_ROWS, "rows"}};
  yyjson_mut_val *list = yyjson_mut_obj_add_arr(s->doc, out, "checked");
  for (size_t i = 0; i < BASE_COUNT(names); i++)
    if (s->verified.checked & names[i].bit)
      yyjson_mut_arr_add_str(s->doc, list, names[i].name);
}

static weir_status add_verified(audit *a, audit_sink *s, yyjson_mut_val *sinks,
                                weir_error *err) {
  const weir_store_state *now = a->after ? a->after : a->before;
  const weir_store_sink *decided =
      now ? sink_in(now->decided, now->n_decided, s->sink->name) : NULL;
  yyjson_mut_val *v = yyjson_mut_obj_add_obj(a->doc, sinks, s->sink->name);
  if (s->verified.checked & WEIR_CHECKED_ROWS) compare_rows(a, s, v);
  add_checked(s, v);
  pipeline_json_cursor(a->doc, v, &s->verified.cursor);
  yyjson_mut_obj_add_uint(a->doc, v, "decided", decided ? decided->cursor.checkpoint : 0);
  yyjson_mut_obj_add_uint(a->doc, v, "pending",
                          s->verified.checked && !s->disagrees ? pending(a, s) : 0);
  yyjson_mut_obj_add_uint(a->doc, v, "artifacts", s->verified.artifacts);
  yyjson_mut_obj_add_uint(a->doc, v, "bytes", s->verified.bytes);
  if (!s->disagrees && s->verified.checked & WEIR_CHECKED_CURSOR) {
    weir_swept swept = {0};
    BASE_TRY(sweep_sink(s, WEIR_CLEAN_DRY_RUN, 0, &swept, err));
    yyjson_mut_val *orphans =
        swept.looked ? yyjson_mut_obj_add_obj(a->doc, v, "orphans") : NULL;
    if (orphans) {
      yyjson_mut_obj_add_uint(a->doc, orphans, "artifacts", s->n_orphans);
      yyjson_mut_obj_add_uint(a->doc, orphans, "bytes", s->orphan_bytes);
    }
  }
  yyjson_mut_obj_add_uint(a->doc, v, "fault_count", s->n_faults);
  yyjson_mut_obj_add_val(a->doc, v, "faults", s->faults);
  return WEIR_OK;
}

static weir_status verify_document(audit *a, weir_bytes *json, weir_error *err) {
  uint64_t verified = 0;
  yyjson_mut_val *sinks = yyjson_mut_obj(a->doc);
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    BASE_TRY(add_verified(a, &a->sinks[i], sinks, err));
    verified += a->sinks[i].verified.checked != 0;
  }
  yyjson_mut_obj_add_strcpy(a->doc, a->root, "state", a->plan.top.state);
  yyjson_mut_obj_add_bool(a->doc, a->root, "agreed", !disagreement(a, "", NULL));
  yyjson_mut_obj_add_uint(a->doc, a->root, "verified", verified);
  yyjson_mut_obj_add_val(a->doc, a->root, "sinks", sinks);
  pipeline_json_resolved(a->doc, a->root, a->before);
  return pipeline_json_finish(a->doc, json, err);
}

weir_status weir_pipeline_verify(const weir_config *config, uint32_t flags,
                                 weir_bytes *json, weir_error *err) {
  audit a = {0};
  base_log silent = {0};
  weir_error why = {0};
  weir_status status = plan_init(&a.plan, config, &silent, err);
  if (!status) {
    status = pipeline_read_store(&a.plan.top, &a.before, &why);
    if (status == WEIR_E_NOT_FOUND)
      status = WEIR_OK;
    else if (status && err)
      *err = why;
  }
  if (!status) status = bind_all(&a, err);
  if (!status) status = verify_all(&a, flags & WEIR_VERIFY_DEEP, err);
  if (!status) status = verify_document(&a, json, err);
  if (!status)
    status = disagreement(&a,
                          a.before ? "the targets do not agree with the store"
                          : a.plan.top.store
                              ? "the checkpoint store has nothing of this pipeline, but "
                                "the targets have"
                              : "there is no state folder, and the targets have "
                                "something of this pipeline",
                          err);
  if (status && a.plan.host) status = plan_error(&a.plan, status, err);
  audit_done(&a);
  return status;
}

/* ---- clean -------------------------------------------------------------------------------------------------------- */

/* The store as it stands, under the lease unless nothing is to be removed. */
static weir_status own_state(audit *a, bool dry_run, weir_error *err) {
  weir_error why = {0};
  weir_status status = pipeline_read_store(&a->plan.top, &a->before, &why);
  if (status == WEIR_E_NOT_FOUND)
    return weir_error_set(
        err, WEIR_E_CONFLICT, 0,
        "there is no %s %s, and without it nobody can tell what an epoch owns: "
        "nothing was removed; bring it back, or run the pipeline first",
        a->plan.top.store ? "pipeline of that name in" : "state folder",
        a->plan.top.store ? "the checkpoint store" : a->plan.top.state);
  if (status) {
    if (err) *err = why;
    return status;
  }
  if (dry_run) return WEIR_OK;
  BASE_TRY(pipeline_take_store(&a->plan.top, false, &a->store, err));
  weir_store_state_free(a->before);
  a->before = NULL;
  return weir_store_load(a->store, &a->before, err);
}

static weir_status clean_all(audit *a, uint32_t flags, int64_t older_than_ns,
                             weir_bytes *json, weir_error *err) {
  for (size_t i = 0; i < a->plan.n_sinks; i++)
    if (a->sinks[i].disagrees)
      return disagreement(a,
                          "nothing was removed, since the targets do not agree with the "
                          "store",
                          err);
  yyjson_mut_obj_add_bool(a->doc, a->root, "dry_run", flags & WEIR_CLEAN_DRY_RUN);
  yyjson_mut_obj_add_bool(a->doc, a->root, "all", flags & WEIR_CLEAN_ALL);
  yyjson_mut_obj_add_sint(a->doc, a->root, "older_than_seconds",
                          older_than_ns / BASE_NS_PER_S);
  yyjson_mut_val *sinks = yyjson_mut_obj_add_obj(a->doc, a->root, "sinks");
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    audit_sink *s = &a->sinks[i];
    weir_swept swept = {0};
    s->orphans = yyjson_mut_arr(a->doc);
    s->unknown = yyjson_mut_arr(a->doc);
    if (s->verified.checked & WEIR_CHECKED_CURSOR)
      BASE_TRY(sweep_sink(s, flags, older_than_ns, &swept, err));
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(a->doc, sinks, s->sink->name);
    yyjson_mut_obj_add_bool(a->doc, v, "looked", swept.looked);
    yyjson_mut_obj_add_uint(a->doc, v, "artifacts", s->n_orphans);
    yyjson_mut_obj_add_uint(a->doc, v, "bytes", s->orphan_bytes);
    yyjson_mut_obj_add_uint(a->doc, v, "young", swept.young);
    yyjson_mut_obj_add_val(a->doc, v, "orphans", s->orphans);
    yyjson_mut_obj_add_val(a->doc, v, "unknown", s->unknown);
  }
  return pipeline_json_finish(a->doc, json, err);
}

weir_status weir_pipeline_clean(const weir_config *config, uint32_t flags,
                                int64_t older_than_ns, weir_bytes *json,
                                weir_error *err) {
  audit a = {0};
  base_log silent = {0};
  if (older_than_ns < 0) older_than_ns = AUDIT_HOUR;
  if (flags & WEIR_CLEAN_ALL && older_than_ns < 24 * AUDIT_HOUR)
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "what other deployments left is removed only once it is 24 hours "
        "old or older: add --older-than 24h, or more");
  weir_status status = plan_init(&a.plan, config, &silent, err);
  if (!status) status = own_state(&a, flags & WEIR_CLEAN_DRY_RUN, err);
  if (!status) status = bind_all(&a, err);
  if (!status) status = verify_all(&a, false, err);
  if (!status) status = clean_all(&a, flags, older_than_ns, json, err);
  if (status && a.plan.host) status = plan_error(&a.plan, status, err);
  audit_done(&a);
  return status;
}
