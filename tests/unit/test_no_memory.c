/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: failing */
/*
 * Each allocation fails, one a run: an error comes out that says so, nothing leaks, and the next run finds no harm
 * done. WEIR_SWEEP=all tries every allocation of the slow scenarios too; else it is each tenth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/connectors.h>
#include <weir/store.h>
#include <weir/weir.h>

#include "base/base.h"
#include "connector/connector.h"
#include "coord/coord.h"
#include "failing/failing.h"
#include "support/folder.h"

#define SOON (30 * BASE_NS_PER_S)

static weir_status read_config(const char *folder, const char *yaml, weir_config **out,
                               weir_error *err) {
  weir_config *config = NULL;
  weir_status status = weir_config_new(&config, err);
  if (!status) status = weir_config_read(config, yaml, strlen(yaml), "test", folder, err);
  if (status) {
    weir_config_free(config);
  } else {
    *out = config;
  }
  return status;
}

static const char generated[] =
    "pipeline: small\n"
    "sources:\n"
    "  in: {type: generator, rows: 1000, batch_rows: 100, seed: 7}\n"
    "sinks:\n"
    "  out: {type: file, path: out, format: ndjson, compression: none}\n";

static weir_status deliver(const char *folder, const char *yaml, weir_error *err) {
  weir_config *config = NULL;
  weir_pipeline *pipeline = NULL;
  weir_event event = {.struct_size = sizeof(event)};
  weir_status status = read_config(folder, yaml, &config, err);
  if (status) return status;
  status = weir_pipeline_open(config, NULL, 0, &pipeline, err);
  weir_config_free(config);
  if (status) return status;
  int64_t deadline = base_deadline(SOON);
  while (event.type != WEIR_EVENT_ENDED && event.type != WEIR_EVENT_FAILED) {
    if (base_clock_mono() > deadline) fail_msg("the run does not end");
    weir_pipeline_next(pipeline, &event, BASE_NS_PER_S, NULL);
  }
  weir_error closing = {0};
  status = weir_pipeline_close(pipeline, 0, &closing);
  *err = event.type == WEIR_EVENT_FAILED ? event.error : closing;
  return event.type == WEIR_EVENT_FAILED ? event.error.code : status;
}

/* Rows in what is published. */
static int published(const char *folder) {
  char path[FOLDER_PATH + 300];
  int rows = 0, c = 0;
  snprintf(path, sizeof(path), "%s/out", folder);
  DIR *dir = opendir(path);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/out/%s", folder, e->d_name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while ((c = fgetc(f)) != EOF) rows += c == '\n';
    fclose(f);
  }
  if (dir) closedir(dir);
  return rows;
}

/* ---- the sweep */

typedef weir_status (*scenario)(const char *folder, weir_error *err);

/* The scenario with each allocation failing in turn, until none is left to fail; `after` looks at what is there. */
static void sweep(scenario run, void (*after)(const char *folder, weir_status status),
                  uint64_t step) {
  bool reached = true;
  if (getenv("WEIR_SWEEP")) step = 1;
  for (uint64_t n = 1; reached; n += step) {
    char folder[FOLDER_PATH];
    weir_error err = {0};
    assert_int_equal(folder_make(folder), 0);
    if (getenv("WEIR_TEST_WHERE"))
      fprintf(stderr, "allocation %llu\n", (unsigned long long)n);
    failing_at(n);
    weir_status status = run(folder, &err);
    reached = failing_stop() >= n;
    /* What is not needed may be left out, and what is tried again may succeed. */
    if (status != err.code || (status && (status != WEIR_E_NOMEM || !reached)))
      fail_msg("allocation %llu: %s, %s: '%s'", (unsigned long long)n,
               weir_status_name(status), weir_status_name(err.code), err.message);
    after(folder, status);
    folder_remove(folder);
  }
}

static void nothing_after(const char *folder, weir_status status) {
  (void)folder;
  (void)status;
}

/* ---- scenarios */

/* A column of each kind that adds lines of its own, and a target. */
static weir_status bind_columns(const char *columns, weir_bytes *text, weir_error *err) {
  weir_binding binding = {.struct_size = sizeof(binding)};
  weir_schema *schema = NULL;
  weir_status status = weir_schema_from_types(&(const char *){"id"},
                                              &(const char *){columns}, 1, &schema, err);
  if (!status) status = weir_binding_logical(schema, &binding, err);
  if (!status) status = weir_binding_identify(&binding, "table", columns, err);
  if (!status) status = connector_binding_text(&binding, text, err);
  weir_schema_unref(schema);
  weir_binding_done(&binding);
  return status;
}

static weir_status use_bindings(const char *folder, weir_error *err) {
  weir_bytes was = {0}, now = {0};
  (void)folder;
  weir_status status = bind_columns("list<dictionary<int32, utf8>>", &was, err);
  if (!status) status = bind_columns("struct<a: int64, b: utf8>", &now, err);
  if (!status) {
    status =
        connector_binding_compare("sink x", was.data, was.size, now.data, now.size, err);
    if (status == WEIR_E_CONFLICT) { /* they differ, as is right */
      *err = (weir_error){0};
      status = WEIR_OK;
    }
  }
  weir_bytes_release(&was);
  weir_bytes_release(&now);
  return status;
}

static void test_bindings(void **state) {
  (void)state;
  sweep(use_bindings, nothing_after, 1);
}

static weir_status count_connector(void *ctx, const weir_connector_info *info) {
  size_t *n = ctx;
  *n += info->name != NULL;
  return WEIR_OK;
}

/* First of all: what the library keeps of its own connectors is made at the first question. */
static weir_status ask_for_connectors(const char *folder, weir_error *err) {
  const weir_sink_ops *ops = NULL;
  char file[FOLDER_PATH + 40];
  size_t n = 0;
  snprintf(file, sizeof(file), "%s/weir-text.so", folder);
  FILE *f = fopen(file, "w");
  if (f) fclose(f);
  setenv("WEIR_PLUGIN_PATH", folder, 1);
  weir_status status = weir_connectors_each(count_connector, &n, err);
  if (!status) {
    assert_true(n > 5);
    status = connector_find_sink("fiel", NULL, &ops, err);
    assert_null(ops);
    if (status == WEIR_E_INVALID_CONFIG) { /* there is none, as is right */
      *err = (weir_error){0};
      status = WEIR_OK;
    }
  }
  unsetenv("WEIR_PLUGIN_PATH");
  return status;
}

static void test_connectors(void **state) {
  (void)state;
  sweep(ask_for_connectors, nothing_after, 1);
}

static weir_status track_tasks(const char *folder, weir_error *err) {
  weir_task_owner *owner = NULL;
  weir_task_guard *guard = NULL;
  (void)folder;
  BASE_TRY(weir_task_owner_new(&owner, err));
  weir_status status = weir_task_guard_new(owner, "upload", &guard, err);
  weir_task_guard_drop(guard);
  weir_task_owner_free(owner);
  return status;
}

static void test_tasks(void **state) {
  (void)state;
  sweep(track_tasks, nothing_after, 1);
}

static weir_status only_config(const char *folder, weir_error *err) {
  weir_config *config = NULL;
  weir_status status = read_config(folder, generated, &config, err);
  if (!status) weir_config_free(config);
  return status;
}

static void test_config(void **state) {
  (void)state;
  sweep(only_config, nothing_after, 1);
}

static weir_status steps_of_store(weir_store *store, weir_error *err) {
  static const uint8_t bytes[] = "bytes";
  static const weir_store_entry entry = {"a", 1, 1, bytes, 5};
  static const weir_store_position position = {"in", 1, bytes, 5, 7, 0};
  static const weir_store_sink sink = {"a", {.checkpoint = 1, .token = 1}, 1, 7, 70};
  static const weir_store_binding binding = {"a", bytes, 5};
  const weir_store_decision decision = {.attempt = 1,
                                        .token = 1,
                                        .sinks = &sink,
                                        .n_sinks = 1,
                                        .descriptors = &entry,
                                        .n_descriptors = 1,
                                        .positions = &position,
                                        .n_positions = 1,
                                        .next_attempt = 2,
                                        .intents = &entry,
                                        .n_intents = 1};
  weir_store_state *loaded = NULL;
  BASE_TRY(weir_store_pin(store, &binding, 0, err));
  BASE_TRY(weir_store_reserve(store, 1, &entry, 1, err));
  BASE_TRY(weir_store_decide(store, &decision, err));
  BASE_TRY(weir_store_seen(store, "a", &sink.cursor, err));
  BASE_TRY(weir_store_abort(store, 2, NULL, 0, err));
  BASE_TRY(weir_store_cleaned(store, "a", 2, err));
  BASE_TRY(weir_store_flush(store, err));
  BASE_TRY(weir_store_load(store, &loaded, err));
  weir_store_state_free(loaded);
  return WEIR_OK;
}

static weir_status use_store(const char *folder, weir_error *err) {
  weir_store *store = NULL;
  BASE_TRY(weir_store_open(folder, "small", &store, err));
  weir_status status = steps_of_store(store, err);
  weir_store_close(store);
  return status;
}

/* Each step is there whole or not at all. */
static void store_is_whole(const char *folder, weir_status failed) {
  weir_store *store = NULL;
  weir_store_state *s = NULL;
  weir_error err = {0};
  if (weir_store_open(folder, "small", &store, &err) || weir_store_load(store, &s, &err))
    fail_msg("%s", err.message);
  assert_int_equal(s->n_decided, s->n_positions);
  assert_int_equal(s->last_attempt == 2, s->n_decided == 1);
  if (!failed) assert_int_equal(s->n_seen, 1);
  if (s->n_attempts) assert_int_equal(s->n_bindings, 1);
  weir_store_state_free(s);
  weir_store_close(store);
}

static void test_store(void **state) {
  (void)state;
  sweep(use_store, store_is_whole, 3);
}

/* Three decisions, with one attempt that fails on the way. All that is commanded is done at once. */
typedef struct obedient {
  coord *c;
  int64_t now;
  int decided, failed;
  bool ended;
  uint64_t generation;
  weir_error *err;
} obedient;

static void keep(weir_bytes *bytes) {
  *bytes = (weir_bytes){0};
}

static weir_bytes some_bytes(void) {
  return (weir_bytes){(const uint8_t *)"some", 4, keep, NULL};
}

static weir_status happens(obedient *o, coord_event_type type, const coord_command *of,
                           coord_event e) {
  e.type = type;
  e.sink = of ? of->sink : COORD_NONE;
  if (!e.participant && of) e.participant = of->participant;
  e.attempt = of ? of->attempt : 0;
  e.generation = of ? of->generation : o->generation;
  if (e.lane != 0 || e.sink != COORD_NONE) e.lane = COORD_NONE;
  return coord_step(o->c, o->now, &e, o->err);
}

static weir_status barriers(obedient *o, const coord_command *of) {
  coord_command sealed = *of;
  if (!o->ended)
    BASE_TRY(happens(o, COORD_BARRIER_SENT, of,
                     (coord_event){.bytes = some_bytes(), .rows = 9}));
  sealed.sink = 0;
  for (uint32_t p = 1; p <= 2; p++)
    BASE_TRY(happens(o, COORD_SEALED, &sealed,
                     (coord_event){.participant = p, .rows = 1, .nbytes = 8}));
  return WEIR_OK;
}

static weir_status prepare(obedient *o, const coord_command *of) {
  static const weir_error again = {
      .code = WEIR_E_IO, .flags = WEIR_ERR_RETRIABLE, .message = "again"};
  bool fail = o->decided == 1 && !o->failed;
  if (fail) o->failed = 1;
  return happens(
      o, COORD_PREPARED, of,
      (coord_event){.bytes = fail ? (weir_bytes){0} : some_bytes(),
                    .intent = of->next && !fail ? some_bytes() : (weir_bytes){0},
                    .error = fail ? &again : NULL});
}

static weir_status drain(obedient *o) {
  if (o->decided == 2)
    return happens(o, COORD_CHECKPOINT, NULL, (coord_event){.lane = COORD_NONE});
  if (o->decided < 3 || o->ended) return WEIR_OK;
  o->ended = true;
  BASE_TRY(happens(o, COORD_DRAIN, NULL, (coord_event){.lane = COORD_NONE}));
  return happens(o, COORD_LANE_ENDED, NULL,
                 (coord_event){.bytes = some_bytes(), .rows = 9});
}

static weir_status obey(obedient *o, const coord_command *of) {
  const coord_event none = {0};
  weir_cursor landed = {0};
  switch (of->type) {
    case COORD_TAKE_OVER:
      return happens(o, COORD_OBSERVED, of, none);
    case COORD_GET_INTENT:
      return happens(o, COORD_INTENT, of, (coord_event){.bytes = some_bytes()});
    case COORD_RESERVE:
      return happens(o, COORD_RESERVED, of, none);
    case COORD_BEGIN:
      return happens(o, COORD_BEGUN, of, none);
    case COORD_OPEN_GATES:
      return drain(o);
    case COORD_SEND_BARRIERS:
      return barriers(o, of);
    case COORD_PRE_COMMIT:
      return prepare(o, of);
    case COORD_DECIDE:
      o->decided++;
      return happens(o, COORD_DECIDED, of, none);
    case COORD_ABORT:
      return happens(o, COORD_ABORTED, of, none);
    case COORD_ROLLBACK:
      return happens(o, COORD_ROLLED_BACK, of, none);
    case COORD_STOP_LANES:
      return happens(o, COORD_STOPPED, of, (coord_event){.rows = 9});
    case COORD_PURGE:
      return happens(o, COORD_PURGED, of, none);
    case COORD_SEEK:
      o->generation = of->generation;
      o->ended = false;
      return happens(o, COORD_SOUGHT, of, none);
    case COORD_COMMIT:
      landed = of->batch->attempts[of->batch->n_attempts - 1].cursor;
      return happens(o, COORD_COMMITTED, of, (coord_event){.cursor = landed});
    case COORD_CLEAN:
      return happens(o, COORD_CLEANED, of, none);
    default:
      return WEIR_OK;
  }
}

/* Attempt 1 is owed, of 2 a person said that it is not, 3 is to be cleaned and 4 to be aborted. */
static weir_status what_a_run_left(weir_store_sink parts[2],
                                   weir_store_attempt attempts[4], weir_store_state *out,
                                   weir_error *err) {
  static const weir_store_entry left = {"out", 1, 1, (const uint8_t *)"left", 4};
  static const weir_commit_entry owed = {1, 1, (const uint8_t *)"left", 4};
  static const weir_store_position positions[] = {
      {"in", 1, (const uint8_t *)"some", 4, 1, 0},
      {"gone", 1, (const uint8_t *)"some", 4, 1, 0}};
  static const weir_store_binding resolved = {"resolved:out:2", (const uint8_t *)"{}", 2};
  for (uint64_t n = 1; n <= 2; n++) {
    parts[n - 1] = (weir_store_sink){
        .sink_id = "out", .cursor = {.checkpoint = n, .token = 1}, .has_rows = 1};
    BASE_TRY(coord_digest("out", n, &owed, 1, parts[n - 1].cursor.digest, err));
    attempts[n - 1] = (weir_store_attempt){.state = WEIR_ATTEMPT_COMMIT,
                                           .sinks = &parts[n - 1],
                                           .n_sinks = 1,
                                           .descriptors = &left,
                                           .n_descriptors = 1};
  }
  for (size_t i = 2; i < 4; i++) {
    attempts[i] =
        (weir_store_attempt){.state = i == 2 ? WEIR_ATTEMPT_ABORT : WEIR_ATTEMPT_RESERVED,
                             .intents = &left,
                             .n_intents = 1};
  }
  for (size_t i = 0; i < 4; i++) {
    attempts[i].attempt = i + 1;
    attempts[i].token = 1;
  }
  *out = (weir_store_state){.pipeline = "small",
                            .token = 1,
                            .last_attempt = 4,
                            .attempts = attempts,
                            .n_attempts = 4,
                            .positions = positions,
                            .n_positions = 2,
                            .bindings = &resolved,
                            .n_bindings = 1};
  return WEIR_OK;
}

static weir_status run_coordinator(const char *folder, weir_error *err) {
  static const coord_sink sink = {
      .sink_id = "out", .participants = 2, .committable = 1, .overlap = 1};
  static const char *const lane = "in";
  static const coord_config config = {.sinks = &sink,
                                      .n_sinks = 1,
                                      .lanes = &lane,
                                      .n_lanes = 1,
                                      .interval_ns = BASE_NS_PER_S,
                                      .timeout_ns = 60 * BASE_NS_PER_S,
                                      .backoff_min_ns = 1,
                                      .backoff_max_ns = 2};
  weir_store_sink parts[2];
  weir_store_attempt attempts[4];
  weir_store_state known = {0};
  BASE_TRY(what_a_run_left(parts, attempts, &known, err));
  obedient o = {.err = err};
  coord_command command = {0};
  (void)folder;
  weir_status status = coord_new(&config, &known, 2, &o.c, err);
  if (status) return status;
  status = happens(&o, COORD_START, NULL, (coord_event){.lane = COORD_NONE});
  for (int turns = 0; !status && command.type != COORD_STOP; turns++) {
    if (turns > 10000) fail_msg("the coordinator does not end, in %d", o.decided);
    if (coord_next(o.c, &command)) {
      status = obey(&o, &command);
      continue;
    }
    int64_t wakeup = coord_wakeup(o.c);
    if (wakeup == INT64_MAX) fail_msg("the coordinator waits for nothing");
    o.now = wakeup > o.now ? wakeup : o.now;
    status = happens(&o, COORD_TICK, NULL, (coord_event){.lane = COORD_NONE});
  }
  if (!status && command.error) {
    *err = *command.error;
    status = err->code;
  }
  if (!status) assert_true(o.decided >= 3 && o.failed);
  coord_free(o.c);
  return status;
}

static void test_coordinator(void **state) {
  (void)state;
  sweep(run_coordinator, nothing_after, 1);
}

static weir_status deliver_small(const char *folder, weir_error *err) {
  return deliver(folder, generated, err);
}

/* All or nothing of the one epoch; the next run brings the rest. */
static void delivery_is_whole(const char *folder, weir_status failed) {
  weir_error err = {0};
  int rows = published(folder);
  if (rows != 1000 && (!failed || rows != 0)) fail_msg("%d rows", rows);
  if (deliver(folder, generated, &err)) fail_msg("the next run: %s", err.message);
  assert_int_equal(published(folder), 1000);
}

static void test_pipeline(void **state) {
  (void)state;
  sweep(deliver_small, delivery_is_whole, 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_connectors),  cmocka_unit_test(test_bindings),
      cmocka_unit_test(test_tasks),       cmocka_unit_test(test_config),
      cmocka_unit_test(test_coordinator), cmocka_unit_test(test_store),
      cmocka_unit_test(test_pipeline),
  };
  /* In memory where there is such a folder: thousands of syncs of a real disk prove nothing here. */
  if (!access("/dev/shm", W_OK)) setenv("TMPDIR", "/dev/shm", 0);
  return cmocka_run_group_tests_name("no memory", tests, NULL, NULL);
}
