/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint store: one suite for the store on disk, the one in memory and the one in PostgreSQL. What
 * only one of them can show is in test_store_disk.c and test_store_postgres.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/sql.h"
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
  assert_true(f->kind == STORES_MEMORY ? s->token == 51 : s->token > 51);
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

/* Whoever asks for what cannot be is told so, and nothing of it is there. */
static void test_what_cannot_be_asked_for(void **state) {
  stores_fixture *f = *state;
  weir_store_entry nameless = {"", 1, 0, NULL, 0}, unnamed = {NULL, 1, 0, NULL, 0};
  weir_store_entry empty = {"a", 1, 1, NULL, 4};
  weir_store_position stray = {"", 0, NULL, 0, 0, 0}, bare = {"in", 1, NULL, 4, 0, 0};
  weir_store_sink sink = stores_sink("a", 1, 1, 5), other = stores_sink("a", 1, 2, 5);
  weir_store_sink no_sink = stores_sink("", 1, 1, 5);
  weir_store_binding none = {"", stores_bytes("x"), 1};
  weir_cursor never = {0};
  const weir_store_decision decisions[] = {
      {.attempt = 0, .token = 1},
      {.attempt = 1, .token = 1, .next_attempt = UINT64_MAX},
      {.attempt = 1, .token = 1, .sinks = &no_sink, .n_sinks = 1},
      {.attempt = 1, .token = 1, .sinks = &other, .n_sinks = 1},
      {.attempt = 1, .token = 1, .positions = &stray, .n_positions = 1},
      {.attempt = 1, .token = 1, .positions = &bare, .n_positions = 1},
      {.attempt = 1, .token = 1, .descriptors = &empty, .n_descriptors = 1},
      {.attempt = 1, .token = 1, .intents = &nameless, .n_intents = 1},
  };
  const weir_store_adoption adoptions[] = {
      {.pipeline = STORES_PIPELINE, .token = 0, .last_attempt = 1},
      {.pipeline = STORES_PIPELINE, .token = 1, .last_attempt = 0},
      {.pipeline = STORES_PIPELINE,
       .token = 1,
       .last_attempt = 1,
       .positions = &bare,
       .n_positions = 1},
      {.pipeline = STORES_PIPELINE,
       .token = 1,
       .last_attempt = 1,
       .sinks = &no_sink,
       .n_sinks = 1},
  };
  weir_store *s = f->store;
#define REFUSED(call) assert_int_equal((call), WEIR_E_INTERNAL)
  REFUSED(weir_store_reserve(s, 1, &nameless, 1, &f->err));
  REFUSED(weir_store_reserve(s, 1, &unnamed, 1, &f->err));
  REFUSED(weir_store_reserve(s, 1, &empty, 1, &f->err));
  for (size_t i = 0; i < BASE_COUNT(decisions); i++)
    REFUSED(weir_store_decide(s, &decisions[i], &f->err));
  for (size_t i = 0; i < BASE_COUNT(adoptions); i++)
    REFUSED(weir_store_adopt(s, &adoptions[i], &f->err));
  REFUSED(weir_store_abort(s, 0, NULL, 0, &f->err));
  REFUSED(weir_store_pin(s, &none, 0, &f->err));
  REFUSED(weir_store_resolve(s, "", 1, NULL, 0, &f->err));
  REFUSED(weir_store_seen(s, "a", &never, &f->err));
  REFUSED(weir_store_seen(s, "", &sink.cursor, &f->err));
  REFUSED(weir_store_cleaned(s, "a", 0, &f->err));
  OK(weir_store_flush(s, &f->err));
  weir_store_state *loaded = stores_load(f);
  assert_int_equal(loaded->last_attempt, 0);
  assert_int_equal(loaded->n_attempts + loaded->n_bindings + loaded->n_seen, 0);
  weir_store_state_free(loaded);
}

/* The latest word on a sink counts, however many lines there are. */
static void test_lines_are_remembered(void **state) {
  stores_fixture *f = *state;
  char sink[16];
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(stores_decide(f, 1, 10, true));
  OK(weir_store_cleaned(f->store, "a", 7, &f->err)); /* no such attempt: no harm */
  for (int i = 0; i < 20; i++) {
    snprintf(sink, sizeof(sink), "s%d", i);
    OK(stores_see(f, sink, 1));
    OK(stores_see(f, "b", (uint64_t)i + 1));
  }
  OK(weir_store_flush(f->store, &f->err));
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->n_seen, 21);
  assert_string_equal(s->seen[0].sink_id, "b");
  assert_int_equal(s->seen[0].cursor.checkpoint, 20);
  weir_store_state_free(s);
}

/* Rows with a right sum that make no sense: written by no weir that is right. */
typedef struct sense {
  sql_statement id;
  const char *table;
  int n;
  sql_value row[8];
  const char *message;
} sense;

static weir_status put_row(stores_fixture *f, const sense *c) {
  sql_store *sql = (sql_store *)f->store;
  OK(sql->driver->begin(sql, &f->err));
  OK(sql_put(sql, c->id, c->table, c->row, c->n, NULL, &f->err));
  return sql->driver->commit(sql, &f->err);
}

#define INT(v) {.type = SQL_INTEGER, .i = (v)}
#define TEXT(v) {.type = SQL_TEXT, .data = (v), .size = sizeof(v) - 1}
#define BLOB(n) \
  {.type = SQL_BLOB, .data = "0123456789abcdef0123456789abcdef", .size = (n)}
#define PART(attempt, digest) \
  {INT(attempt), TEXT("s"), INT(1), BLOB(digest), INT(1), INT(5), INT(50), INT(0)}
#define ENTRY(attempt, kind)                              \
  {                                                       \
    INT(attempt), INT(kind), TEXT("s"), INT(1), INT(0), { \
      .type = SQL_NULL                                    \
    }                                                     \
  }

static void test_rows_that_make_no_sense(void **state) {
  stores_fixture *f = *state;
  static const sense cases[] = {
      {SQL_META_SET, "meta", 2, {TEXT("orders"), BLOB(3)}, "no UUID"},
      {SQL_LEASE_TAKE, "lease", 2, {INT(0), INT(3)}, "lacks its pipeline or its lease"},
      {SQL_ATTEMPT_ADD, "attempt", 3, {INT(9), INT(0), INT(1)}, "unknown state"},
      {SQL_ATTEMPT_ADD, "attempt", 3, {INT(9), INT(4), INT(1)}, "unknown state"},
      {SQL_PART_ADD, "part", 8, PART(1, 5), "another length"},
      {SQL_PART_ADD, "part", 8, PART(4, 32), "has no decision"}, /* reserved only */
      {SQL_PART_ADD, "part", 8, PART(3, 32), "has no decision"}, /* between two others */
      {SQL_PART_ADD, "part", 8, PART(9, 32), "has no decision"}, /* behind them all */
      {SQL_ENTRY_ADD, "entry", 6, ENTRY(4, SQL_DESCRIPTOR), "has no attempt"},
      {SQL_ENTRY_ADD, "entry", 6, ENTRY(1, SQL_INTENT), "has no attempt"},
      {SQL_ENTRY_ADD, "entry", 6, ENTRY(3, SQL_INTENT), "has no attempt"},
      {SQL_ENTRY_ADD, "entry", 6, ENTRY(1, SQL_DESCRIPTOR), "descriptors are missing"},
      {SQL_CURSOR_SET,
       "cursor",
       8,
       {INT(SQL_SEEN), TEXT("s"), INT(1), INT(1), BLOB(31), INT(1), INT(1), INT(1)},
       "another length"},
  };
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    stores_close(f);
    stores_open(f);
    OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
    OK(stores_decide(f, 1, 10, false));
    OK(weir_store_abort(f->store, 2, NULL, 0, &f->err));
    OK(weir_store_reserve(f->store, 4, NULL, 0, &f->err));
    OK(put_row(f, &cases[i]));
    weir_store_state *s = NULL;
    weir_status status = weir_store_load(f->store, &s, &f->err);
    if (status != WEIR_E_CORRUPT || !strstr(f->err.message, cases[i].message))
      fail_msg("case %zu: %s '%s'", i, weir_status_name(status), f->err.message);
    assert_null(s);
  }
}

static void test_more_than_memory(void **state) {
  stores_fixture *f = *state;
  store_state *s = store_state_new(&f->err);
  assert_non_null(s);
  assert_null(store_state_alloc(s, SIZE_MAX / 2, 4, &f->err));
  assert_int_equal(f->err.code, WEIR_E_NOMEM);
  assert_null(store_state_alloc(s, SIZE_MAX, 1, &f->err));
  stores_assert_message(f, "too large to load");
  weir_store_state_free(store_state_public(s));
}

#define MEMORY(test) \
  cmocka_unit_test_setup_teardown(test, stores_setup_memory, stores_teardown)
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
      MEMORY(test_what_cannot_be_asked_for),
      EACH(test_lines_are_remembered),
      MEMORY(test_rows_that_make_no_sense),
      MEMORY(test_more_than_memory),
  };
  return cmocka_run_group_tests(tests, stores_start_server, stores_stop_server);
}
