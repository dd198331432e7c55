/* SPDX-License-Identifier: Apache-2.0 */
#include "support/coord_bench.h"

#include <stdio.h>

static const char *const lane_names[] = {"orders", "clicks", "push/0", "pipe"};
static const uint8_t ephemeral[] = {0, 0, 0, 1};

void bench_new(bench *b, const coord_sink *sinks, uint32_t n_sinks, uint32_t n_lanes,
               const weir_store_state *state) {
  memset(b, 0, sizeof(*b));
  b->sinks = sinks;
  b->n_sinks = n_sinks;
  b->n_lanes = n_lanes;
  const coord_config config = {.sinks = sinks,
                               .n_sinks = n_sinks,
                               .lanes = lane_names,
                               .ephemeral = ephemeral,
                               .n_lanes = n_lanes,
                               .interval_ns = 1000 * BENCH_MS,
                               .timeout_ns = 60000 * BENCH_MS,
                               .backoff_min_ns = 100 * BENCH_MS,
                               .backoff_max_ns = 1000 * BENCH_MS};
  weir_status status = coord_new(&config, state, 7, &b->c, &b->err);
  if (status) fail_msg("coord_new: %s", b->err.message);
}

void bench_done(bench *b) {
  coord_free(b->c);
  b->c = NULL;
}

weir_status bench_try(bench *b, coord_event event) {
  weir_status status = coord_step(b->c, b->now, &event, &b->err);
  while (b->n_log < BASE_COUNT(b->log) && coord_next(b->c, &b->log[b->n_log])) b->n_log++;
  assert_true(b->n_log < BASE_COUNT(b->log));
  return status;
}

void bench_send(bench *b, coord_event event) {
  if (bench_try(b, event)) fail_msg("event %d: %s", (int)event.type, b->err.message);
}

const coord_command *bench_take(bench *b, coord_command_type type) {
  if (b->read == b->n_log) {
    fail_msg("no command, expected %d, in phase '%s'", (int)type, bench_phase(b));
  }
  const coord_command *command = &b->log[b->read++];
  if (command->type != type) {
    fail_msg("command %d (sink %d, attempt %llu), expected %d, in phase '%s'",
             (int)command->type, (int)command->sink, (unsigned long long)command->attempt,
             (int)type, bench_phase(b));
  }
  return command;
}

void bench_skip(bench *b) {
  b->read = b->n_log;
}

void bench_none(bench *b) {
  if (b->read != b->n_log) {
    fail_msg("unexpected command %d, in phase '%s'", (int)b->log[b->read].type,
             bench_phase(b));
  }
}

void bench_tick(bench *b, int64_t later_ns) {
  b->now += later_ns;
  bench_send(b, bench_event(COORD_TICK));
}

const char *bench_phase(bench *b) {
  coord_view view;
  coord_look(b->c, &view);
  return view.phase;
}

/* ---- events */

coord_event bench_event(coord_event_type type) {
  return (coord_event){.type = type, .sink = COORD_NONE, .lane = COORD_NONE};
}

coord_event bench_of(coord_event_type type, uint32_t sink, uint32_t participant,
                     uint64_t attempt) {
  return (coord_event){.type = type,
                       .sink = sink,
                       .participant = participant,
                       .lane = COORD_NONE,
                       .attempt = attempt};
}

coord_event bench_of_lane(coord_event_type type, uint32_t lane, uint64_t attempt) {
  return (coord_event){
      .type = type, .sink = COORD_NONE, .lane = lane, .attempt = attempt};
}

coord_event bench_with(coord_event event, const char *bytes) {
  assert_int_equal(weir_bytes_copy(&event.bytes, bytes, strlen(bytes), NULL), WEIR_OK);
  return event;
}

const weir_error *bench_error(weir_status code, uint32_t flags) {
  static weir_error error;
  weir_error_set(&error, code, flags, "said the test");
  return &error;
}

/* ---- stretches */

/* Where a lane is told of an attempt is asserted where it matters. */
static void pass_tells(bench *b) {
  while (b->read < b->n_log && b->log[b->read].type == COORD_TELL_LANE) b->read++;
}

void bench_begin_all(bench *b, uint64_t attempt) {
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; b->sinks[i].committable && k <= b->sinks[i].participants; k++) {
      const coord_command *begin = bench_take(b, COORD_BEGIN);
      assert_int_equal(begin->sink, i);
      assert_int_equal(begin->participant, k);
      assert_int_equal(begin->attempt, attempt);
    }
  }
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; b->sinks[i].committable && k <= b->sinks[i].participants; k++) {
      pass_tells(b);
      bench_none(b);
      bench_send(b, bench_of(COORD_BEGUN, i, k, attempt));
    }
  }
  assert_int_equal(bench_take(b, COORD_OPEN_GATES)->attempt, attempt);
}

void bench_reserve(bench *b, uint64_t attempt) {
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; b->sinks[i].committable && k <= b->sinks[i].participants; k++) {
      assert_int_equal(bench_take(b, COORD_GET_INTENT)->attempt, attempt);
    }
  }
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; b->sinks[i].committable && k <= b->sinks[i].participants; k++) {
      bench_none(b);
      bench_send(b, bench_with(bench_of(COORD_INTENT, i, k, attempt), "intent"));
    }
  }
  assert_int_equal(bench_take(b, COORD_RESERVE)->attempt, attempt);
  bench_none(b);
  bench_send(b, bench_of(COORD_RESERVED, COORD_NONE, 0, attempt));
  bench_begin_all(b, attempt);
}

void bench_open(bench *b, const coord_sink *sinks, uint32_t n_sinks, uint32_t n_lanes) {
  bench_new(b, sinks, n_sinks, n_lanes, NULL);
  bench_send(b, bench_event(COORD_START));
  for (uint32_t i = 0; i < n_sinks; i++) {
    if (sinks[i].committable) assert_int_equal(bench_take(b, COORD_TAKE_OVER)->sink, i);
  }
  for (uint32_t i = 0; i < n_sinks; i++) {
    if (sinks[i].committable) bench_send(b, bench_of(COORD_OBSERVED, i, 0, 0));
  }
  bench_reserve(b, 1);
}

void bench_seal(bench *b, uint64_t attempt, const char *position, uint64_t rows) {
  assert_int_equal(bench_take(b, COORD_SEND_BARRIERS)->attempt, attempt);
  for (uint32_t i = 0; i < b->n_lanes; i++) {
    bench_send(b, bench_with(bench_of_lane(COORD_BARRIER_SENT, i, attempt), position));
  }
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++) {
      coord_event sealed = bench_of(COORD_SEALED, i, k, attempt);
      sealed.rows = rows;
      sealed.nbytes = rows * 8;
      bench_send(b, sealed);
    }
  }
}

void bench_prepare(bench *b, uint64_t attempt, bool with_rows) {
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++) {
      const coord_command *command = bench_take(b, COORD_PRE_COMMIT);
      assert_int_equal(command->sink, i);
      assert_int_equal(command->participant, k);
      assert_int_equal(command->attempt, attempt);
    }
  }
  pass_tells(b);
  bench_none(b);
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++) {
      coord_event prepared = bench_of(COORD_PREPARED, i, k, attempt);
      char text[64];
      snprintf(text, sizeof(text), "%s/%u/%llu", b->sinks[i].sink_id, k,
               (unsigned long long)attempt);
      if (with_rows && b->sinks[i].committable) prepared = bench_with(prepared, text);
      bench_none(b);
      bench_send(b, prepared);
    }
  }
}

void bench_decide(bench *b, uint64_t attempt, const char *position) {
  bench_tick(b, 1000 * BENCH_MS);
  bench_seal(b, attempt, position, 5);
  bench_prepare(b, attempt, true);
  const coord_command *decide = bench_take(b, COORD_DECIDE);
  assert_int_equal(decide->attempt, attempt);
  assert_int_equal(decide->decision->next_attempt, attempt + 1);
  bench_none(b);
  bench_send(b, bench_of(COORD_DECIDED, COORD_NONE, 0, attempt));
}

void bench_land(bench *b, uint32_t sink) {
  const coord_command *commit = NULL;
  for (size_t i = b->n_log; i-- > 0 && !commit;) {
    if (b->log[i].type == COORD_COMMIT && b->log[i].sink == sink) commit = &b->log[i];
  }
  assert_non_null(commit);
  coord_event landed = bench_of(COORD_COMMITTED, sink, 0, 0);
  landed.cursor = commit->batch->attempts[commit->batch->n_attempts - 1].cursor;
  bench_send(b, landed);
}

uint64_t bench_stop(bench *b) {
  uint64_t generation = bench_take(b, COORD_STOP_LANES)->generation;
  for (uint32_t i = 0; i < b->n_lanes; i++) {
    bench_none(b);
    coord_event stopped = bench_of_lane(COORD_STOPPED, i, 0);
    stopped.generation = generation;
    stopped.rows = b->rows[i];
    bench_send(b, stopped);
  }
  return generation;
}

void bench_rewind(bench *b, uint64_t attempt) {
  uint64_t generation = bench_stop(b);
  assert_int_equal(bench_take(b, COORD_ABORT)->attempt, attempt);
  bench_none(b);
  bench_send(b, bench_of(COORD_ABORTED, COORD_NONE, 0, attempt));
  while (b->read < b->n_log && b->log[b->read].type == COORD_MARK_CLEANED) b->read++;
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; b->sinks[i].committable && k <= b->sinks[i].participants; k++) {
      assert_int_equal(bench_take(b, COORD_ROLLBACK)->attempt, attempt);
      bench_send(b, bench_of(COORD_ROLLED_BACK, i, k, attempt));
    }
  }
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++) {
      assert_int_equal(bench_take(b, COORD_PURGE)->generation, generation + 1);
    }
  }
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++) {
      coord_event purged = bench_of(COORD_PURGED, i, k, 0);
      purged.generation = generation + 1;
      bench_none(b);
      bench_send(b, purged);
    }
  }
  for (uint32_t i = 0; i < b->n_lanes; i++) {
    assert_int_equal(bench_take(b, COORD_SEEK)->generation, generation + 1);
  }
  for (uint32_t i = 0; i < b->n_lanes; i++) {
    coord_event sought = bench_of_lane(COORD_SOUGHT, i, 0);
    sought.generation = generation + 1;
    bench_send(b, sought);
  }
}
