/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator on the bench: tests read its commands one by one and answer them as they like. */
#ifndef TESTS_COORD_BENCH_H
#define TESTS_COORD_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "coord/coord.h"

typedef struct bench {
  coord *c;
  int64_t now;
  uint32_t n_sinks, n_lanes;
  const coord_sink *sinks;
  uint64_t rows[4]; /* of the lanes, told when they are stopped */
  coord_command log[4096];
  size_t n_log, read;
  weir_error err;
} bench;

#define BENCH_MS INT64_C(1000000)

/* Lane 3 is ephemeral. Interval 1 s, timeout 60 s, backoff 100 ms to 1 s, token 7. */
void bench_new(bench *b, const coord_sink *sinks, uint32_t n_sinks, uint32_t n_lanes,
               const weir_store_state *state);
/* bench_new, COORD_START, every target without a cursor, and on to the first open gates. */
void bench_open(bench *b, const coord_sink *sinks, uint32_t n_sinks, uint32_t n_lanes);
void bench_done(bench *b);

/* Steps; the commands that come out are kept. */
weir_status bench_try(bench *b, coord_event event);
void bench_send(bench *b, coord_event event); /* must be allowed */
/* The oldest command not yet read, which must be of this type. */
const coord_command *bench_take(bench *b, coord_command_type type);
void bench_skip(bench *b); /* forgets all commands not yet read */
void bench_none(bench *b); /* there is no command */
void bench_tick(bench *b, int64_t later_ns);

/* Events. */
coord_event bench_event(coord_event_type type);
coord_event bench_of(coord_event_type type, uint32_t sink, uint32_t participant,
                     uint64_t attempt);
coord_event bench_of_lane(coord_event_type type, uint32_t lane, uint64_t attempt);
coord_event bench_with(coord_event event, const char *bytes);
const weir_error *bench_error(weir_status code, uint32_t flags);

/* Whole stretches, each reading exactly the commands it expects, and COORD_TELL_LANE among them. */
void bench_begin_all(bench *b, uint64_t attempt); /* BEGIN.., then OPEN_GATES */
void bench_reserve(bench *b, uint64_t attempt);   /* GET_INTENT.., RESERVE, begin_all */
/* SEND_BARRIERS came: every lane sends `position`, every participant seals `rows`. */
void bench_seal(bench *b, uint64_t attempt, const char *position, uint64_t rows);
/* PRE_COMMIT of every participant comes, and is answered with descriptors when rows were taken. */
void bench_prepare(bench *b, uint64_t attempt, bool with_rows);
/* An attempt with rows up to its answered decision. */
void bench_decide(bench *b, uint64_t attempt, const char *position);
/* COMMIT of that sink came: it lands. */
void bench_land(bench *b, uint32_t sink);
/* STOP_LANES came: every lane stops. Returns the generation. */
uint64_t bench_stop(bench *b);
/* From STOP_LANES to the open gates of the next attempt, when nothing else fails. */
void bench_rewind(bench *b, uint64_t attempt);
const char *bench_phase(bench *b);

#endif
