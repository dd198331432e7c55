/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint store: one suite for the store on disk, the one in memory and the one in PostgreSQL. What
 * only one of them can show is in test_store_disk.c and test_store_postgres.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/stores.h"

static void test_new_store_is_empty(void **state) {
  stores_fixture *f = *state;
  weir_store_state *s = stores_load(f);
  static const uint8_t none[WEIR_UUID_SIZE] = {0};
  assert_string_equal(s->pipeline, STORES_PIPELINE);
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
  stores_fixture *f = *state;
  weir_store_entry intents[] = {{"b", 1, 0, NULL, 0},
                                {"a", 2, 1, stores_bytes(""), 0},
                                {"a", 1, 1, stores_bytes("x\0y"), 3}};
  OK(weir_store_reserve(f->store, 7, intents, 3, &f->err));
  stores_reopen(f);
  weir_store_state *s = stores_load(f);
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

  OK(stores_decide(f, 7, 100, true));
  uint64_t token = stores_token(f);
  stores_reopen(f);
  s = stores_load(f);
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
  stores_fixture *f = *state;
  weir_store_position positions[] = {{"one", 0, NULL, 0, 0, 0},
                                     {"two", 1, NULL, 0, 9, 0}};
  weir_store_decision d = {
      .attempt = 1, .token = 1, .positions = positions, .n_positions = 2};
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_decide(f->store, &d, &f->err));
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->n_positions, 2);
  assert_false(s->positions[0].present);
  assert_true(s->positions[1].present);
  assert_int_equal(s->positions[1].size, 0);
  assert_int_equal(s->positions[1].rows, 9);
  assert_int_equal(s->n_attempts, 1); /* no committable sink: kept as one of the last */
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_COMMIT);
  weir_store_state_free(s);
}

/* The Abort is one transaction with what it costs, also before anything was decided. */
static void test_an_abort_keeps_what_it_lost(void **state) {
  stores_fixture *f = *state;
  weir_store_position pipe[] = {{"pipe", 0, NULL, 0, 0, 7}};
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_abort(f->store, 1, pipe, 1, &f->err));
  stores_reopen(f);
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->n_positions, 1);
  assert_string_equal(s->positions[0].source, "pipe");
  assert_false(s->positions[0].present);
  assert_int_equal(s->positions[0].rows, 0);
  assert_int_equal(s->positions[0].lost, 7);
  weir_store_state_free(s);
  pipe[0].source = NULL;
  OK(weir_store_reserve(f->store, 2, NULL, 0, &f->err));
  assert_int_equal(weir_store_abort(f->store, 2, pipe, 1, &f->err), WEIR_E_INTERNAL);
  pipe[0] = (weir_store_position){"pipe", 1, NULL, 4, 0, 8};
  assert_int_equal(weir_store_abort(f->store, 2, pipe, 1, &f->err), WEIR_E_INTERNAL);
  OK(weir_store_abort(f->store, 2, NULL, 0, &f->err));
}

static void test_numbers_and_outcomes_are_written_once(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 5, NULL, 0, &f->err));
  assert_int_equal(weir_store_reserve(f->store, 5, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_reserve(f->store, 4, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_reserve(f->store, 0, NULL, 0, &f->err), WEIR_E_INTERNAL);
  assert_int_equal(stores_decide(f, 6, 1, false), WEIR_E_INVALID_STATE);
  stores_assert_message(f, "attempt 6");
  OK(stores_decide(f, 5, 1, false));
  assert_int_equal(stores_decide(f, 5, 1, false), WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_abort(f->store, 5, NULL, 0, &f->err), WEIR_E_INVALID_STATE);
  OK(weir_store_abort(f->store, 6, NULL, 0, &f->err));
  assert_int_equal(weir_store_abort(f->store, 6, NULL, 0, &f->err), WEIR_E_INVALID_STATE);
  assert_int_equal(stores_decide(f, 6, 1, false), WEIR_E_INVALID_STATE);
  stores_reopen(f);
  assert_int_equal(weir_store_reserve(f->store, 6, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  OK(weir_store_reserve(f->store, 7, NULL, 0, &f->err));
}

static void test_a_refused_decision_leaves_nothing(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  weir_store_sink sink = stores_sink("a", 1, 9, 5);
  weir_store_decision d = {
      .attempt = 1, .token = 9, .sinks = &sink, .n_sinks = 1, .next_attempt = 2};
  assert_int_equal(weir_store_decide(f->store, &d, &f->err), WEIR_E_INVALID_STATE);
  stores_assert_message(f, "token 9");
  /* The reserved number behind it is taken: the decision before it goes too. */
  d.token = sink.cursor.token = 1;
  d.next_attempt = 1;
  assert_int_equal(weir_store_decide(f->store, &d, &f->err), WEIR_E_INVALID_STATE);
  weir_store_state *s = stores_load(f);
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
  stores_fixture *f = *state;
  uint8_t *big = calloc(1, WEIR_MAX_DESCRIPTOR + 1);
  weir_store_entry intents[65];
  for (size_t i = 0; i < 65; i++)
    intents[i] = (weir_store_entry){"a", i + 1, 1, big, WEIR_MAX_INTENT};
  assert_int_equal(weir_store_reserve(f->store, 1, intents, 65, &f->err),
                   WEIR_E_INTERNAL);
  intents[0].size++;
  assert_int_equal(weir_store_reserve(f->store, 1, intents, 1, &f->err), WEIR_E_INTERNAL);
  stores_assert_message(f, "65537 bytes");
  intents[0].size--;
  OK(weir_store_reserve(f->store, 1, intents, 64, &f->err));
  assert_int_equal(stores_decide(f, 1, WEIR_MAX_DESCRIPTOR + 1, false), WEIR_E_INTERNAL);
  OK(stores_decide(f, 1, WEIR_MAX_DESCRIPTOR, false));
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->attempts[0].descriptors[0].size, WEIR_MAX_DESCRIPTOR);
  weir_store_state_free(s);
  free(big);
}

static void test_abort_owes_its_intents(void **state) {
  stores_fixture *f = *state;
  weir_store_entry intents[] = {{"a", 1, 1, stores_bytes("one"), 3},
                                {"a", 2, 1, stores_bytes("two"), 3},
                                {"b", 1, 0, NULL, 0}};
  OK(weir_store_reserve(f->store, 1, intents, 3, &f->err));
  OK(weir_store_abort(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_reserve(f->store, 2, intents, 3, &f->err));
  OK(weir_store_cleaned(f->store, "a", 2, &f->err)); /* not aborted: nothing may go */
  OK(weir_store_cleaned(f->store, "a", 1, &f->err));
  OK(weir_store_flush(f->store, &f->err));
  stores_reopen(f);
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->n_attempts, 2);
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_ABORT);
  assert_int_equal(s->attempts[0].n_intents, 1);
  assert_string_equal(s->attempts[0].intents[0].sink_id, "b");
  assert_false(s->attempts[0].intents[0].present);
  assert_int_equal(s->attempts[1].n_intents, 3);
  weir_store_state_free(s);
  OK(weir_store_cleaned(f->store, "b", 1, &f->err));
  OK(weir_store_abort(f->store, 2, NULL, 0,
                      &f->err)); /* takes the remembered line along */
  s = stores_load(f);
  assert_int_equal(s->n_attempts, 1);
  assert_int_equal(s->attempts[0].attempt, 2);
  weir_store_state_free(s);
  OK(weir_store_reserve(f->store, 3, NULL, 0, &f->err));
  OK(weir_store_abort(f->store, 3, NULL, 0, &f->err)); /* owes nothing */
  s = stores_load(f);
  assert_int_equal(s->n_attempts, 1);
  assert_int_equal(s->last_attempt, 3);
  weir_store_state_free(s);
}

static void test_the_last_published_are_kept(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 30; n++) {
    OK(stores_decide(f, n, 50, false));
    if (n <= 25) OK(stores_see(f, "a", n));
  }
  OK(weir_store_flush(f->store, &f->err));
  weir_store_state *s = stores_load(f);
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
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 60; n++) {
    OK(stores_decide(f, n, 50, true));
    OK(stores_see(f, "a", n));
  }
  OK(weir_store_flush(f->store, &f->err));
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->n_attempts, 61); /* b owes all of them */
  for (size_t i = 0; i < 50; i++) {
    assert_int_equal(s->attempts[i].n_sinks, 1);
    assert_string_equal(s->attempts[i].sinks[0].sink_id, "b");
    assert_int_equal(s->attempts[i].n_descriptors, 1);
  }
  assert_int_equal(s->attempts[50].n_sinks, 2);
  weir_store_state_free(s);
  OK(stores_see(f, "b", 60));
  OK(weir_store_flush(f->store, &f->err));
  s = stores_load(f);
  assert_int_equal(s->n_attempts, 11);
  assert_int_equal(s->attempts[0].attempt, 51);
  weir_store_state_free(s);
}

static void test_without_committable_sinks_it_stays_small(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 40; n++) {
    weir_store_decision d = {.attempt = n, .token = 1, .next_attempt = n + 1};
    OK(weir_store_decide(f->store, &d, &f->err));
  }
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->n_attempts, WEIR_STORE_KEEP + 1);
  assert_int_equal(s->last_attempt, 41);
  weir_store_state_free(s);
}

static void test_pin(void **state) {
  stores_fixture *f = *state;
  weir_store_binding one = {"a", stores_bytes("id int64"), 8};
  weir_store_binding two = {"a", stores_bytes("id utf8"), 7};
  weir_store_binding other = {"b", stores_bytes(""), 0};
  OK(weir_store_pin(f->store, &one, 0, &f->err));
  OK(weir_store_pin(f->store, &one, 0, &f->err));
  OK(weir_store_pin(f->store, &other, 0, &f->err));
  assert_int_equal(weir_store_pin(f->store, &two, 0, &f->err), WEIR_E_CONFLICT);
  stores_reopen(f);
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->n_bindings, 2);
  assert_int_equal(s->bindings[0].size, 8);
  assert_memory_equal(s->bindings[0].data, "id int64", 8);
  assert_int_equal(s->bindings[1].size, 0);
  weir_store_state_free(s);
  OK(weir_store_pin(f->store, &two, 1, &f->err));
  s = stores_load(f);
  assert_memory_equal(s->bindings[0].data, "id utf8", 7);
  weir_store_state_free(s);
}

static void test_resolve(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_resolve(f->store, "a", 7, stores_bytes("given-up"), 8, &f->err));
  OK(weir_store_resolve(f->store, "a", 7, stores_bytes("given-up"), 8, &f->err));
  assert_int_equal(
      weir_store_resolve(f->store, "a", 7, stores_bytes("published"), 9, &f->err),
      WEIR_E_CONFLICT);
  stores_reopen(f);
  weir_store_state *s = stores_load(f);
  const weir_store_binding *found = weir_store_resolved(s, "a", 7);
  assert_non_null(found);
  assert_memory_equal(found->data, "given-up", 8);
  assert_null(weir_store_resolved(s, "a", 77));
  assert_null(weir_store_resolved(s, "aa", 7));
  assert_null(weir_store_resolved(s, "b", 7));
  assert_null(weir_store_resolved(s, "", 7));
  weir_store_state_free(s);
  assert_int_equal(weir_store_resolve(f->store, "a", 0, NULL, 0, &f->err),
                   WEIR_E_INTERNAL);
}

/* What a lost store is made of is there whole, under a lease that no target has seen, and once. */
static void test_adopt(void **state) {
  stores_fixture *f = *state;
  weir_store_sink sinks[] = {stores_sink("a", 7, 50, 400), stores_sink("b", 5, 50, 30)};
  weir_store_position at = {"orders", 1, stores_bytes("p7"), 2, 0, 0};
  weir_store_adoption from = {.struct_size = sizeof(from),
                              .pipeline = STORES_PIPELINE,
                              .token = 51,
                              .last_attempt = 9,
                              .sinks = sinks,
                              .n_sinks = 2,
                              .positions = &at,
                              .n_positions = 1};
  memset(from.deployment, 0xd7, sizeof(from.deployment));
  weir_store_adoption foreign = from;
  foreign.pipeline = "other";
  assert_int_equal(weir_store_adopt(f->store, &foreign, &f->err), WEIR_E_INVALID_STATE);
  OK(weir_store_adopt(f->store, &from, &f->err));
  OK(weir_store_check_lease(f->store, &f->err));
  assert_int_equal(weir_store_adopt(f->store, &from, &f->err), WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_reserve(f->store, 9, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->token, 51);
  weir_store_state_free(s);
  stores_reopen(f);
  s = stores_load(f);
  assert_int_equal(s->token, f->kind == STORES_MEMORY ? 51 : 52);
  assert_int_equal(s->last_attempt, 9);
  assert_memory_equal(s->deployment, from.deployment, sizeof(from.deployment));
  assert_int_equal(s->n_decided, 2);
  assert_int_equal(s->n_seen, 2);
  assert_true(weir_cursor_equal(&s->seen[0].cursor, &sinks[0].cursor));
  assert_int_equal(s->decided[1].rows, 30);
  assert_int_equal(s->n_positions, 1);
  assert_memory_equal(s->positions[0].data, "p7", 2);
  weir_store_state_free(s);
  OK(weir_store_reserve(f->store, 10, NULL, 0, &f->err));
}

static void test_adopt_is_for_a_store_of_nothing(void **state) {
  stores_fixture *f = *state;
  weir_store_adoption from = {.struct_size = sizeof(from),
                              .pipeline = STORES_PIPELINE,
                              .token = 51,
                              .last_attempt = 9};
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  assert_int_equal(weir_store_adopt(f->store, &from, &f->err), WEIR_E_INVALID_STATE);
}

static void test_a_broken_step_ends_the_store(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  weir_store_sink sink = stores_sink("a", 1, 1, 5);
  weir_store_entry stray = {"nobody", 1, 1, stores_bytes("x"), 1};
  weir_store_decision d = {.attempt = 1,
                           .token = 1,
                           .sinks = &sink,
                           .n_sinks = 1,
                           .descriptors = &stray,
                           .n_descriptors = 1};
  assert_int_equal(weir_store_decide(f->store, &d, &f->err), WEIR_E_INTERNAL);
  memset(&f->err, 0, sizeof(f->err));
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_INTERNAL);
  stores_assert_message(f, "not part of it");
  assert_int_equal(weir_store_reserve(f->store, 2, NULL, 0, NULL), WEIR_E_INTERNAL);
  weir_store_state *s = NULL;
  assert_int_equal(weir_store_load(f->store, &s, &f->err), WEIR_E_INTERNAL);
  assert_null(s);
  if (f->kind == STORES_MEMORY) return;
  stores_reopen(f);
  s = stores_load(f);
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_RESERVED);
  weir_store_state_free(s);
}

#define EACH(test)                                                                 \
  cmocka_unit_test_setup_teardown(test, stores_setup_disk, stores_teardown),       \
      cmocka_unit_test_setup_teardown(test, stores_setup_memory, stores_teardown), \
      cmocka_unit_test_setup_teardown(test, stores_setup_postgres, stores_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      EACH(test_new_store_is_empty),
      EACH(test_reserve_and_decide_come_back),
      EACH(test_positions_absent_and_empty),
      EACH(test_an_abort_keeps_what_it_lost),
      EACH(test_numbers_and_outcomes_are_written_once),
      EACH(test_a_refused_decision_leaves_nothing),
      EACH(test_bounds),
      EACH(test_abort_owes_its_intents),
      EACH(test_the_last_published_are_kept),
      EACH(test_an_idle_sink_keeps_only_its_own),
      EACH(test_without_committable_sinks_it_stays_small),
      EACH(test_pin),
      EACH(test_resolve),
      EACH(test_adopt),
      EACH(test_adopt_is_for_a_store_of_nothing),
      EACH(test_a_broken_step_ends_the_store),
  };
  return cmocka_run_group_tests(tests, stores_start_server, stores_stop_server);
}
