/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Lanes, queues, gates, barriers, rewinds, deadlines: the task room with a sink made for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/rows.h"
#include "task/task.h"

#define SOON (20 * BASE_NS_PER_S) /* how long a test waits for what must come */

/* ---- a sink that counts, and can be made to hang or to fail ------------------------------------ */

typedef struct probe {
  atomic_int rows, flushes, begins, pre_commits, rollbacks, closes, released;
  atomic_int hang;        /* write_batch waits until it is 0 again */
  atomic_int inside;      /* threads that are in write_batch */
  atomic_int fail;        /* write_batch fails */
  weir_task_owner *owner; /* of detached tasks; NULL: none */
} probe;

static probe the_probe;

static weir_status probe_create(const weir_host *host, weir_sink *out, weir_error *err) {
  (void)host;
  (void)err;
  out->state = &the_probe;
  return WEIR_OK;
}
static void probe_release(weir_sink *sink) {
  atomic_fetch_add(&the_probe.released, 1);
  sink->ops = NULL;
}
static weir_schema *probe_schema_of;
static weir_status probe_schema(weir_sink *sink, struct ArrowSchema *out,
                                weir_error *err) {
  (void)sink;
  return weir_schema_export(probe_schema_of, out, err);
}
static weir_status probe_open(weir_sink *sink, const weir_call *call,
                              const weir_options *options, const weir_binding *binding,
                              weir_error *err) {
  (void)sink, (void)call, (void)options, (void)binding, (void)err;
  return WEIR_OK;
}
static weir_status probe_write(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  (void)sink, (void)call;
  atomic_fetch_add(&the_probe.inside, 1);
  while (atomic_load(&the_probe.hang)) base_sleep(BASE_NS_PER_MS);
  atomic_fetch_sub(&the_probe.inside, 1);
  if (atomic_load(&the_probe.fail))
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "made to fail");
  atomic_fetch_add(&the_probe.rows, (int)weir_batch_rows(batch));
  *out = (weir_write_result){(uint64_t)weir_batch_rows(batch), 10};
  return WEIR_OK;
}
static uint64_t probe_timeout(weir_sink *sink) {
  (void)sink;
  return 30000;
}
static weir_status probe_flush(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink, (void)call, (void)err;
  atomic_fetch_add(&the_probe.flushes, 1);
  return WEIR_OK;
}
static weir_status probe_close(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink, (void)call, (void)err;
  atomic_fetch_add(&the_probe.closes, 1);
  return WEIR_OK;
}
static weir_task_tracker *probe_tracker(weir_sink *sink) {
  (void)sink;
  return the_probe.owner ? weir_task_owner_tracker(the_probe.owner) : NULL;
}
static const weir_option no_options[] = {{0}};
static const weir_sink_ops probe_ops = {.abi_version = WEIR_ABI_VERSION,
                                        .struct_size = sizeof(weir_sink_ops),
                                        .name = "probe",
                                        .text = "Counts.",
                                        .options = no_options,
                                        .create = probe_create,
                                        .release = probe_release,
                                        .terminal_task_tracker = probe_tracker,
                                        .open = probe_open,
                                        .write_batch = probe_write,
                                        .schema = probe_schema,
                                        .suggested_write_timeout_ms = probe_timeout,
                                        .flush = probe_flush,
                                        .close = probe_close};

/* ---- the stand: one or two lanes, one sink with some participants -------------------------------- */

typedef struct stand {
  weir_sink_ops ops;
  connector_host *host;
  connector_spec *spec;
  weir_binding binding;
  weir_namespace ns;
  task_mailbox *box;
  task_actor *actors[4];
  uint32_t n_actors;
  task_lane *lanes[2];
  uint32_t n_lanes;
  uint8_t fed[2];
  weir_schema *schema;
  coord_event event;
  weir_error error;
  atomic_int rooms;
} stand;

static connector_sink *make_sink(stand *s, uint32_t participant, uint64_t generation,
                                 int open) {
  connector_sink *sink = NULL;
  weir_contract contract = {0};
  weir_call call = {0};
  weir_error err = {0};
  connector_call_arm(&call, BASE_FOREVER, BASE_FOREVER);
  assert_int_equal(connector_sink_new(s->spec, participant, generation, &sink, &err),
                   WEIR_OK);
  assert_int_equal(connector_sink_contract(sink, &contract, &err), WEIR_OK);
  assert_int_equal(connector_sink_bind(sink, &s->ns, &err), WEIR_OK);
  if (open)
    assert_int_equal(connector_sink_open(sink, &call, &s->binding, &err), WEIR_OK);
  return sink;
}

static void count_room(void *ctx, uint32_t lane) {
  (void)lane;
  atomic_fetch_add(&((stand *)ctx)->rooms, 1);
}

static int64_t close_timeout = SOON;
static bool with_tasks;

static void stand_up(stand *s, uint32_t lanes, uint32_t actors, uint64_t queue_bytes,
                     int64_t write_timeout, int64_t flush_interval) {
  weir_options *options = NULL;
  static const base_log silent;
  memset(s, 0, sizeof(*s));
  memset(&the_probe, 0, sizeof(the_probe));
  if (with_tasks) assert_int_equal(weir_task_owner_new(&the_probe.owner, NULL), WEIR_OK);
  s->schema = probe_schema_of = rows_schema("a: int64");
  s->ns =
      (weir_namespace){.struct_size = sizeof(s->ns), .pipeline = "p", .sink_id = "lake"};
  s->host = connector_host_new(&silent, NULL);
  assert_int_equal(connector_fill_sink(&probe_ops, NULL, &s->ops, NULL), WEIR_OK);
  assert_int_equal(
      weir_options_new(no_options, "sink lake", NULL, NULL, 0, NULL, &options, NULL),
      WEIR_OK);
  assert_int_equal(connector_spec_new_sink(&s->ops, s->host, options, &s->spec, NULL),
                   WEIR_OK);
  s->binding.struct_size = sizeof(s->binding);
  assert_int_equal(weir_binding_logical(s->schema, &s->binding, NULL), WEIR_OK);
  assert_int_equal(task_mailbox_new(&s->box, NULL), WEIR_OK);
  s->n_lanes = lanes;
  s->n_actors = actors;
  task_timeouts timeouts = {.open = SOON,
                            .begin = SOON,
                            .write = write_timeout,
                            .pre_commit = SOON,
                            .commit = SOON,
                            .rollback = SOON,
                            .clean = SOON,
                            .flush = SOON,
                            .close = close_timeout};
  memset(s->fed, 1, sizeof(s->fed));
  for (uint32_t i = 0; i < actors; i++) {
    task_actor_config config = {.participant = i + 1,
                                .name = "lake",
                                .mailbox = s->box,
                                .n_lanes = lanes,
                                .fed = s->fed,
                                .queue_bytes = queue_bytes,
                                .timeouts = timeouts,
                                .flush_interval_ns = flush_interval};
    assert_int_equal(task_actor_new(&config, &s->actors[i], NULL), WEIR_OK);
    assert_int_equal(
        task_actor_start(s->actors[i], make_sink(s, i + 1, 1, 1), NULL, NULL), WEIR_OK);
  }
  for (uint32_t i = 0; i < lanes; i++) {
    task_lane_config config = {.index = i,
                               .name = i ? "b" : "a",
                               .mailbox = s->box,
                               .on_room = count_room,
                               .ctx = s};
    assert_int_equal(task_lane_new(&config, &s->lanes[i], NULL), WEIR_OK);
    assert_int_equal(task_lane_connect(s->lanes[i], s->actors, actors, NULL, NULL),
                     WEIR_OK);
  }
}

static weir_status stop(stand *s, uint32_t actor, weir_error *err) {
  task_actor_stop(s->actors[actor]);
  return task_actor_join(s->actors[actor], err);
}

static void stand_down(stand *s) {
  atomic_store(&the_probe.hang, 0);
  for (uint32_t i = 0; i < s->n_lanes; i++) task_lane_finish(s->lanes[i]);
  for (uint32_t i = 0; i < s->n_actors; i++) {
    assert_int_equal(stop(s, i, NULL), WEIR_OK);
    task_actor_free(s->actors[i]);
  }
  for (uint32_t i = 0; i < s->n_lanes; i++) task_lane_unref(s->lanes[i]);
  weir_bytes_release(&s->event.bytes);
  task_mailbox_unref(s->box);
  weir_binding_done(&s->binding);
  connector_spec_unref(s->spec);
  connector_host_unref(s->host);
  weir_schema_unref(s->schema);
}

/* The next event, which must be of this type. */
static coord_event *expect(stand *s, coord_event_type type) {
  int lost = 0;
  weir_bytes_release(&s->event.bytes);
  assert_true(
      task_mailbox_take(s->box, base_deadline(SOON), &s->event, &s->error, &lost));
  assert_int_equal(s->event.type, type);
  return &s->event;
}

static void expect_nothing(stand *s) {
  int lost = 0;
  assert_false(task_mailbox_take(s->box, base_deadline(30 * BASE_NS_PER_MS), &s->event,
                                 &s->error, &lost));
}

static weir_status push(stand *s, uint32_t lane, const char *rows, int64_t timeout,
                        weir_error *err) {
  weir_batch *batch = rows_batch(s->schema, rows);
  weir_status status = task_lane_push(s->lanes[lane], batch, base_deadline(timeout), err);
  weir_batch_unref(batch);
  return status;
}

static void barrier(stand *s, uint32_t lane, uint64_t attempt) {
  weir_bytes position = {0};
  weir_bytes_copy(&position, "here", 4, NULL);
  task_lane_request(s->lanes[lane], attempt);
  assert_int_equal(task_lane_barrier(s->lanes[lane], attempt, &position, NULL), WEIR_OK);
  weir_bytes_release(&position);
}

static void wait_for(atomic_int *what, int value) {
  int64_t deadline = base_deadline(SOON);
  while (atomic_load(what) != value && base_clock_mono() < deadline)
    base_sleep(BASE_NS_PER_MS);
  assert_int_equal(atomic_load(what), value);
}

static void send_purge(stand *s, uint32_t actor, uint64_t generation) {
  task_job *job = calloc(1, sizeof(*job));
  *job = (task_job){.type = TASK_PURGE, .generation = generation};
  task_actor_send(s->actors[actor], job);
}

#define ONE "{\"a\": 1}\n"
#define TWO "{\"a\": 1}\n{\"a\": 2}\n"

/* ---- tests ------------------------------------------------------------------------------------------ */

static void test_nothing_passes_a_closed_gate(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 1, 1, 1 << 20, SOON, SOON);
  assert_int_equal(push(&s, 0, TWO, 0, NULL), WEIR_OK);
  expect_nothing(&s);
  assert_int_equal(atomic_load(&the_probe.rows), 0);
  task_actor_open_gate(s.actors[0], 1);
  wait_for(&the_probe.rows, 2);
  barrier(&s, 0, 1);
  assert_int_equal(expect(&s, COORD_BARRIER_SENT)->rows, 2);
  assert_int_equal(s.event.bytes.size, 4);
  coord_event *sealed = expect(&s, COORD_SEALED);
  assert_int_equal(sealed->attempt, 1);
  assert_int_equal(sealed->rows, 2);
  assert_int_equal(sealed->nbytes, 10);
  /* Sealed: what comes behind the barrier waits for the next attempt. */
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  expect_nothing(&s);
  assert_int_equal(atomic_load(&the_probe.rows), 2);
  task_actor_open_gate(s.actors[0], 2);
  wait_for(&the_probe.rows, 3);
  stand_down(&s);
}

static void test_barriers_align(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 2, 1, 1 << 20, SOON, SOON);
  task_actor_open_gate(s.actors[0], 1);
  barrier(&s, 0, 1);
  expect(&s, COORD_BARRIER_SENT);
  /* Behind a's barrier: held back. b's rows still pass. */
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  assert_int_equal(push(&s, 1, TWO, 0, NULL), WEIR_OK);
  wait_for(&the_probe.rows, 2);
  expect_nothing(&s);
  assert_int_equal(atomic_load(&the_probe.rows), 2);
  barrier(&s, 1, 1);
  expect(&s, COORD_BARRIER_SENT);
  assert_int_equal(expect(&s, COORD_SEALED)->rows, 2);
  stand_down(&s);
}

static void test_an_end_stands_for_later_barriers(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 2, 1, 1 << 20, SOON, SOON);
  task_actor_open_gate(s.actors[0], 1);
  assert_int_equal(task_lane_end(s.lanes[0], NULL, NULL), WEIR_OK);
  assert_int_equal(expect(&s, COORD_LANE_ENDED)->bytes.release == NULL, 1);
  barrier(&s, 1, 1);
  expect(&s, COORD_BARRIER_SENT);
  expect(&s, COORD_SEALED);
  task_actor_open_gate(s.actors[0], 2);
  barrier(&s, 1, 2);
  expect(&s, COORD_BARRIER_SENT);
  assert_int_equal(expect(&s, COORD_SEALED)->attempt, 2);
  weir_error err = {0};
  assert_int_equal(push(&s, 0, ONE, 0, &err), WEIR_E_INVALID_STATE);
  stand_down(&s);
}

static void test_a_full_queue_blocks_the_push_and_says_when_there_is_room(void **state) {
  (void)state;
  stand s;
  weir_error err = {0};
  stand_up(&s, 1, 1, 1, SOON, SOON); /* one batch fits, whatever its size */
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  assert_int_equal(push(&s, 0, ONE, 0, &err), WEIR_E_TIMEOUT);
  assert_int_equal(err.flags, WEIR_ERR_RETRIABLE);
  assert_int_equal(atomic_load(&s.rooms), 0);
  /* A barrier never waits for room. */
  barrier(&s, 0, 1);
  expect(&s, COORD_BARRIER_SENT);
  task_actor_open_gate(s.actors[0], 1);
  wait_for(&s.rooms, 1);
  expect(&s, COORD_SEALED);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  stand_down(&s);
}

/* A sink that has no room asks for a checkpoint; what ends the hold is behind its barrier. */
static void test_a_held_lane_takes_barriers_alone(void **state) {
  (void)state;
  stand s;
  weir_error err = {0};
  task_lane_wish wish = {0};
  stand_up(&s, 1, 1, 1 << 20, SOON, 0);
  task_lane *lane = s.lanes[0];
  task_lane_hold(lane, 1);
  task_lane_hold(lane, 1);
  assert_int_equal(task_lane_wait_unheld(lane, 0, &err), WEIR_E_TIMEOUT);
  assert_true(err.flags & WEIR_ERR_RETRIABLE);
  task_lane_request(lane, 7);
  /* However long the host would wait: it has a barrier to send. */
  assert_int_equal(task_lane_wait_unheld(lane, BASE_FOREVER, &err), WEIR_E_TIMEOUT);
  task_lane_wishes(
      lane, 0, 0, &wish); /* the deadline of a read has passed: it still waits for this */
  assert_int_equal(wish.barrier, 7);
  assert_int_equal(task_lane_barrier(lane, 7, NULL, &err), WEIR_OK);
  task_lane_hold(lane, 0);
  assert_int_equal(atomic_load(&s.rooms), 0);
  assert_int_equal(task_lane_wait_unheld(lane, 0, &err), WEIR_E_TIMEOUT);
  task_lane_hold(lane, 0);
  assert_int_equal(atomic_load(&s.rooms), 1);
  assert_int_equal(task_lane_wait_unheld(lane, 0, &err), WEIR_OK);
  stand_down(&s);
}

static void test_a_batch_goes_to_one_writer_and_a_barrier_to_all(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 1, 3, 1 << 20, SOON, SOON);
  for (uint32_t i = 0; i < 3; i++) task_actor_open_gate(s.actors[i], 1);
  for (int i = 0; i < 30; i++) assert_int_equal(push(&s, 0, TWO, SOON, NULL), WEIR_OK);
  barrier(&s, 0, 1);
  expect(&s, COORD_BARRIER_SENT);
  uint64_t rows = 0;
  for (int i = 0; i < 3; i++) {
    uint64_t part = expect(&s, COORD_SEALED)->rows;
    assert_true(part > 0); /* round robin */
    rows += part;
  }
  assert_int_equal(rows, 60);
  assert_int_equal(atomic_load(&the_probe.rows), 60);
  stand_down(&s);
}

typedef struct blocked {
  stand *s;
  weir_status status;
} blocked;

static void *push_for_ever(void *arg) {
  blocked *b = arg;
  b->status = push(b->s, 0, ONE, SOON, NULL);
  return NULL;
}

static void test_a_rewind_ends_a_push_that_waits_and_drops_what_is_older(void **state) {
  (void)state;
  stand s;
  pthread_t thread;
  stand_up(&s, 1, 1, 1, SOON, SOON);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  blocked b = {&s, WEIR_OK};
  assert_int_equal(base_thread_start(&thread, "pusher", push_for_ever, &b, NULL),
                   WEIR_OK);
  base_sleep(10 * BASE_NS_PER_MS);
  task_lane_stop(s.lanes[0], 0);
  expect(&s, COORD_STOPPED);
  pthread_join(thread, NULL);
  assert_int_equal(b.status, WEIR_E_REWOUND);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_E_REWOUND);
  send_purge(&s, 0, 1);
  assert_int_equal(expect(&s, COORD_PURGED)->generation, 1);
  weir_bytes position = {0};
  assert_int_equal(task_lane_seek(s.lanes[0], 1, NULL, 7, NULL), WEIR_OK);
  assert_true(task_lane_take_seek(s.lanes[0], &position));
  assert_null(position.release);
  task_lane_live(s.lanes[0], NULL);
  assert_int_equal(expect(&s, COORD_SOUGHT)->generation, 1);
  assert_int_equal(task_lane_rows(s.lanes[0]), 7);
  /* Only what came after the rewind is written. */
  assert_int_equal(push(&s, 0, TWO, 0, NULL), WEIR_OK);
  task_actor_open_gate(s.actors[0], 2);
  wait_for(&the_probe.rows, 2);
  barrier(&s, 0, 2);
  expect(&s, COORD_BARRIER_SENT);
  assert_int_equal(expect(&s, COORD_SEALED)->rows, 2);
  stand_down(&s);
}

static void test_a_rewind_makes_an_ended_lane_live_again(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 1, 1, 1 << 20, SOON, SOON);
  task_actor_open_gate(s.actors[0], 1);
  assert_int_equal(task_lane_end(s.lanes[0], NULL, NULL), WEIR_OK);
  expect(&s, COORD_LANE_ENDED);
  expect(&s, COORD_SEALED);
  task_lane_stop(s.lanes[0], 0);
  expect(&s, COORD_STOPPED);
  send_purge(&s, 0, 1);
  expect(&s, COORD_PURGED);
  weir_bytes position = {0};
  assert_int_equal(task_lane_seek(s.lanes[0], 1, NULL, 0, NULL), WEIR_OK);
  assert_true(task_lane_take_seek(s.lanes[0], &position));
  task_lane_live(s.lanes[0], NULL);
  expect(&s, COORD_SOUGHT);
  task_actor_open_gate(s.actors[0], 2);
  expect_nothing(&s); /* the old end does not seal attempt 2 */
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  wait_for(&the_probe.rows, 1);
  stand_down(&s);
}

static void test_a_failed_write_closes_the_gate(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 1, 1, 1 << 20, SOON, SOON);
  atomic_store(&the_probe.fail, 1);
  task_actor_open_gate(s.actors[0], 1);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  coord_event *failed = expect(&s, COORD_FAILED);
  assert_int_equal(failed->participant, 1);
  assert_int_equal(failed->error->flags, WEIR_ERR_RETRIABLE);
  expect_nothing(&s); /* the second batch was not tried */
  stand_down(&s);
}

static void test_flush_follows_the_oldest_row_and_spares_an_empty_buffer(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 1, 1, 1 << 20, SOON, 20 * BASE_NS_PER_MS);
  task_actor_open_gate(s.actors[0], 1);
  base_sleep(60 * BASE_NS_PER_MS);
  assert_int_equal(atomic_load(&the_probe.flushes), 0);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  wait_for(&the_probe.flushes, 1);
  base_sleep(60 * BASE_NS_PER_MS);
  assert_int_equal(atomic_load(&the_probe.flushes), 1);
  stand_down(&s);
}

static void test_a_hung_write_retires_its_generation_and_the_next_goes_on(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 1, 1, 1 << 20, BASE_NS_PER_MS, SOON);
  atomic_store(&the_probe.hang, 1);
  task_actor_open_gate(s.actors[0], 1);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  wait_for(&the_probe.inside, 1);
  weir_error late = {0};
  assert_true(task_actor_watch(s.actors[0], base_clock_mono() + SOON, &late));
  assert_int_equal(task_actor_strays(s.actors[0]), 1);
  coord_event *failed = expect(&s, COORD_FAILED);
  assert_int_equal(failed->error->code, WEIR_E_TIMEOUT);
  assert_non_null(strstr(failed->error->message, "write_batch"));
  assert_false(task_actor_wants_generation(s.actors[0]));
  send_purge(&s, 0, 1);
  assert_true(task_actor_wants_generation(s.actors[0]));
  assert_int_equal(
      task_actor_start(s.actors[0], make_sink(&s, 1, 2, 0), &s.binding, NULL), WEIR_OK);
  expect(&s, COORD_PURGED);
  assert_int_equal(atomic_load(&the_probe.released), 0); /* its thread is still inside */
  atomic_store(&the_probe.hang, 0);
  wait_for(&the_probe.released, 1);
  expect_nothing(&s); /* the late answer meets nobody */
  assert_int_equal(task_actor_strays(s.actors[0]), 0);
  stand_down(&s);
  assert_int_equal(atomic_load(&the_probe.released), 2);
  assert_int_equal(atomic_load(&the_probe.closes), 1);
}

/* Rows that a retired instance had taken are in no buffer any more. */
static void test_a_new_generation_starts_with_an_empty_buffer(void **state) {
  (void)state;
  stand s;
  stand_up(&s, 1, 1, 1 << 20, BASE_NS_PER_MS, 20 * BASE_NS_PER_MS);
  task_actor_open_gate(s.actors[0], 1);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  wait_for(&the_probe.rows, 1);
  atomic_store(&the_probe.hang, 1);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  wait_for(&the_probe.inside, 1);
  weir_error late = {0};
  assert_true(task_actor_watch(s.actors[0], base_clock_mono() + SOON, &late));
  expect(&s, COORD_FAILED);
  int flushes = atomic_load(&the_probe.flushes);
  send_purge(&s, 0, 1);
  assert_int_equal(
      task_actor_start(s.actors[0], make_sink(&s, 1, 2, 0), &s.binding, NULL), WEIR_OK);
  expect(&s, COORD_PURGED);
  base_sleep(60 * BASE_NS_PER_MS);
  assert_int_equal(atomic_load(&the_probe.flushes), flushes);
  atomic_store(&the_probe.hang, 0);
  wait_for(&the_probe.released, 1);
  stand_down(&s);
}

/* A task that a retired instance left counts until it ends, whichever instance is the present one, and the
 * end of a run waits for it no longer than for a close. */
static void test_detached_tasks_are_tracked_across_generations(void **state) {
  (void)state;
  stand s;
  weir_error err = {0};
  weir_task_guard *guard = NULL;
  close_timeout = BASE_NS_PER_S / 2;
  with_tasks = true;
  stand_up(&s, 1, 1, 1 << 20, BASE_NS_PER_MS, SOON);
  close_timeout = SOON;
  with_tasks = false;
  assert_int_equal(weir_task_guard_new(the_probe.owner, "an upload", &guard, NULL),
                   WEIR_OK);
  atomic_store(&the_probe.hang, 1);
  task_actor_open_gate(s.actors[0], 1);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  wait_for(&the_probe.inside, 1);
  assert_true(task_actor_watch(s.actors[0], base_clock_mono() + SOON, &err));
  assert_string_equal(task_actor_stuck(s.actors[0]), "write_batch");
  assert_int_equal(task_actor_strays(s.actors[0]), 2);
  atomic_store(&the_probe.hang, 0);
  wait_for(&the_probe.released, 1);
  weir_task_owner_free(the_probe.owner);
  the_probe.owner = NULL;
  assert_int_equal(task_actor_strays(s.actors[0]), 1);
  assert_null(task_actor_stuck(s.actors[0]));
  assert_int_equal(
      task_actor_start(s.actors[0], make_sink(&s, 1, 2, 0), &s.binding, NULL), WEIR_OK);
  assert_int_equal(task_actor_detached(s.actors[0]), 1);
  assert_int_equal(stop(&s, 0, &err), WEIR_E_TIMEOUT);
  assert_non_null(strstr(err.message, "an upload"));
  weir_task_guard_drop(guard);
  assert_int_equal(task_actor_strays(s.actors[0]), 0);
  stand_down(&s);
}

static void test_stop_leaves_a_hung_thread_behind_and_names_its_call(void **state) {
  (void)state;
  stand s;
  weir_error err = {0};
  close_timeout = BASE_NS_PER_MS;
  stand_up(&s, 1, 1, 1 << 20, BASE_NS_PER_MS, SOON);
  close_timeout = SOON;
  atomic_store(&the_probe.hang, 1);
  task_actor_open_gate(s.actors[0], 1);
  assert_int_equal(push(&s, 0, ONE, 0, NULL), WEIR_OK);
  wait_for(&the_probe.inside, 1);
  assert_int_equal(stop(&s, 0, &err), WEIR_E_TIMEOUT);
  assert_non_null(strstr(err.message, "write_batch"));
  atomic_store(&the_probe.hang, 0);
  wait_for(&the_probe.released, 1);
  stand_down(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_passes_a_closed_gate),
      cmocka_unit_test(test_barriers_align),
      cmocka_unit_test(test_an_end_stands_for_later_barriers),
      cmocka_unit_test(test_a_full_queue_blocks_the_push_and_says_when_there_is_room),
      cmocka_unit_test(test_a_held_lane_takes_barriers_alone),
      cmocka_unit_test(test_a_batch_goes_to_one_writer_and_a_barrier_to_all),
      cmocka_unit_test(test_a_rewind_ends_a_push_that_waits_and_drops_what_is_older),
      cmocka_unit_test(test_a_rewind_makes_an_ended_lane_live_again),
      cmocka_unit_test(test_a_failed_write_closes_the_gate),
      cmocka_unit_test(test_flush_follows_the_oldest_row_and_spares_an_empty_buffer),
      cmocka_unit_test(test_a_hung_write_retires_its_generation_and_the_next_goes_on),
      cmocka_unit_test(test_a_new_generation_starts_with_an_empty_buffer),
      cmocka_unit_test(test_detached_tasks_are_tracked_across_generations),
      cmocka_unit_test(test_stop_leaves_a_hung_thread_behind_and_names_its_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
