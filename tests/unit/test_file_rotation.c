/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A followed folder in which logs grow and are rotated between any two calls that a scan or a read makes, while
 * the process is killed at any time: what is delivered is what was written, each row once (ctest: moving).
 * With two numbers: the seeds from the one to the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/file/source.h"
#include "moving/moving.h"
#include "support/rows.h"
#include "support/sources.h"

enum { LOGS = 3, ROWS = 20000, TEXT = 4096, ROUNDS = 200, MOST_STEPS = 900 };

/* A log and who writes and rotates it, one call of the file system after the other. */
typedef struct journal {
  char name[24];
  enum { QUIET, WRITES, MAKES_ROOM, COPIES } state;
  bool named;   /* the pattern names its rotations */
  bool dated;   /* they have numbers of their own; else all move up */
  bool over;    /* there is one, and it is overwritten */
  bool renames; /* this rotation */
  int file;     /* open for writing; -1: none */
  int from, to; /* copies */
  bool copied;
  size_t at;
  int number; /* the name that is moved up next, or the last date */
  int keep;
  char text[TEXT]; /* to be written */
  size_t done, size;
} journal;

static struct {
  bool talk;
  journal logs[LOGS];
  int n_logs, written, steps, busy, copy_most;
  bool stands; /* nobody writes */
  bool loosed, stopped;
  uint8_t given[ROWS], kept[ROWS];
  uint8_t loose[ROWS]; /* written after the copy was made, before the cut */
  int64_t made[256];   /* when it was rotated, by file */
  char failure[sizeof((weir_error){0}.message)];
  opened_source source;
  weir_bytes position;
} world;

#define SAY(...) \
  if (world.talk) fprintf(stderr, __VA_ARGS__)

static void fail_with(const char *what, int row) {
  if (world.failure[0] == 0)
    snprintf(world.failure, sizeof(world.failure), "%s: row %d", what, row);
}

/* ---- who writes */

static void compose(journal *log, int rows) {
  log->done = log->size = 0;
  for (; rows > 0 && world.written < ROWS; rows--, world.written++)
    log->size += (size_t)snprintf(log->text + log->size, TEXT - log->size,
                                  "{\"id\":%d}\n", world.written);
}

static void write_some(journal *log) {
  size_t left = log->size - log->done, n = 1 + (size_t)moving_random(left);
  if (moving_random(3) > 0) n = left;
  SAY("  %s: writes %.*s\n", log->name, (int)n - 1, log->text + log->done);
  moving_append(log->file, log->text + log->done, n);
  log->done += n;
}

static const char *rotated(const journal *log, int number) {
  static char names[2][48];
  static int turn;
  char *name = names[turn ^= 1];
  snprintf(name, sizeof(names[0]), log->dated ? "%s-2026%04d" : "%s.%d", log->name,
           number);
  return number == 0 ? log->name : name;
}

/* Long enough for it to have been looked at. */
static bool is_old(int file) {
  return moving_now() > world.made[file] + INT64_C(3000000000);
}

/* Whether all of its rows were kept. Where the pattern does not name rotations, one that was seen must be left: by
 * it the next are known. */
static bool may_go(const journal *log, int file) {
  size_t size = 0;
  const char *data = moving_data(file, &size), *end = data + size;
  int left = log->named || log->over;
  for (int i = 1; i <= log->number; i++) {
    int other = moving_find(rotated(log, i));
    left += other >= 0 && other != file && is_old(other);
  }
  if (!is_old(file) || left == 0) return false;
  while (data < end) {
    const char *line = memchr(data, '\n', (size_t)(end - data));
    if (line == NULL || !world.kept[atoi(data + strlen("{\"id\":"))]) return false;
    data = line + 1;
  }
  return true;
}

static void begin_rotation(journal *log) {
  int last = log->over ? moving_find(rotated(log, 1)) : -1;
  if (last >= 0 && !may_go(log, last)) return;
  log->state = MAKES_ROOM;
  log->renames = !log->over && moving_random(2);
  if (log->over) {
    log->number = 1;
    return;
  }
  if (log->dated) {
    log->number++;
    return;
  }
  for (log->number = 1; moving_find(rotated(log, log->number)) >= 0;) log->number++;
}

static int create(const char *name) {
  int file = moving_create(name);
  world.made[file] = moving_now();
  return file;
}

/* Moves one name up, or the log away. */
static void make_room(journal *log) {
  if (!log->dated && log->number > 1) {
    bool goes = log->number > log->keep &&
                may_go(log, moving_find(rotated(log, log->number - 1)));
    const char *last = rotated(log, log->number - 1); /* valid until the next but one */
    if (goes) {
      SAY("  %s: removes %s\n", log->name, last);
      moving_remove(last);
    } else {
      SAY("  %s: %s moves up\n", log->name, last);
      moving_rename(last, rotated(log, log->number));
    }
    log->number--;
    return;
  }
  const char *to = rotated(log, log->number);
  if (log->renames) {
    SAY("  %s: renamed to %s\n", log->name, to);
    moving_rename(log->name, to);
    world.made[log->file] = moving_now();
    compose(log, (int)moving_random(3)); /* into the file that was renamed */
    log->state = WRITES;
  } else {
    SAY("  %s: copied to %s\n", log->name, to);
    log->from = log->file;
    log->to = moving_find(to);
    if (log->to >= 0)
      moving_cut(log->to);
    else
      log->to = create(to);
    log->at = 0;
    log->copied = false;
    log->state = COPIES;
  }
}

static void copy_some(journal *log) {
  size_t size = 0;
  const char *data = moving_data(log->from, &size);
  size_t left = size - log->at, n = 1 + (size_t)moving_random((uint64_t)world.copy_most);
  if (left == 0 && !log->copied && moving_random(3) == 0) {
    int from = world.written;
    compose(log, 1 + (int)moving_random(3));
    SAY("  %s: loses %.*s\n", log->name, (int)log->size - 1, log->text);
    for (; from < world.written; from++) world.loose[from] = 1;
    world.loosed = true;
    moving_append(log->from, log->text, log->size);
    log->done = log->size;
    log->copied = true;
    return;
  }
  if (left == 0 || log->copied) {
    SAY("  %s: cut\n", log->name);
    moving_cut(log->from);
    world.made[log->to] = moving_now();
    log->state = QUIET;
    return;
  }
  if (n > left) n = left;
  SAY("  %s: %zu bytes copied\n", log->name, n);
  moving_append(log->to, data + log->at, n);
  log->at += n;
}

static void step(journal *log) {
  switch (log->state) {
    case QUIET:
      if (log->file < 0) {
        SAY("  %s: comes\n", log->name);
        log->file = create(log->name);
      } else if (moving_random(3) > 0) {
        compose(log, 1 + (int)moving_random(6));
        log->state = WRITES;
        log->renames = false;
      } else {
        moving_wait(5000000); /* a tick, so that it is younger than the one before */
        begin_rotation(log);
      }
      break;
    case WRITES:
      if (log->done < log->size) {
        write_some(log);
      } else {
        if (log->renames) log->file = -1;
        log->state = QUIET;
      }
      break;
    case MAKES_ROOM:
      make_room(log);
      break;
    case COPIES:
      copy_some(log);
      break;
  }
}

/* Now and then something happens, and sometimes much. */
static void before_call(void) {
  if (world.stands || moving_random((uint64_t)world.busy) > 0) return;
  int n = moving_random(8) > 0 ? 1 : 1 + (int)moving_random(60);
  for (; n > 0 && world.steps > 0; n--, world.steps--)
    step(&world.logs[moving_random((uint64_t)world.n_logs)]);
}

static bool matches(const char *name, int round) {
  if (round == 1) return name[0] == 'w';
  return name[0] == 'n' && strlen(name) == strlen("n0.log");
}

/* ---- who reads */

static bool broke(weir_status status, const weir_error *err) {
  /* what it had read of that is in no copy */
  if (world.loosed && strstr(err->message, "was cut, and no copy") != NULL)
    world.stopped = true;
  if (status != WEIR_OK && world.failure[0] == 0)
    snprintf(world.failure, sizeof(world.failure), "%s", err->message);
  return world.failure[0] != 0;
}

static void take(weir_batch *batch) {
  char *text = rows_text(batch);
  for (const char *p = text; (p = strchr(p, ':')) != NULL; p++) {
    int row = atoi(p + 1);
    SAY("got %d\n", row);
    if (row < 0 || row >= world.written)
      fail_with("nobody wrote", row);
    else if (world.kept[row] || world.given[row])
      fail_with("delivered twice", row);
    else
      world.given[row] = 1;
  }
  free(text);
  weir_batch_unref(batch);
}

static void start(void) {
  static const char *const settings[] = {"path",      (MOVING_FOLDER "/{n?.log,w*}"),
                                         "schema.id", "int64",
                                         "format",    "ndjson",
                                         "follow",    "true",
                                         NULL};
  world.source = sources_open(&weir_file_source_ops, settings, &world.position);
}

/* A checkpoint: what was given until now is kept. */
static void keep(void) {
  SAY("kept\n");
  weir_bytes_release(&world.position);
  world.position = sources_position(&world.source);
  for (int i = 0; i < ROWS; i++) world.kept[i] |= world.given[i];
}

static void kill_it(void) {
  SAY("killed\n");
  memset(world.given, 0, sizeof(world.given));
  if (moving_random(4) == 0 && world.position.size > 0) {
    weir_error err = {0};
    broke(
        world.source.source.ops->seek(&world.source.source, NULL, &world.position, &err),
        &err);
    return;
  }
  sources_close(&world.source);
  start();
}

/* Reads until nothing more is there; ends early now and then. */
static void look(bool whole) {
  for (;;) {
    weir_batch *batch = NULL;
    weir_error err = {0};
    int32_t what = 0;
    sources_now = moving_now();
    if (broke(world.source.source.ops->read(&world.source.source, NULL, &what, &batch,
                                            &err),
              &err))
      return;
    if (batch == NULL) break;
    take(batch);
    if (!whole && moving_random(4) == 0) return;
  }
  SAY("looked\n");
}

static void set_up(uint64_t seed) {
  const moving_options options = {seed, before_call, matches, 2};
  static const int sizes[] = {1, 7, 30, 1000};
  bool talk = world.talk;
  memset(&world, 0, sizeof(world));
  world.talk = talk;
  world.stands = true;
  moving_begin(&options);
  world.n_logs = 1 + (int)moving_random(LOGS);
  world.busy = 1 << moving_random(8);
  world.steps = MOST_STEPS;
  world.copy_most = sizes[moving_random(4)];
  for (int i = 0; i < world.n_logs; i++) {
    journal *log = &world.logs[i];
    log->named = moving_random(2);
    log->dated = moving_random(4) == 0;
    log->over = !log->dated && moving_random(6) == 0;
    log->keep = 2 + (int)moving_random(18);
    snprintf(log->name, sizeof(log->name), "%c%d.log", log->named ? 'w' : 'n', i);
    if (log->named && i > 0 && moving_random(4) == 0) /* looks as if w0.log had left it */
      snprintf(log->name, sizeof(log->name), "w0-%d.log", i);
    log->file = create(log->name);
    compose(log, 3);
    moving_append(log->file, log->text, log->size);
    log->done = log->size;
  }
}

static void finish(void) {
  world.steps = 0;
  for (int i = 0; i < world.n_logs; i++)
    while (world.logs[i].state != QUIET) step(&world.logs[i]);
  for (int i = 0; i < 20 && world.failure[0] == 0; i++) {
    moving_wait(200000000);
    look(true);
  }
  if (world.failure[0] == 0) keep();
  for (int i = 0; i < world.written; i++)
    if (!world.kept[i] && !world.loose[i]) fail_with("lost", i);
}

static void run(uint64_t seed) {
  set_up(seed);
  start();
  look(true); /* what is not named must have been seen before it is rotated */
  keep();
  world.stands = false;
  for (int i = 0; i < ROUNDS && world.failure[0] == 0; i++) {
    moving_wait((int64_t)moving_random(150000000));
    look(false);
    if (world.failure[0] != 0) break;
    if (moving_random(3) == 0) keep();
    if (moving_random(12) == 0) kill_it();
  }
  if (world.failure[0] == 0) finish();
  sources_close(&world.source);
  weir_bytes_release(&world.position);
  moving_end();
  sources_now = 1000;
}

static uint64_t first = 1, last = 100;

static void test_each_row_once(void **state) {
  (void)state;
  int broken = 0, stopped = 0;
  for (uint64_t seed = first; seed <= last; seed++) {
    run(seed);
    stopped += world.stopped;
    if (world.failure[0] == 0 || world.stopped) continue;
    print_error("seed %llu: %s\n", (unsigned long long)seed, world.failure);
    broken++;
  }
  print_message("%d stopped for a line that no copy has\n", stopped);
  assert_int_equal(broken, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_row_once)};
  if (argc == 3) {
    first = strtoull(argv[1], NULL, 10);
    last = strtoull(argv[2], NULL, 10);
  }
  world.talk = getenv("WEIR_TEST_TALK") != NULL;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
