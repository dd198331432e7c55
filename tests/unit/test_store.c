/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint store: one suite for the store on disk and the one in memory, then what only the one
 * on disk can show: owners, readers, damage, kills. A child that dies is this program again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "store/store.h"

#define PIPELINE "orders"

typedef struct fixture {
  bool memory;
  char dir[64];
  char state[96];
  char db[128];
  weir_store *store;
  weir_error err;
} fixture;

#define OK(call) assert_ok((call), &f->err, #call)
static void assert_ok(weir_status status, const weir_error *err, const char *what) {
  if (status) fail_msg("%s: %s %s", what, weir_status_name(status), err->message);
}

static void assert_message(const fixture *f, const char *part) {
  if (!strstr(f->err.message, part))
    fail_msg("'%s' is not in '%s'", part, f->err.message);
}

static void open_store(fixture *f) {
  if (f->memory) {
    OK(weir_store_open_memory(PIPELINE, &f->store, &f->err));
  } else {
    OK(weir_store_open(f->state, PIPELINE, &f->store, &f->err));
  }
}

static void reopen_store(fixture *f) {
  if (f->memory) return;
  weir_store_close(f->store);
  f->store = NULL;
  open_store(f);
}

static int setup(void **state, bool memory) {
  fixture *f = calloc(1, sizeof(*f));
  f->memory = memory;
  /* In memory where there is such a folder: thousands of syncs of a real disk prove nothing here. */
  snprintf(f->dir, sizeof(f->dir), "%s/weir-store-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  assert_non_null(mkdtemp(f->dir));
  snprintf(f->state, sizeof(f->state), "%s/a/state", f->dir);
  snprintf(f->db, sizeof(f->db), "%s/store.db", f->state);
  *state = f;
  open_store(f);
  return 0;
}
static int setup_disk(void **state) {
  return setup(state, false);
}
static int setup_memory(void **state) {
  return setup(state, true);
}
static int teardown(void **state) {
  fixture *f = *state;
  char command[128];
  weir_store_close(f->store);
  snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
  int rc = system(command);
  free(f);
  return rc;
}

static weir_store_state *load(fixture *f) {
  weir_store_state *s = NULL;
  OK(weir_store_load(f->store, &s, &f->err));
  return s;
}

static uint64_t token_of(fixture *f) {
  weir_store_state *s = load(f);
  uint64_t token = s->token;
  weir_store_state_free(s);
  return token;
}

static const uint8_t *bytes(const char *text) {
  return (const uint8_t *)text;
}

static weir_store_sink sink_part(const char *id, uint64_t attempt, uint64_t token,
                                 uint64_t rows) {
  weir_store_sink s = {.sink_id = id,
                       .cursor = {.checkpoint = attempt, .token = token},
                       .has_rows = rows > 0,
                       .rows = rows,
                       .bytes = rows * 10};
  memset(s.cursor.digest, (int)(attempt & 0xff), sizeof(s.cursor.digest));
  return s;
}

/* Decides `attempt` for sinks `a` (with a descriptor of `size` bytes) and, when asked, `b` (empty), and
 * reserves the next one. */
static weir_status decide(fixture *f, uint64_t attempt, size_t size, bool with_b) {
  weir_store_state *loaded = NULL;
  BASE_TRY(weir_store_load(f->store, &loaded, &f->err));
  uint64_t token = loaded->token;
  weir_store_state_free(loaded);
  weir_store_sink sinks[] = {sink_part("a", attempt, token, 5),
                             sink_part("b", attempt, token, 0)};
  uint8_t *data = calloc(1, size + 1);
  memset(data, 'd', size);
  weir_store_entry descriptors[] = {{"a", 1, 1, data, size}, {"b", 1, 0, NULL, 0}};
  weir_store_entry intents[] = {{"a", 1, 1, bytes("next"), 4}};
  char text[32];
  snprintf(text, sizeof(text), "row %llu", (unsigned long long)attempt);
  weir_store_position positions[] = {
      {"orders", 1, bytes(text), strlen(text), attempt * 5}};
  weir_store_decision d = {.attempt = attempt,
                           .token = token,
                           .sinks = sinks,
                           .n_sinks = with_b ? 2 : 1,
                           .descriptors = descriptors,
                           .n_descriptors = with_b ? 2 : 1,
                           .positions = positions,
                           .n_positions = 1,
                           .next_attempt = attempt + 1,
                           .intents = intents,
                           .n_intents = 1};
  weir_status status = weir_store_decide(f->store, &d, &f->err);
  free(data);
  return status;
}

static void see(fixture *f, const char *sink, uint64_t attempt) {
  weir_store_sink s = sink_part(sink, attempt, 1, 0);
  OK(weir_store_seen(f->store, sink, &s.cursor, &f->err));
}

/* ---- the suite of both ---------------------------------------------------------------------------- */

static void test_new_store_is_empty(void **state) {
  fixture *f = *state;
  weir_store_state *s = load(f);
  static const uint8_t none[WEIR_UUID_SIZE] = {0};
  assert_string_equal(s->pipeline, PIPELINE);
  assert_memory_not_equal(s->deployment, none, sizeof(none));
  assert_int_equal(s->token, 1);
  assert_int_equal(s->last_attempt, 0);
  assert_int_equal(s->n_attempts, 0);
  assert_int_equal(s->n_positions, 0);
  assert_int_equal(s->n_decided, 0);
  assert_int_equal(s->n_seen, 0);
  assert_int_equal(s->n_bindings, 0);
  weir_store_state_free(s);
  weir_store_state_free(NULL);
  OK(weir_store_check_lease(f->store, &f->err));
}

static void test_reserve_and_decide_come_back(void **state) {
  fixture *f = *state;
  weir_store_entry intents[] = {
      {"b", 1, 0, NULL, 0}, {"a", 2, 1, bytes(""), 0}, {"a", 1, 1, bytes("x\0y"), 3}};
  OK(weir_store_reserve(f->store, 7, intents, 3, &f->err));
  reopen_store(f);
  weir_store_state *s = load(f);
  assert_int_equal(s->last_attempt, 7);
  assert_int_equal(s->n_attempts, 1);
  assert_int_equal(s->attempts[0].attempt, 7);
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_RESERVED);
  assert_int_equal(s->attempts[0].token, 1);
  assert_int_equal(s->attempts[0].n_intents, 3);
  const weir_store_entry *e = s->attempts[0].intents; /* ordered by sink, participant */
  assert_string_equal(e[0].sink_id, "a");
  assert_int_equal(e[0].participant_id, 1);
  assert_int_equal(e[0].size, 3);
  assert_memory_equal(e[0].data, "x\0y", 3);
  assert_true(e[1].present && e[1].size == 0);
  assert_string_equal(e[2].sink_id, "b");
  assert_false(e[2].present);
  weir_store_state_free(s);

  OK(decide(f, 7, 100, true));
  uint64_t token = token_of(f);
  reopen_store(f);
  s = load(f);
  assert_int_equal(s->last_attempt, 8);
  assert_int_equal(s->n_attempts, 2);
  const weir_store_attempt *a = &s->attempts[0];
  assert_int_equal(a->state, WEIR_ATTEMPT_COMMIT);
  assert_int_equal(a->token, token);
  assert_int_equal(a->n_intents, 0);
  assert_int_equal(a->n_sinks, 2);
  assert_string_equal(a->sinks[0].sink_id, "a");
  assert_int_equal(a->sinks[0].cursor.checkpoint, 7);
  assert_int_equal(a->sinks[0].cursor.token, token);
  assert_int_equal(a->sinks[0].cursor.digest[31], 7);
  assert_true(a->sinks[0].has_rows);
  assert_int_equal(a->sinks[0].rows, 5);
  assert_int_equal(a->sinks[0].bytes, 50);
  assert_false(a->sinks[1].has_rows);
  assert_int_equal(a->n_descriptors, 2);
  assert_int_equal(a->descriptors[0].size, 100);
  assert_int_equal(a->descriptors[0].data[99], 'd');
  assert_false(a->descriptors[1].present);
  assert_int_equal(s->attempts[1].attempt, 8);
  assert_int_equal(s->attempts[1].state, WEIR_ATTEMPT_RESERVED);
  assert_memory_equal(s->attempts[1].intents[0].data, "next", 4);
  assert_int_equal(s->n_positions, 1);
  assert_memory_equal(s->positions[0].data, "row 7", 5);
  assert_int_equal(s->positions[0].rows, 35);
  assert_int_equal(s->n_decided, 2);
  assert_int_equal(s->decided[0].cursor.checkpoint, 7);
  assert_int_equal(s->n_seen, 0);
  weir_store_state_free(s);
}

static void test_positions_absent_and_empty(void **state) {
  fixture *f = *state;
  weir_store_position positions[] = {{"one", 0, NULL, 0, 0}, {"two", 1, NULL, 0, 9}};
  weir_store_decision d = {
      .attempt = 1, .token = 1, .positions = positions, .n_positions = 2};
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_decide(f->store, &d, &f->err));
  weir_store_state *s = load(f);
  assert_int_equal(s->n_positions, 2);
  assert_false(s->positions[0].present);
  assert_true(s->positions[1].present);
  assert_int_equal(s->positions[1].size, 0);
  assert_int_equal(s->positions[1].rows, 9);
  assert_int_equal(s->n_attempts, 1); /* no committable sink: kept as one of the last */
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_COMMIT);
  weir_store_state_free(s);
}

static void test_numbers_and_outcomes_are_written_once(void **state) {
  fixture *f = *state;
  OK(weir_store_reserve(f->store, 5, NULL, 0, &f->err));
  assert_int_equal(weir_store_reserve(f->store, 5, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_reserve(f->store, 4, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_reserve(f->store, 0, NULL, 0, &f->err), WEIR_E_INTERNAL);
  assert_int_equal(decide(f, 6, 1, false), WEIR_E_INVALID_STATE);
  assert_message(f, "attempt 6");
  OK(decide(f, 5, 1, false));
  assert_int_equal(decide(f, 5, 1, false), WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_abort(f->store, 5, &f->err), WEIR_E_INVALID_STATE);
  OK(weir_store_abort(f->store, 6, &f->err));
  assert_int_equal(weir_store_abort(f->store, 6, &f->err), WEIR_E_INVALID_STATE);
  assert_int_equal(decide(f, 6, 1, false), WEIR_E_INVALID_STATE);
  reopen_store(f);
  assert_int_equal(weir_store_reserve(f->store, 6, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  OK(weir_store_reserve(f->store, 7, NULL, 0, &f->err));
}

static void test_a_refused_decision_leaves_nothing(void **state) {
  fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  weir_store_sink sink = sink_part("a", 1, 9, 5);
  weir_store_decision d = {
      .attempt = 1, .token = 9, .sinks = &sink, .n_sinks = 1, .next_attempt = 2};
  assert_int_equal(weir_store_decide(f->store, &d, &f->err), WEIR_E_INVALID_STATE);
  assert_message(f, "token 9");
  /* The reserved number behind it is taken: the decision before it goes too. */
  d.token = sink.cursor.token = 1;
  d.next_attempt = 1;
  assert_int_equal(weir_store_decide(f->store, &d, &f->err), WEIR_E_INVALID_STATE);
  weir_store_state *s = load(f);
  assert_int_equal(s->last_attempt, 1);
  assert_int_equal(s->n_attempts, 1);
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_RESERVED);
  assert_int_equal(s->n_decided, 0);
  weir_store_state_free(s);
  d.next_attempt = 2;
  sink.cursor.checkpoint = 3;
  assert_int_equal(weir_store_decide(f->store, &d, &f->err), WEIR_E_INTERNAL);
  sink.cursor.checkpoint = 1;
  OK(weir_store_decide(f->store, &d, &f->err));
}

static void test_bounds(void **state) {
  fixture *f = *state;
  uint8_t *big = calloc(1, WEIR_MAX_DESCRIPTOR + 1);
  weir_store_entry intents[65];
  for (size_t i = 0; i < 65; i++)
    intents[i] = (weir_store_entry){"a", i + 1, 1, big, WEIR_MAX_INTENT};
  assert_int_equal(weir_store_reserve(f->store, 1, intents, 65, &f->err),
                   WEIR_E_INTERNAL);
  intents[0].size++;
  assert_int_equal(weir_store_reserve(f->store, 1, intents, 1, &f->err), WEIR_E_INTERNAL);
  assert_message(f, "65537 bytes");
  intents[0].size--;
  OK(weir_store_reserve(f->store, 1, intents, 64, &f->err));
  assert_int_equal(decide(f, 1, WEIR_MAX_DESCRIPTOR + 1, false), WEIR_E_INTERNAL);
  OK(decide(f, 1, WEIR_MAX_DESCRIPTOR, false));
  weir_store_state *s = load(f);
  assert_int_equal(s->attempts[0].descriptors[0].size, WEIR_MAX_DESCRIPTOR);
  weir_store_state_free(s);
  free(big);
}

static void test_abort_owes_its_intents(void **state) {
  fixture *f = *state;
  weir_store_entry intents[] = {
      {"a", 1, 1, bytes("one"), 3}, {"a", 2, 1, bytes("two"), 3}, {"b", 1, 0, NULL, 0}};
  OK(weir_store_reserve(f->store, 1, intents, 3, &f->err));
  OK(weir_store_abort(f->store, 1, &f->err));
  OK(weir_store_reserve(f->store, 2, intents, 3, &f->err));
  OK(weir_store_cleaned(f->store, "a", 2, &f->err)); /* not aborted: nothing may go */
  OK(weir_store_cleaned(f->store, "a", 1, &f->err));
  OK(weir_store_flush(f->store, &f->err));
  reopen_store(f);
  weir_store_state *s = load(f);
  assert_int_equal(s->n_attempts, 2);
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_ABORT);
  assert_int_equal(s->attempts[0].n_intents, 1);
  assert_string_equal(s->attempts[0].intents[0].sink_id, "b");
  assert_false(s->attempts[0].intents[0].present);
  assert_int_equal(s->attempts[1].n_intents, 3);
  weir_store_state_free(s);
  OK(weir_store_cleaned(f->store, "b", 1, &f->err));
  OK(weir_store_abort(f->store, 2, &f->err)); /* takes the remembered line along */
  s = load(f);
  assert_int_equal(s->n_attempts, 1);
  assert_int_equal(s->attempts[0].attempt, 2);
  weir_store_state_free(s);
  OK(weir_store_reserve(f->store, 3, NULL, 0, &f->err));
  OK(weir_store_abort(f->store, 3, &f->err)); /* owes nothing */
  s = load(f);
  assert_int_equal(s->n_attempts, 1);
  assert_int_equal(s->last_attempt, 3);
  weir_store_state_free(s);
}

static void test_the_last_published_are_kept(void **state) {
  fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 30; n++) {
    OK(decide(f, n, 50, false));
    if (n <= 25) see(f, "a", n);
  }
  OK(weir_store_flush(f->store, &f->err));
  weir_store_state *s = load(f);
  /* 16..25 are seen and kept, 26..30 are owed, 31 is reserved. */
  assert_int_equal(s->n_attempts, 16);
  assert_int_equal(s->attempts[0].attempt, 16);
  for (size_t i = 0; i < 15; i++) {
    assert_int_equal(s->attempts[i].n_sinks, 1);
    assert_int_equal(s->attempts[i].descriptors[0].size, 50);
  }
  assert_int_equal(s->attempts[15].state, WEIR_ATTEMPT_RESERVED);
  assert_int_equal(s->n_seen, 1);
  assert_int_equal(s->seen[0].cursor.checkpoint, 25);
  assert_int_equal(s->seen[0].rows, 5);
  assert_int_equal(s->decided[0].cursor.checkpoint, 30);
  weir_store_state_free(s);
}

static void test_an_idle_sink_keeps_only_its_own(void **state) {
  fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 60; n++) {
    OK(decide(f, n, 50, true));
    see(f, "a", n);
  }
  OK(weir_store_flush(f->store, &f->err));
  weir_store_state *s = load(f);
  assert_int_equal(s->n_attempts, 61); /* b owes all of them */
  for (size_t i = 0; i < 50; i++) {
    assert_int_equal(s->attempts[i].n_sinks, 1);
    assert_string_equal(s->attempts[i].sinks[0].sink_id, "b");
    assert_int_equal(s->attempts[i].n_descriptors, 1);
  }
  assert_int_equal(s->attempts[50].n_sinks, 2);
  weir_store_state_free(s);
  see(f, "b", 60);
  OK(weir_store_flush(f->store, &f->err));
  s = load(f);
  assert_int_equal(s->n_attempts, 11);
  assert_int_equal(s->attempts[0].attempt, 51);
  weir_store_state_free(s);
}

static void test_without_committable_sinks_it_stays_small(void **state) {
  fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 40; n++) {
    weir_store_decision d = {.attempt = n, .token = 1, .next_attempt = n + 1};
    OK(weir_store_decide(f->store, &d, &f->err));
  }
  weir_store_state *s = load(f);
  assert_int_equal(s->n_attempts, WEIR_STORE_KEEP + 1);
  assert_int_equal(s->last_attempt, 41);
  weir_store_state_free(s);
}

static void test_pin(void **state) {
  fixture *f = *state;
  weir_store_binding one = {"a", bytes("id int64"), 8};
  weir_store_binding two = {"a", bytes("id utf8"), 7};
  weir_store_binding other = {"b", bytes(""), 0};
  OK(weir_store_pin(f->store, &one, 0, &f->err));
  OK(weir_store_pin(f->store, &one, 0, &f->err));
  OK(weir_store_pin(f->store, &other, 0, &f->err));
  assert_int_equal(weir_store_pin(f->store, &two, 0, &f->err), WEIR_E_CONFLICT);
  reopen_store(f);
  weir_store_state *s = load(f);
  assert_int_equal(s->n_bindings, 2);
  assert_int_equal(s->bindings[0].size, 8);
  assert_memory_equal(s->bindings[0].data, "id int64", 8);
  assert_int_equal(s->bindings[1].size, 0);
  weir_store_state_free(s);
  OK(weir_store_pin(f->store, &two, 1, &f->err));
  s = load(f);
  assert_memory_equal(s->bindings[0].data, "id utf8", 7);
  weir_store_state_free(s);
}

static void test_a_broken_step_ends_the_store(void **state) {
  fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  weir_store_sink sink = sink_part("a", 1, 1, 5);
  weir_store_entry stray = {"nobody", 1, 1, bytes("x"), 1};
  weir_store_decision d = {.attempt = 1,
                           .token = 1,
                           .sinks = &sink,
                           .n_sinks = 1,
                           .descriptors = &stray,
                           .n_descriptors = 1};
  assert_int_equal(weir_store_decide(f->store, &d, &f->err), WEIR_E_INTERNAL);
  memset(&f->err, 0, sizeof(f->err));
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_INTERNAL);
  assert_message(f, "not part of it");
  assert_int_equal(weir_store_reserve(f->store, 2, NULL, 0, NULL), WEIR_E_INTERNAL);
  weir_store_state *s = NULL;
  assert_int_equal(weir_store_load(f->store, &s, &f->err), WEIR_E_INTERNAL);
  assert_null(s);
  if (f->memory) return;
  reopen_store(f);
  s = load(f);
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_RESERVED);
  weir_store_state_free(s);
}

/* ---- on disk only ------------------------------------------------------------------------------------ */

static void test_reopen_keeps_the_deployment(void **state) {
  fixture *f = *state;
  weir_store_state *first = load(f);
  see(f, "a", 3);
  reopen_store(f);
  weir_store_state *second = load(f);
  assert_memory_equal(first->deployment, second->deployment, WEIR_UUID_SIZE);
  assert_int_equal(second->token, 2);
  assert_int_equal(second->n_seen, 1); /* written at close */
  weir_store_state_free(first);
  weir_store_state_free(second);
}

static void test_modes(void **state) {
  fixture *f = *state;
  struct stat st;
  static const char *const files[] = {"store.db", "store.db-wal", "store.db-shm", "lock"};
  assert_int_equal(stat(f->state, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  for (size_t i = 0; i < BASE_COUNT(files); i++) {
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", f->state, files[i]);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
  }
}

static void test_another_pipeline_is_refused(void **state) {
  fixture *f = *state;
  uint64_t token = token_of(f);
  weir_store_close(f->store);
  f->store = NULL;
  assert_int_equal(weir_store_open(f->state, "others", &f->store, &f->err),
                   WEIR_E_CONFLICT);
  assert_message(f, "'orders'");
  assert_message(f, "'others'");
  open_store(f);
  assert_int_equal(token_of(f), token + 1); /* the refused one took no lease */
}

static void test_a_second_opener_is_fenced(void **state) {
  fixture *f = *state;
  weir_store *second = NULL;
  char pid[32];
  snprintf(pid, sizeof(pid), "pid %ld)", (long)getpid());
  assert_int_equal(weir_store_open(f->state, PIPELINE, &second, &f->err), WEIR_E_FENCED);
  assert_message(f, pid);
  assert_null(second);
  /* Closing another descriptor of the lock file frees nothing. */
  char lock[128];
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  close(open(lock, O_RDWR));
  assert_int_equal(weir_store_open(f->state, PIPELINE, &second, &f->err), WEIR_E_FENCED);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_check_lease(f->store, &f->err));
}

static void test_a_lost_lease_writes_nothing(void **state) {
  fixture *f = *state;
  fixture *other = calloc(1, sizeof(*other));
  char lock[128];
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  *other = *f;
  other->store = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  assert_int_equal(unlink(lock), 0);
  open_store(other);
  assert_int_equal(decide(other, 1, 10, false), WEIR_OK);
  weir_store_entry none = {"a", 1, 0, NULL, 0};
  assert_int_equal(weir_store_reserve(f->store, 9, &none, 1, &f->err), WEIR_E_FENCED);
  assert_message(f, "newer owner");
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  assert_int_equal(weir_store_abort(f->store, 2, &f->err), WEIR_E_FENCED);
  weir_store_state *s = load(other);
  assert_int_equal(s->last_attempt, 2);
  weir_store_state_free(s);
  weir_store_close(other->store);
  free(other);
}

static void test_check_lease_sees_the_newer_owner(void **state) {
  fixture *f = *state;
  weir_store *second = NULL;
  char lock[128];
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  assert_int_equal(unlink(lock), 0);
  OK(weir_store_open(f->state, PIPELINE, &second, &f->err));
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  weir_store_close(second);
}

static void test_a_replaced_file_fences(void **state) {
  fixture *f = *state;
  char away[160];
  snprintf(away, sizeof(away), "%s.away", f->db);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  assert_int_equal(rename(f->db, away), 0);
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  assert_message(f, "moved, deleted or replaced");
  assert_int_equal(weir_store_abort(f->store, 1, &f->err), WEIR_E_FENCED);
}

static void test_a_wal_without_its_file_is_dropped(void **state) {
  fixture *f = *state;
  char command[400];
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(decide(f, 1, 10, false));
  /* As a kill and a careless hand would leave it. */
  snprintf(command, sizeof(command), "mkdir '%s/b' && cp '%s-wal' '%s/b/store.db-wal'",
           f->dir, f->db, f->dir);
  assert_int_equal(system(command), 0);
  weir_store_close(f->store);
  f->store = NULL;
  snprintf(f->state, sizeof(f->state), "%s/b", f->dir);
  open_store(f);
  weir_store_state *s = load(f);
  assert_int_equal(s->last_attempt, 0);
  assert_int_equal(s->token, 1);
  weir_store_state_free(s);
}

static void test_network_file_systems(void **state) {
  (void)state;
  weir_error err = {0};
  assert_int_equal(store_refuse_network(0x6969, "/s", &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "NFS"));
  assert_int_equal(store_refuse_network((int32_t)0xFE534D42, "/s", &err),
                   WEIR_E_INVALID_CONFIG);
  assert_int_equal(store_refuse_network(0xEF53, "/s", &err), WEIR_OK);     /* ext4 */
  assert_int_equal(store_refuse_network(0x01021994, "/s", &err), WEIR_OK); /* tmpfs */
  setenv("WEIR_STATE_ON_NETWORK", "accept-risk", 1);
  assert_int_equal(store_refuse_network(0x6969, "/s", &err), WEIR_OK);
  unsetenv("WEIR_STATE_ON_NETWORK");
}

static void test_read_beside_the_owner(void **state) {
  fixture *f = *state;
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_open_read(f->state, &reader, &f->err));
  for (uint64_t n = 1; n <= 5; n++) {
    OK(decide(f, n, 1000, false));
    see(f, "a", n);
    OK(weir_store_load(reader, &s, &f->err));
    assert_int_equal(s->last_attempt, n + 1);
    assert_int_equal(s->decided[0].cursor.checkpoint, n);
    assert_int_equal(s->token, 1);
    weir_store_state_free(s);
  }
  assert_int_equal(weir_store_reserve(reader, 99, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_check_lease(reader, &f->err), WEIR_E_INVALID_STATE);
  weir_store_close(reader);
  OK(weir_store_check_lease(f->store, &f->err));
  OK(decide(f, 6, 10, false));
}

static void test_read_of_a_closed_store(void **state) {
  fixture *f = *state;
  weir_store *reader = NULL;
  OK(weir_store_reserve(f->store, 3, NULL, 0, &f->err));
  weir_store_close(f->store);
  f->store = NULL;
  OK(weir_store_open_read(f->state, &reader, &f->err));
  weir_store_state *s = NULL;
  OK(weir_store_load(reader, &s, &f->err));
  assert_int_equal(s->last_attempt, 3);
  weir_store_state_free(s);
  open_store(f); /* a reader does not keep an owner out */
  OK(weir_store_reserve(f->store, 4, NULL, 0, &f->err));
  weir_store_close(reader);
  OK(weir_store_reserve(f->store, 5, NULL, 0, &f->err));
}

static void test_nothing_to_read(void **state) {
  fixture *f = *state;
  weir_store *reader = NULL;
  char missing[128];
  snprintf(missing, sizeof(missing), "%s/none", f->dir);
  assert_int_equal(weir_store_open_read(missing, &reader, &f->err), WEIR_E_NOT_FOUND);
  assert_int_equal(mkdir(missing, 0700), 0);
  assert_int_equal(weir_store_open_read(missing, &reader, &f->err), WEIR_E_NOT_FOUND);
  char file[160];
  snprintf(file, sizeof(file), "%s/store.db", missing);
  close(open(file, O_CREAT | O_WRONLY, 0600));
  assert_int_equal(weir_store_open_read(missing, &reader, &f->err), WEIR_E_NOT_FOUND);
  assert_null(reader);
}

/* ---- damage --------------------------------------------------------------------------------------------- */

static void damage(fixture *f, const char *sql) {
  sqlite3 *db = NULL;
  assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
  char *message = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
    fail_msg("%s: %s", sql, message);
  assert_int_not_equal(sqlite3_changes(db), 0);
  sqlite3_close(db);
}

static void test_damaged_rows(void **state) {
  fixture *f = *state;
  static const char *const damages[] = {
      "UPDATE entry SET data=CAST('dddddddddx' AS BLOB) WHERE kind=1",
      "UPDATE entry SET data=CAST('nexx' AS BLOB) WHERE kind=2",
      "UPDATE entry SET present=0 WHERE kind=1",
      "UPDATE entry SET participant=2 WHERE kind=1",
      "UPDATE position SET data=CAST('row 2' AS BLOB)",
      "UPDATE position SET rows=rows+1",
      "UPDATE part SET digest=zeroblob(32)",
      "UPDATE part SET token=7",
      "UPDATE cursor SET checkpoint=9 WHERE kind=1",
      "UPDATE cursor SET kind=2 WHERE kind=1",
      "UPDATE attempt SET state=3 WHERE state=1",
      "UPDATE lease SET last_attempt=1",
      "UPDATE meta SET deployment=zeroblob(16)",
      "UPDATE binding SET data=zeroblob(3)",
      "UPDATE entry SET sum=zeroblob(32)",
      "DELETE FROM entry WHERE kind=1",
      "DELETE FROM part",
      "DELETE FROM attempt",
      "DELETE FROM lease",
      "DELETE FROM meta",
  };
  weir_store_binding pinned = {"a", bytes("id"), 2};
  OK(weir_store_pin(f->store, &pinned, 0, &f->err));
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(decide(f, 1, 10, false));
  weir_store_close(f->store);
  f->store = NULL;
  char save[400], back[400];
  snprintf(save, sizeof(save), "cp '%s' '%s/saved'", f->db, f->dir);
  snprintf(back, sizeof(back), "rm -f '%s'*; cp '%s/saved' '%s'", f->db, f->dir, f->db);
  assert_int_equal(system(save), 0);
  for (size_t i = 0; i < BASE_COUNT(damages); i++) {
    assert_int_equal(system(back), 0);
    damage(f, damages[i]);
    weir_store_state *s = NULL;
    weir_status status = weir_store_open(f->state, PIPELINE, &f->store, &f->err);
    if (!status) status = weir_store_load(f->store, &s, &f->err);
    if (status != WEIR_E_CORRUPT)
      fail_msg("%s: %s", damages[i], weir_status_name(status));
    assert_null(s);
    weir_store_close(f->store);
    f->store = NULL;
    status = weir_store_open_read(f->state, &f->store, &f->err);
    if (!status) status = weir_store_load(f->store, &s, &f->err);
    if (status != WEIR_E_CORRUPT)
      fail_msg("%s: %s", damages[i], weir_status_name(status));
    weir_store_close(f->store);
    f->store = NULL;
  }
}

/* Every byte of the file is damaged once: an error or the same content, never another one. */
static void test_flipped_bytes(void **state) {
  fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(decide(f, 1, 10, false));
  weir_store_close(f->store);
  f->store = NULL;
  base_buf file = {0};
  OK(base_read_file(f->db, 1 << 24, &file, &f->err));
  size_t caught = 0;
  for (size_t i = 0; i < file.size; i += 37) {
    int fd = open(f->db, O_WRONLY);
    uint8_t flipped = file.data[i] ^ 0x41;
    assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
    weir_store_state *s = NULL;
    weir_status status = weir_store_open_read(f->state, &f->store, &f->err);
    if (!status) status = weir_store_load(f->store, &s, &f->err);
    if (!status) {
      assert_string_equal(s->pipeline, PIPELINE);
      assert_int_equal(s->last_attempt, 2);
      assert_int_equal(s->n_attempts, 2);
      assert_int_equal(s->attempts[0].n_descriptors, 1);
      assert_memory_equal(s->attempts[0].descriptors[0].data, "dddddddddd", 10);
      assert_memory_equal(s->positions[0].data, "row 1", 5);
      assert_int_equal(s->decided[0].cursor.checkpoint, 1);
      weir_store_state_free(s);
    } else {
      caught++;
    }
    weir_store_close(f->store);
    f->store = NULL;
    assert_int_equal(pwrite(fd, &file.data[i], 1, (off_t)i), 1);
    close(fd);
  }
  assert_true(caught > 20);
  base_buf_done(&file);
}

static void test_foreign_files(void **state) {
  fixture *f = *state;
  weir_store_close(f->store);
  f->store = NULL;
  damage(f, "PRAGMA user_version=2; UPDATE lease SET token=token");
  assert_int_equal(weir_store_open(f->state, PIPELINE, &f->store, &f->err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_message(f, "version 2");
  damage(f, "PRAGMA application_id=5; UPDATE lease SET token=token");
  assert_int_equal(weir_store_open(f->state, PIPELINE, &f->store, &f->err),
                   WEIR_E_CORRUPT);
  int fd = open(f->db, O_WRONLY | O_TRUNC);
  assert_int_equal(write(fd, "this is no database, by any means at all", 40), 40);
  close(fd);
  assert_int_equal(weir_store_open(f->state, PIPELINE, &f->store, &f->err),
                   WEIR_E_CORRUPT);
  assert_int_equal(weir_store_open_read(f->state, &f->store, &f->err), WEIR_E_CORRUPT);
  assert_null(f->store);
  char under[160];
  snprintf(under, sizeof(under), "%s/state", f->db);
  assert_int_not_equal(weir_store_open(under, PIPELINE, &f->store, &f->err), WEIR_OK);
}

static void test_the_file_stays_small(void **state) {
  fixture *f = *state;
  struct stat st;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 400; n++) {
    OK(decide(f, n, n == 100 ? 12u << 20 : 20000, false));
    see(f, "a", n);
  }
  OK(weir_store_flush(f->store, &f->err));
  char wal[160];
  snprintf(wal, sizeof(wal), "%s-wal", f->db);
  assert_int_equal(stat(wal, &st), 0);
  assert_in_range(st.st_size, 0, 12 << 20);
  reopen_store(f);
  assert_int_equal(stat(f->db, &st), 0);
  assert_in_range(st.st_size, 0, 10 << 20);
}

/* ---- children that fail and die --------------------------------------------------------------------------- */

/* What a child does in `folder`: exit status 0 when all went well, else the number of the step. */
static int child(const char *scenario, const char *folder) {
  fixture fix = {0}, *f = &fix;
  snprintf(f->state, sizeof(f->state), "%s", folder);
  if (weir_store_open(folder, PIPELINE, &f->store, &f->err)) return 10;
  if (strcmp(scenario, "open") == 0) return 0;
  if (strcmp(scenario, "hold") == 0) {
    if (weir_store_reserve(f->store, 1, NULL, 0, &f->err)) return 11;
    if (decide(f, 1, 10, false)) return 12;
    see(f, "a", 1);
    raise(SIGKILL);
  }
  weir_store_binding binding = {"a", bytes("id"), 2};
  if (weir_store_pin(f->store, &binding, 0, &f->err)) goto failed;
  if (weir_store_reserve(f->store, 1, NULL, 0, &f->err)) goto failed;
  if (decide(f, 1, 10, false)) goto failed;
  if (weir_store_abort(f->store, 2, &f->err)) goto failed;
  see(f, "a", 1);
  if (weir_store_flush(f->store, &f->err)) goto failed;
  if (strcmp(scenario, "many") == 0) {
    if (weir_store_reserve(f->store, 3, NULL, 0, &f->err)) goto failed;
    for (uint64_t n = 3; n < 60; n++) {
      if (decide(f, n, 100000, false)) goto failed;
      weir_store_sink s = sink_part("a", n, 1, 0);
      if (weir_store_seen(f->store, "a", &s.cursor, &f->err)) goto failed;
    }
  }
  weir_store_close(f->store);
  return 0;
failed:
  /* A step of unknown outcome ends the store; one that surely did not happen does not. */
  if (f->err.flags & WEIR_ERR_IN_DOUBT) {
    weir_status again = weir_store_check_lease(f->store, NULL);
    weir_store_close(f->store);
    return again ? 20 : 21;
  }
  if (f->err.flags & WEIR_ERR_RETRIABLE) {
    weir_status again = weir_store_check_lease(f->store, NULL);
    weir_store_close(f->store);
    return again ? 31 : 30;
  }
  weir_store_close(f->store);
  return 40;
}

static int run_child(const char *scenario, const char *folder, const char *faults) {
  pid_t pid = fork();
  if (pid == 0) {
    if (faults) setenv("WEIR_FAULTS", faults, 1);
    execl("/proc/self/exe", "test_store", "child", scenario, folder, (char *)NULL);
    _exit(99);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_a_killed_owner_leaves_all(void **state) {
  fixture *f = *state;
  weir_store_close(f->store);
  f->store = NULL;
  assert_int_equal(run_child("hold", f->state, NULL), -SIGKILL);
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_open_read(f->state, &reader, &f->err));
  OK(weir_store_load(reader, &s, &f->err));
  assert_int_equal(s->last_attempt, 2);
  assert_int_equal(s->decided[0].cursor.checkpoint, 1);
  assert_int_equal(s->token, 2);
  assert_int_equal(s->n_seen, 0); /* only remembered */
  weir_store_state_free(s);
  weir_store_close(reader);
  open_store(f);
  s = load(f);
  assert_int_equal(s->last_attempt, 2);
  assert_int_equal(s->token, 3);
  weir_store_state_free(s);
}

static void test_another_process_is_fenced(void **state) {
  fixture *f = *state;
  assert_int_equal(run_child("open", f->state, NULL), 10);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
}

#if defined(WEIR_FAULTS)
typedef struct kill_case {
  const char *point;
  uint64_t last_attempt; /* what must be found afterwards */
  uint64_t decided;
  size_t n_attempts, n_bindings, n_seen;
} kill_case;

/* The order of the child's steps: pin, reserve 1, decide 1 (reserves 2), abort 2, flush. */
static const kill_case kill_cases[] = {
    {"store.open.locked", 0, 0, 0, 0, 0},
    {"store.create.before", 0, 0, 0, 0, 0},
    {"store.create.after", 0, 0, 0, 0, 0},
    {"store.pin.before", 0, 0, 0, 0, 0},
    {"store.pin.after", 0, 0, 0, 1, 0},
    {"store.reserve.before", 0, 0, 0, 1, 0},
    {"store.reserve.after", 1, 0, 1, 1, 0},
    {"store.decide.before", 1, 0, 1, 1, 0},
    {"store.decide.after", 2, 1, 2, 1, 0},
    {"store.abort.before", 2, 1, 2, 1, 0},
    {"store.abort.after", 2, 1, 2, 1, 0},
    {"store.flush.before", 2, 1, 2, 1, 0},
    {"store.flush.after", 2, 1, 2, 1, 1},
    {"store.commit.before=kill@3", 1, 0, 1, 1, 0},
    {"store.commit.sync=kill@3", 1, 0, 1, 1, 0},
};

static void test_killed_at_every_point(void **state) {
  fixture *f = *state;
  weir_store_close(f->store);
  f->store = NULL;
  for (size_t i = 0; i < BASE_COUNT(kill_cases); i++) {
    const kill_case *k = &kill_cases[i];
    char faults[96];
    snprintf(f->state, sizeof(f->state), "%s/kill%zu", f->dir, i);
    snprintf(faults, sizeof(faults), "%s%s", k->point,
             strchr(k->point, '=') ? "" : "=kill");
    int rc = run_child("steps", f->state, faults);
    if (rc != -SIGKILL) fail_msg("%s: the child ended with %d", k->point, rc);
    open_store(f);
    weir_store_state *s = load(f);
    if (s->last_attempt != k->last_attempt || s->n_attempts != k->n_attempts ||
        s->n_bindings != k->n_bindings || s->n_seen != k->n_seen ||
        (s->n_decided ? s->decided[0].cursor.checkpoint : 0) != k->decided) {
      fail_msg("%s: last %llu, %zu attempts, %zu bindings, %zu seen", k->point,
               (unsigned long long)s->last_attempt, s->n_attempts, s->n_bindings,
               s->n_seen);
    }
    OK(weir_store_reserve(f->store, s->last_attempt + 1, NULL, 0, &f->err));
    weir_store_state_free(s);
    weir_store_close(f->store);
    f->store = NULL;
  }
  open_store(f);
}

static void test_killed_while_taking_the_lease(void **state) {
  fixture *f = *state;
  uint64_t token = token_of(f);
  weir_store_close(f->store);
  f->store = NULL;
  assert_int_equal(run_child("open", f->state, "store.lease.before=kill"), -SIGKILL);
  assert_int_equal(run_child("open", f->state, "store.lease.after=kill"), -SIGKILL);
  assert_int_equal(run_child("many", f->state, "store.checkpoint.before=kill"), -SIGKILL);
  open_store(f);
  assert_int_equal(token_of(f), token + 3);
}

static void test_failures_say_what_is_known(void **state) {
  fixture *f = *state;
  static const struct {
    const char *faults;
    int rc;
  } cases[] = {
      {"store.reserve.before=fail", 30},
      {"store.decide.before=fail", 30},
      {"store.abort.before=fail", 30},
      {"store.pin.before=fail", 30},
      {"store.flush.before=fail", 30},
      {"store.commit.before=fail@3", 30},
      {"store.commit.sync=fail@2", 20},
      {"store.decide.after=fail", 20},
      {"store.reserve.after=fail", 20},
      {"store.abort.after=fail", 20},
      {"store.pin.after=fail", 20},
      {"store.flush.after=fail", 20},
      {"store.checkpoint.before=fail", 40},
      {"store.create.before=fail", 10},
      {"store.create.after=fail", 10},
      {"store.open.locked=fail", 10},
      {"store.none=fail", 0},
  };
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/fail%zu", f->dir, i);
    int rc = run_child("many", folder, cases[i].faults);
    if (rc != cases[i].rc) fail_msg("%s: %d, not %d", cases[i].faults, rc, cases[i].rc);
  }
}
#endif

#define BOTH(test)                                             \
  cmocka_unit_test_setup_teardown(test, setup_disk, teardown), \
      cmocka_unit_test_setup_teardown(test, setup_memory, teardown)
#define DISK(test) cmocka_unit_test_setup_teardown(test, setup_disk, teardown)

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "child") == 0) return child(argv[2], argv[3]);
  const struct CMUnitTest tests[] = {
      BOTH(test_new_store_is_empty),
      BOTH(test_reserve_and_decide_come_back),
      BOTH(test_positions_absent_and_empty),
      BOTH(test_numbers_and_outcomes_are_written_once),
      BOTH(test_a_refused_decision_leaves_nothing),
      BOTH(test_bounds),
      BOTH(test_abort_owes_its_intents),
      BOTH(test_the_last_published_are_kept),
      BOTH(test_an_idle_sink_keeps_only_its_own),
      BOTH(test_without_committable_sinks_it_stays_small),
      BOTH(test_pin),
      BOTH(test_a_broken_step_ends_the_store),
      DISK(test_reopen_keeps_the_deployment),
      DISK(test_modes),
      DISK(test_another_pipeline_is_refused),
      DISK(test_a_second_opener_is_fenced),
      DISK(test_a_lost_lease_writes_nothing),
      DISK(test_check_lease_sees_the_newer_owner),
      DISK(test_a_replaced_file_fences),
      DISK(test_a_wal_without_its_file_is_dropped),
      DISK(test_network_file_systems),
      DISK(test_read_beside_the_owner),
      DISK(test_read_of_a_closed_store),
      DISK(test_nothing_to_read),
      DISK(test_damaged_rows),
      DISK(test_flipped_bytes),
      DISK(test_foreign_files),
      DISK(test_the_file_stays_small),
      DISK(test_a_killed_owner_leaves_all),
      DISK(test_another_process_is_fenced),
#if defined(WEIR_FAULTS)
      DISK(test_killed_at_every_point),
      DISK(test_killed_while_taking_the_lease),
      DISK(test_failures_say_what_is_known),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
