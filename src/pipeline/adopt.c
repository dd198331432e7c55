/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt: a checkpoint store that was lost is made anew of what the cursor records at the targets say, under
 * the deployment that owns them. A1 to A3 of docs/protocol.md, which says why nothing is lost or doubled by it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "pipeline/pipeline.h"

/* What one sink's target says under one deployment. */
typedef struct adopt_cursor {
  bool keeps; /* it is committable */
  weir_cursor cursor;
  yyjson_doc *positions; /* NULL: the record carries none */
  uint64_t rows, bytes;
} adopt_cursor;

typedef struct adopt {
  const weir_config *config;
  pipe_plan plan;          /* bound to no deployment: to find cursors of any */
  base_buf *found;         /* weir_found_cursor, one buffer a sink */
  weir_store_state *state; /* NULL: there is none, or none that can be read */
  weir_store *store;
  bool exists; /* something is where the store is kept */
  uint8_t deployment[WEIR_UUID_SIZE];
  adopt_cursor *cursors; /* one a sink, of that deployment */
  size_t newest;         /* index of a sink that stands at the last attempt */
  weir_store_sink *sinks;
  weir_store_position *positions;
  weir_bytes *owners; /* of the positions */
  weir_store_adoption adoption;
  bool agreed; /* the store has all of it already */
  bool aside;
  char *aside_name; /* where the old one is kept, or would be taken from */
} adopt;

static void cursors_done(adopt *a) {
  for (size_t i = 0; a->cursors && i < a->plan.n_sinks; i++)
    yyjson_doc_free(a->cursors[i].positions);
  free(a->cursors);
  a->cursors = NULL;
}

static const weir_found_cursor *found_at(const adopt *a, size_t sink, size_t k) {
  const base_buf *list = &a->found[sink];
  return k < list->size / sizeof(weir_found_cursor)
             ? (const weir_found_cursor *)list->data + k
             : NULL;
}

static void found_done(adopt *a) {
  const weir_found_cursor *f = NULL;
  for (size_t i = 0; a->found && i < a->plan.n_sinks; i++) {
    for (size_t k = 0; (f = found_at(a, i, k)); k++)
      free((char *)(uintptr_t)f->positions);
    base_buf_done(&a->found[i]);
  }
  free(a->found);
  a->found = NULL;
}

static void adopt_done(adopt *a) {
  for (size_t i = 0; a->owners && i < a->adoption.n_positions; i++)
    weir_bytes_release(&a->owners[i]);
  free(a->owners);
  free(a->positions);
  free(a->sinks);
  free(a->aside_name);
  cursors_done(a);
  found_done(a);
  weir_store_state_free(a->state);
  weir_store_close(a->store);
  plan_done(&a->plan);
}

/* ---- looking at the targets --------------------------------------------------------------------------- */

typedef struct finding {
  base_buf *list;
  weir_status status;
} finding;

static void on_cursor(void *ctx, const weir_found_cursor *cursor) {
  finding *f = ctx;
  weir_found_cursor copy = *cursor;
  if (f->status || !cursor->cursor.checkpoint) return;
  if (copy.positions) {
    copy.positions = base_strdup(copy.positions, NULL);
    if (!copy.positions) f->status = WEIR_E_NOMEM;
  }
  if (!f->status) f->status = base_buf_append(f->list, &copy, sizeof(copy), NULL);
  if (f->status) free((char *)(uintptr_t)copy.positions);
}

static void on_published(void *ctx, const weir_cursor *attempt, uint64_t rows) {
  (void)ctx;
  (void)attempt;
  (void)rows;
}

/* Bound to no deployment, every target is another's, which is no news here. */
static void on_found(void *ctx, const weir_finding *f) {
  (void)ctx;
  (void)f;
}

static weir_status find_all(adopt *a, weir_error *err) {
  weir_status status = WEIR_OK;
  found_done(a);
  a->found = base_calloc(a->plan.n_sinks, sizeof(*a->found), err);
  if (!a->found) return WEIR_E_NOMEM;
  for (size_t i = 0; i < a->plan.n_sinks && !status; i++) {
    pipe_sink *s = &a->plan.sinks[i];
    finding f = {.list = &a->found[i]};
    weir_verified seen = {0};
    weir_ledger ledger = {.struct_size = sizeof(ledger), .ns = &s->ns};
    weir_verify ask = {.struct_size = sizeof(ask),
                       .ledger = &ledger,
                       .ctx = &f,
                       .published = on_published,
                       .found = on_found,
                       .cursor = on_cursor};
    if (s->contract.consistency != WEIR_COMMITTABLE) continue;
    weir_call *call = weir_call_new(-1);
    if (!call) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    status = connector_sink_verify(s->first[0], call, &ask, &seen, err);
    weir_call_free(call);
    if (!status && f.status) status = weir_error_set(err, f.status, 0, "out of memory");
  }
  return status;
}

static const weir_found_cursor *found_of(const adopt *a, size_t sink,
                                         const uint8_t *deployment) {
  const weir_found_cursor *f = NULL;
  for (size_t k = 0; (f = found_at(a, sink, k)); k++)
    if (memcmp(f->deployment, deployment, WEIR_UUID_SIZE) == 0) return f;
  return NULL;
}

static weir_status moved(const pipe_sink *s, weir_error *err) {
  return weir_error_set(err, WEIR_E_CONFLICT, 0,
                        "sink %s: its target moves on while it is looked at: another "
                        "instance of this pipeline delivers there. End it first, or run "
                        "it in the place of this one",
                        s->name);
}

static weir_status read_found(adopt_cursor *c, const weir_found_cursor *f,
                              weir_error *err) {
  if (!f) return WEIR_OK;
  c->cursor = f->cursor;
  if (!f->positions) return WEIR_OK;
  c->positions = yyjson_read(f->positions, strlen(f->positions), YYJSON_READ_NOFLAG);
  if (c->positions) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "the source positions in a cursor record cannot be read");
}

/* *owns: every target that says whose it is says that it is this deployment's. Each sink is made once more,
 * since it can be bound once. */
static weir_status look_at(adopt *a, const uint8_t *deployment, bool *owns,
                           weir_error *err) {
  pipe_plan plan = {0};
  base_log silent = {0};
  cursors_done(a);
  a->cursors = base_calloc(a->plan.n_sinks, sizeof(*a->cursors), err);
  if (!a->cursors) return WEIR_E_NOMEM;
  weir_status status = plan_init(&plan, a->config, &silent, err);
  *owns = true;
  for (size_t i = 0; i < plan.n_sinks && !status; i++) {
    adopt_cursor *c = &a->cursors[i];
    pipe_look look = {0};
    weir_error why = {0};
    c->keeps = plan.sinks[i].contract.consistency == WEIR_COMMITTABLE;
    if (!c->keeps) continue;
    status = read_found(c, found_of(a, i, deployment), err);
    if (status) break;
    status = pipeline_look(&plan, i, deployment, &look, &why);
    if (status == WEIR_E_CONFLICT) {
      *owns = false;
      status = WEIR_OK;
    } else if (status) {
      if (err) *err = why;
    } else if (look.seen.checked & WEIR_CHECKED_CURSOR &&
               !weir_cursor_equal(&look.seen.cursor, &c->cursor)) {
      status = moved(&plan.sinks[i], err);
    }
    c->rows = look.rows;
    c->bytes = look.seen.bytes;
  }
  plan_done(&plan);
  return status;
}

static weir_status nothing_there(const adopt *a, bool others, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_CONFLICT, 0,
      others
          ? "the targets belong to different deployments of the pipeline, so no state "
            "fits all of them; deliver everything again with `weir run "
            "--new-deployment`, to which each target is emptied first"
          : "no target has a cursor of pipeline %s: nothing was delivered that a state "
            "could be made of. `weir run` begins anew; a target that was claimed and "
            "never written to takes `--new-deployment`",
      a->plan.top.pipeline);
}

/* The deployment that owns the targets, and what they say of it. */
static weir_status find_owner(adopt *a, weir_error *err) {
  bool any = false, chosen = false, owns = false;
  const weir_found_cursor *f = NULL;
  for (size_t i = 0; i < a->plan.n_sinks; i++)
    for (size_t k = 0; (f = found_at(a, i, k)); k++) {
      any = true;
      if (chosen && memcmp(f->deployment, a->deployment, WEIR_UUID_SIZE) == 0) continue;
      BASE_TRY(look_at(a, f->deployment, &owns, err));
      if (!owns) continue;
      if (chosen)
        return weir_error_set(err, WEIR_E_CONFLICT, 0,
                              "sink %s: its target has cursors of several deployments "
                              "and does not say which one owns it",
                              a->plan.sinks[i].name);
      chosen = true;
      memcpy(a->deployment, f->deployment, WEIR_UUID_SIZE);
    }
  if (!chosen) return nothing_there(a, any, err);
  return look_at(a, a->deployment, &owns, err);
}

/* ---- do they agree? -------------------------------------------------------------------------------------- */

static bool feeds(const pipe_sink *s, const char *lane) {
  for (size_t i = 0; i < s->n_from; i++) {
    size_t n = strlen(s->from_names[i]);
    if (strncmp(lane, s->from_names[i], n) == 0 && (!lane[n] || lane[n] == '/'))
      return true;
  }
  return false;
}

/* Nothing was read for that sink between its cursor and the newest one. */
static bool owes_nothing(const adopt *a, size_t sink) {
  const adopt_cursor *c = &a->cursors[sink];
  yyjson_val *mine = yyjson_doc_get_root(c->positions), *key, *value;
  yyjson_val *newest = yyjson_doc_get_root(a->cursors[a->newest].positions);
  size_t i, n;
  if (c->cursor.checkpoint && !mine) return false;
  yyjson_obj_foreach(newest, i, n, key, value) {
    const char *lane = yyjson_get_str(key);
    yyjson_val *then = yyjson_obj_get(mine, lane);
    if (!feeds(&a->plan.sinks[sink], lane)) continue;
    if (!then ? !yyjson_is_null(value) : !yyjson_equals(then, value)) return false;
  }
  return true;
}

static weir_status check_agreement(adopt *a, weir_error *err) {
  bool first = true;
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    const adopt_cursor *c = &a->cursors[i], *best = &a->cursors[a->newest];
    if (!c->keeps) continue;
    bool newer = c->cursor.checkpoint > best->cursor.checkpoint;
    bool fuller = c->cursor.checkpoint == best->cursor.checkpoint && c->positions &&
                  !best->positions;
    if (first || newer || fuller) a->newest = i;
    first = false;
  }
  const adopt_cursor *best = &a->cursors[a->newest];
  if (!best->positions)
    return weir_error_set(
        err, WEIR_E_CONFLICT, 0,
        "sink %s: the cursor record of epoch %" PRIu64
        " carries no source positions (they were longer than %u bytes), so nobody can "
        "tell where to go on; bring the state back, or deliver everything again with "
        "`weir run --new-deployment`",
        a->plan.sinks[a->newest].name, best->cursor.checkpoint,
        WEIR_MAX_CURSOR_POSITIONS);
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    const adopt_cursor *c = &a->cursors[i];
    bool same = c->cursor.checkpoint == best->cursor.checkpoint;
    if (!c->keeps) continue;
    if (same ? c->cursor.token == best->cursor.token : owes_nothing(a, i)) continue;
    return weir_error_set(
        err, WEIR_E_CONFLICT, 0,
        "the targets do not agree: sink %s stands at epoch %" PRIu64
        " and sink %s at epoch %" PRIu64
        ", between which there were rows for it. Only the lost state knows them; bring "
        "it "
        "back, or deliver everything again with `weir run --new-deployment`",
        a->plan.sinks[a->newest].name, best->cursor.checkpoint, a->plan.sinks[i].name,
        c->cursor.checkpoint);
  }
  return WEIR_OK;
}

/* ---- what the store will say ---------------------------------------------------------------------------- */

static weir_status add_position(adopt *a, const char *lane, yyjson_val *value,
                                weir_error *err) {
  weir_store_position *p = &a->positions[a->adoption.n_positions];
  weir_bytes *owner = &a->owners[a->adoption.n_positions];
  const char *hex = yyjson_get_str(value);
  size_t size = yyjson_get_len(value) / 2;
  *p = (weir_store_position){.source = lane};
  if (yyjson_is_null(value)) {
    a->adoption.n_positions++;
    return WEIR_OK;
  }
  uint8_t *bytes = base_calloc(size + 1, 1, err);
  if (!bytes) return WEIR_E_NOMEM;
  weir_status status = WEIR_OK;
  if (!hex || yyjson_get_len(value) % 2 || !weir_hex_decode(hex, bytes, size))
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the cursor record's position of source %s is not one", lane);
  if (!status) status = weir_bytes_copy(owner, bytes, size, err);
  free(bytes);
  if (status) return status;
  p->present = 1;
  p->data = owner->data;
  p->size = owner->size;
  a->adoption.n_positions++;
  return WEIR_OK;
}

static weir_status make_adoption(adopt *a, weir_error *err) {
  yyjson_val *root = yyjson_doc_get_root(a->cursors[a->newest].positions), *key, *value;
  size_t i, max, n = yyjson_obj_size(root);
  a->sinks = base_calloc(a->plan.n_sinks, sizeof(*a->sinks), err);
  a->positions = base_calloc(n + 1, sizeof(*a->positions), err);
  a->owners = base_calloc(n + 1, sizeof(*a->owners), err);
  if (!a->sinks || !a->positions || !a->owners) return WEIR_E_NOMEM;
  a->adoption = (weir_store_adoption){.struct_size = sizeof(a->adoption),
                                      .pipeline = a->plan.top.pipeline,
                                      .sinks = a->sinks,
                                      .positions = a->positions};
  memcpy(a->adoption.deployment, a->deployment, WEIR_UUID_SIZE);
  a->adoption.last_attempt = a->cursors[a->newest].cursor.checkpoint;
  for (i = 0; i < a->plan.n_sinks; i++) {
    const adopt_cursor *c = &a->cursors[i];
    if (!c->keeps || !c->cursor.checkpoint) continue;
    a->sinks[a->adoption.n_sinks++] = (weir_store_sink){.sink_id = a->plan.sinks[i].name,
                                                        .cursor = c->cursor,
                                                        .has_rows = 1,
                                                        .rows = c->rows,
                                                        .bytes = c->bytes};
    if (c->cursor.token >= a->adoption.token) a->adoption.token = c->cursor.token + 1;
  }
  /* A store that is set aside had numbers beyond what the targets show. */
  if (a->state && a->state->last_attempt > a->adoption.last_attempt)
    a->adoption.last_attempt = a->state->last_attempt;
  if (a->state && a->state->token >= a->adoption.token)
    a->adoption.token = a->state->token + 1;
  yyjson_obj_foreach(root, i, max, key, value) {
    BASE_TRY(add_position(a, yyjson_get_str(key), value, err));
  }
  return WEIR_OK;
}

/* ---- the store that is there ------------------------------------------------------------------------------ */

/* Under the lease, unless nothing is to be written. One that is damaged can only be set aside. */
static weir_status own_state(adopt *a, uint32_t flags, weir_error *err) {
  weir_error why = {0};
  weir_status status = pipeline_read_store(&a->plan.top, &a->state, &why);
  a->exists = status != WEIR_E_NOT_FOUND;
  if (!a->exists || (status == WEIR_E_CORRUPT && flags & WEIR_ADOPT_SET_ASIDE))
    return WEIR_OK;
  if (status) {
    if (err) *err = why;
    return status == WEIR_E_CORRUPT
               ? weir_error_prefix(
                     err, status,
                     "there is a state, which is damaged (--set-aside keeps "
                     "it under another name)")
               : status;
  }
  if (flags & WEIR_ADOPT_DRY_RUN) return WEIR_OK;
  BASE_TRY(pipeline_take_store(&a->plan.top, false, &a->store, err));
  weir_store_state_free(a->state);
  a->state = NULL;
  return weir_store_load(a->store, &a->state, err);
}

static bool holds_nothing(const weir_store_state *state) {
  return !state->n_attempts && !state->n_decided && !state->n_seen;
}

static bool knows(const weir_store_state *state, const char *sink,
                  const weir_cursor *cursor) {
  bool any = false;
  for (size_t i = 0; i < state->n_seen; i++) {
    if (strcmp(state->seen[i].sink_id, sink) != 0) continue;
    any = true;
    if (weir_cursor_equal(&state->seen[i].cursor, cursor)) return true;
  }
  if (!cursor->checkpoint) return !any;
  for (size_t i = 0; i < state->n_attempts; i++)
    for (size_t k = 0; k < state->attempts[i].n_sinks; k++) {
      const weir_store_sink *part = &state->attempts[i].sinks[k];
      if (strcmp(part->sink_id, sink) == 0 && weir_cursor_equal(&part->cursor, cursor))
        return true;
    }
  return false;
}

/* A store that has every target's cursor is better than any that could be made of them. */
static bool agrees(const adopt *a) {
  if (!a->state || memcmp(a->state->deployment, a->deployment, WEIR_UUID_SIZE) != 0)
    return false;
  for (size_t i = 0; i < a->plan.n_sinks; i++)
    if (a->cursors[i].keeps &&
        !knows(a->state, a->plan.sinks[i].name, &a->cursors[i].cursor))
      return false;
  return true;
}

static weir_status check_state(adopt *a, uint32_t flags, weir_error *err) {
  if (!a->exists || (a->state && holds_nothing(a->state))) return WEIR_OK;
  a->agreed = agrees(a);
  if (a->agreed) return WEIR_OK;
  a->aside = true;
  if (flags & WEIR_ADOPT_SET_ASIDE) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_CONFLICT, 0,
      "there is a state, and the targets do not agree with it (`weir verify` says how). "
      "If "
      "it is worth nothing, --set-aside keeps it under another name and makes a new one");
}

/* ---- adopt ---------------------------------------------------------------------------------------------------- */

/* A1 and A2: a store of nothing, owned. */
static weir_status make_store(adopt *a, weir_error *err) {
  const config_top *top = &a->plan.top;
  weir_store *old = a->store;
  if (old && !a->aside) return WEIR_OK;
  a->store = NULL;
  weir_status status = WEIR_OK;
  if (a->aside && !top->store) {
    status = pipeline_put_folder_aside(top, old, &a->aside_name, err);
  } else if (a->aside) {
    a->aside_name = base_format(err, "pipeline %s.before-* of the store", top->pipeline);
    if (!a->aside_name) status = WEIR_E_NOMEM;
  }
  /* A lease on a server is free for that moment: whoever takes it then has it, and this is refused. */
  if (top->store) weir_store_close(old);
  if (!status) status = pipeline_take_store(top, a->aside, &a->store, err);
  if (!top->store) weir_store_close(old);
  return status;
}

static weir_status adopt_all(adopt *a, weir_error *err) {
  BASE_TRY(make_store(a, err));
  /* Once more under the lease: until then another instance may have gone on there. */
  BASE_TRY(find_all(a, err));
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    const weir_found_cursor *f = found_of(a, i, a->deployment);
    const weir_cursor none = {0};
    if (a->cursors[i].keeps &&
        !weir_cursor_equal(f ? &f->cursor : &none, &a->cursors[i].cursor))
      return moved(&a->plan.sinks[i], err);
  }
  return weir_store_adopt(a->store, &a->adoption, err);
}

static weir_status document(const adopt *a, uint32_t flags, weir_bytes *json,
                            weir_error *err) {
  yyjson_mut_doc *doc = NULL;
  yyjson_mut_val *root = NULL;
  weir_status status = pipeline_json_new(&doc, &root, err);
  if (!status) {
    bool dry = flags & WEIR_ADOPT_DRY_RUN;
    yyjson_mut_obj_add_str(doc, root, "pipeline", a->plan.top.pipeline);
    pipeline_json_deployment(doc, root, a->deployment);
    yyjson_mut_obj_add_bool(doc, root, "dry_run", dry);
    yyjson_mut_obj_add_bool(doc, root, "agreed", a->agreed);
    yyjson_mut_obj_add_bool(doc, root, "adopted", !dry && !a->agreed);
    if (a->aside_name)
      yyjson_mut_obj_add_str(doc, root, "set_aside", a->aside_name);
    else
      yyjson_mut_obj_add_null(doc, root, "set_aside");
    yyjson_mut_val *sinks = yyjson_mut_obj_add_obj(doc, root, "sinks");
    for (size_t i = 0; i < a->plan.n_sinks; i++) {
      yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, sinks, a->plan.sinks[i].name);
      pipeline_json_cursor(doc, v, &a->cursors[i].cursor);
      yyjson_mut_obj_add_uint(doc, v, "rows", a->cursors[i].rows);
      yyjson_mut_obj_add_uint(doc, v, "bytes", a->cursors[i].bytes);
    }
    if (!a->agreed)
      pipeline_json_sources(doc, root, a->config, a->adoption.positions,
                            a->adoption.n_positions);
    status = pipeline_json_finish(doc, json, err);
  }
  yyjson_mut_doc_free(doc);
  return status;
}

static weir_status bind_to_none(adopt *a, weir_error *err) {
  bool any = false;
  for (size_t i = 0; i < a->plan.n_sinks; i++) {
    pipe_sink *s = &a->plan.sinks[i];
    any |= s->contract.consistency == WEIR_COMMITTABLE;
    BASE_TRY(pipeline_bind_one(&a->plan, s, NULL, err));
  }
  if (any) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_CONFLICT, 0,
      "no sink of this pipeline keeps a cursor at its target, so there is "
      "nothing that a state could be made of");
}

weir_status weir_pipeline_adopt(const weir_config *config, uint32_t flags,
                                weir_bytes *json, weir_error *err) {
  adopt a = {.config = config};
  base_log silent = {0};
  weir_status status = plan_init(&a.plan, config, &silent, err);
  if (!status) status = bind_to_none(&a, err);
  if (!status) status = own_state(&a, flags, err);
  if (!status) status = find_all(&a, err);
  if (!status) status = find_owner(&a, err);
  if (!status) status = check_state(&a, flags, err);
  if (!status && !a.agreed) status = check_agreement(&a, err);
  if (!status && !a.agreed) status = make_adoption(&a, err);
  if (!status && !a.agreed && !(flags & WEIR_ADOPT_DRY_RUN)) status = adopt_all(&a, err);
  if (!status) status = document(&a, flags, json, err);
  if (status && a.plan.host) status = plan_error(&a.plan, status, err);
  adopt_done(&a);
  return status;
}
