/* SPDX-License-Identifier: Apache-2.0 */
/* What an epoch costs the coordinator alone: bench/coordinator SINKS PARTICIPANTS prints the microseconds of
 * CPU time from one OPEN_GATES to the next, the median of many epochs. Whatever it commands is answered at
 * once, in the order of the commands, so that nothing else is measured: a store, targets and threads that
 * cost nothing. Every participant took rows and prepares a descriptor of 200 bytes and an intent of 60. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coord/coord.h"

enum { LANES = 4, DESCRIPTOR = 200, INTENT = 60, WARM_UP = 20 };

typedef struct world {
  coord *c;
  coord_sink *sinks;
  uint32_t n_sinks, participants;
  coord_event *mail; /* a ring: what was answered and not stepped yet */
  size_t room, first, n;
  uint64_t opened; /* times that the gates were opened */
} world;

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void post(world *w, coord_event event) {
  if (w->n == w->room) fail("the ring of events is too small");
  w->mail[(w->first + w->n++) % w->room] = event;
}

static weir_bytes bytes(size_t size) {
  static const uint8_t content[DESCRIPTOR] = {1};
  weir_bytes copy = {0};
  if (weir_bytes_copy(&copy, content, size, NULL)) fail("no memory");
  return copy;
}

static void seal(world *w, uint64_t attempt) {
  for (uint32_t i = 0; i < LANES; i++) {
    post(w, (coord_event){.type = COORD_BARRIER_SENT,
                          .sink = COORD_NONE,
                          .lane = i,
                          .attempt = attempt,
                          .rows = attempt,
                          .bytes = bytes(INTENT)});
    memcpy((void *)w->mail[(w->first + w->n - 1) % w->room].bytes.data, &attempt, 8);
  }
  for (uint32_t i = 0; i < w->n_sinks; i++) {
    for (uint32_t k = 1; k <= w->participants; k++) {
      post(w, (coord_event){.type = COORD_SEALED,
                            .sink = i,
                            .lane = COORD_NONE,
                            .participant = k,
                            .attempt = attempt,
                            .rows = 1000,
                            .nbytes = 10000});
    }
  }
}

static void answer(world *w, const coord_command *command) {
  coord_event event = {.sink = command->sink,
                       .lane = command->lane,
                       .participant = command->participant,
                       .attempt = command->attempt};
  switch (command->type) {
    case COORD_TAKE_OVER:
      event.type = COORD_OBSERVED;
      break;
    case COORD_GET_INTENT:
      event.type = COORD_INTENT;
      event.bytes = bytes(INTENT);
      break;
    case COORD_RESERVE:
      event.type = COORD_RESERVED;
      break;
    case COORD_BEGIN:
      event.type = COORD_BEGUN;
      break;
    case COORD_OPEN_GATES:
      w->opened++;
      event.type = COORD_CHECKPOINT;
      break;
    case COORD_SEND_BARRIERS:
      seal(w, command->attempt);
      return;
    case COORD_PRE_COMMIT:
      event.type = COORD_PREPARED;
      event.bytes = bytes(DESCRIPTOR);
      event.intent = bytes(INTENT);
      break;
    case COORD_DECIDE:
      event.type = COORD_DECIDED;
      break;
    case COORD_COMMIT:
      event.type = COORD_COMMITTED;
      event.cursor = command->batch->attempts[command->batch->n_attempts - 1].cursor;
      break;
    case COORD_SEEN:
    case COORD_TELL_LANE:
      return;
    default:
      fail("a command that nothing here asked for");
  }
  post(w, event);
}

static void step(world *w) {
  weir_error err = {0};
  coord_command command;
  if (!w->n) fail("nothing is left to do");
  coord_event event = w->mail[w->first];
  w->first = (w->first + 1) % w->room;
  w->n--;
  if (coord_step(w->c, 1, &event, &err)) fail(err.message);
  while (coord_next(w->c, &command)) answer(w, &command);
}

static void make(world *w, uint32_t n_sinks, uint32_t participants) {
  static const char *const lanes[LANES] = {"a", "b", "c", "d"};
  weir_error err = {0};
  *w = (world){.n_sinks = n_sinks, .participants = participants};
  w->room = 8 * ((size_t)n_sinks * participants + n_sinks + LANES + 1);
  w->sinks = calloc(n_sinks, sizeof(*w->sinks));
  w->mail = calloc(w->room, sizeof(*w->mail));
  char *names = calloc(n_sinks, 16);
  if (!w->sinks || !w->mail || !names) fail("no memory");
  for (uint32_t i = 0; i < n_sinks; i++) {
    snprintf(names + (size_t)i * 16, 16, "sink-%" PRIu32, i);
    w->sinks[i] = (coord_sink){.sink_id = names + (size_t)i * 16,
                               .participants = participants,
                               .committable = 1};
  }
  const coord_config config = {.sinks = w->sinks,
                               .n_sinks = n_sinks,
                               .lanes = lanes,
                               .n_lanes = LANES,
                               .interval_ns = INT64_MAX / 2,
                               .timeout_ns = INT64_MAX / 2,
                               .backoff_min_ns = 1,
                               .backoff_max_ns = 1};
  if (coord_new(&config, NULL, 1, &w->c, &err)) fail(err.message);
  free(names);
  free(w->sinks);
  post(w, (coord_event){.type = COORD_START, .sink = COORD_NONE, .lane = COORD_NONE});
}

static double cpu_micros(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: coordinator SINKS PARTICIPANTS\n"), 2;
  uint32_t n_sinks = (uint32_t)strtoul(argv[1], NULL, 10);
  uint32_t participants = (uint32_t)strtoul(argv[2], NULL, 10);
  world w;
  make(&w, n_sinks, participants);
  size_t epochs = 200000 / (n_sinks * participants) + 50;
  double *micros = calloc(epochs, sizeof(*micros));
  if (!micros) return 1;
  while (w.opened < WARM_UP) step(&w);
  for (size_t i = 0; i < epochs; i++) {
    double start = cpu_micros();
    for (uint64_t opened = w.opened; w.opened == opened;) step(&w);
    micros[i] = cpu_micros() - start;
  }
  qsort(micros, epochs, sizeof(*micros), compare);
  printf("%.2f\n", micros[epochs / 2]);
  for (; w.n; w.n--, w.first = (w.first + 1) % w.room) {
    weir_bytes_release(&w.mail[w.first].bytes);
    weir_bytes_release(&w.mail[w.first].intent);
  }
  coord_free(w.c);
  free(w.mail);
  free(micros);
  return 0;
}
