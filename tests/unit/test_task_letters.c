/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Rows that a sink calls bad: cut out of their batch, handed to the sink that takes them, within one attempt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/rows.h"
#include "task/task.h"

#define SOON (20 * BASE_NS_PER_S)
#define MANY 1000

/* ---- sinks: one that takes no negative number, one that takes letters ------------------------------ */

typedef enum finds { FINDS_FIRST, FINDS_LAST, FINDS_ANY, FINDS_NONE, FINDS_BEYOND } finds;

static struct {
  finds finds;
  int io_after;    /* rows taken, and then every write fails; 0: none does */
  atomic_int hang; /* participants from the second on wait in write_batch */
  unsigned seed;
  pthread_mutex_t lock;
  /* under lock */
  int64_t offered; /* rows */
  int64_t taken[2 * MANY];
  int n_taken;
  base_buf letters; /* NDJSON */
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  static atomic_int number;
  (void)host, (void)err;
  out->state = (void *)(uintptr_t)(1 + atomic_fetch_add(&number, 1));
  return WEIR_OK;
}
static void release(weir_sink *sink) {
  sink->ops = NULL;
}
static weir_schema *picky_schema;
static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  weir_schema *letters = NULL;
  if (strcmp(sink->ops->name, "picky") == 0)
    return weir_schema_export(picky_schema, out, err);
  BASE_TRY(connector_letters_schema(&letters, err));
  weir_status status = weir_schema_export(letters, out, err);
  weir_schema_unref(letters);
  return status;
}
static weir_status open_sink(weir_sink *sink, const weir_call *call,
                             const weir_options *options, const weir_binding *binding,
                             weir_error *err) {
  (void)sink, (void)call, (void)options, (void)binding, (void)err;
  return WEIR_OK;
}

static int64_t value_at(weir_batch *batch, int64_t row) {
  const struct ArrowArray *column = weir_batch_array(batch)->children[0];
  return ((const int64_t *)column->buffers[1])[column->offset + row];
}

/* The row that is named for a batch, or -1: there is none. */
static int64_t find_bad(weir_batch *batch) {
  int64_t n = weir_batch_rows(batch), found = -1, count = 0;
  for (int64_t i = 0; i < n; i++) {
    if (value_at(batch, i) >= 0) continue;
    count++;
    world.seed = world.seed * 1103515245 + 12345;
    bool this_one = world.finds == FINDS_LAST || found < 0 ||
                    (world.finds == FINDS_ANY && (world.seed >> 16) % count == 0);
    if (this_one) found = i;
  }
  return found;
}

static weir_status write_picky(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  (void)sink, (void)call;
  int64_t n = weir_batch_rows(batch);
  while (atomic_load(&world.hang)) base_sleep(BASE_NS_PER_MS);
  pthread_mutex_lock(&world.lock);
  world.offered += n;
  int64_t bad = find_bad(batch);
  weir_status status = WEIR_OK;
  if (bad >= 0) {
    status = weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "a is negative");
    int64_t said = world.finds == FINDS_NONE ? -1 : world.finds == FINDS_BEYOND ? n : bad;
    weir_error_at(err, status, said, 0);
  } else if (world.io_after && world.n_taken >= world.io_after) {
    status = weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "made to fail");
  }
  for (int64_t i = 0; i < n && !status; i++)
    world.taken[world.n_taken++] = value_at(batch, i);
  pthread_mutex_unlock(&world.lock);
  *out = (weir_write_result){(uint64_t)n, 1};
  return status;
}

static weir_status write_letters(weir_sink *sink, const weir_call *call,
                                 weir_batch *batch, weir_write_result *out,
                                 weir_error *err) {
  (void)sink, (void)call;
  char *text = rows_text(batch);
  pthread_mutex_lock(&world.lock);
  weir_status status = base_buf_append_str(&world.letters, text, err);
  pthread_mutex_unlock(&world.lock);
  free(text);
  *out = (weir_write_result){(uint64_t)weir_batch_rows(batch), 1};
  return status;
}

static uint64_t write_timeout(weir_sink *sink) {
  (void)sink;
  return 30000;
}
static weir_status close_sink(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink, (void)call, (void)err;
  return WEIR_OK;
}

static const weir_option no_options[] = {{0}};
#define SINK(name_, write_)                     \
  {.abi_version = WEIR_ABI_VERSION,             \
   .struct_size = sizeof(weir_sink_ops),        \
   .name = name_,                               \
   .text = "For a test.",                       \
   .options = no_options,                       \
   .create = create,                            \
   .release = release,                          \
   .open = open_sink,                           \
   .write_batch = write_,                       \
   .schema = schema,                            \
   .suggested_write_timeout_ms = write_timeout, \
   .close = close_sink}
static const weir_sink_ops tables[2] = {SINK("picky", write_picky),
                                        SINK("taker", write_letters)};

/* ---- the stand: a lane into sink 0, whose letters go to sink 1 ------------------------------------------ */

enum { PICKY, TAKER };

typedef struct stand {
  weir_sink_ops ops[2];
  connector_host *host;
  connector_spec *specs[2];
  task_mailbox *box;
  task_actor *actors[2][2];
  uint32_t writers[2];
  task_lane *lane;
  weir_schema *schema;
  coord_event event;
  weir_error error;
} stand;

static void start_actor(stand *s, int sink, uint32_t k) {
  weir_binding binding = {.struct_size = sizeof(binding)};
  weir_namespace ns = {.struct_size = sizeof(ns), .pipeline = "p", .sink_id = "lake"};
  weir_contract contract = {0};
  weir_schema *letters = NULL;
  weir_call call = {0};
  connector_sink *made = NULL;
  connector_call_arm(&call, BASE_FOREVER, BASE_FOREVER);
  assert_int_equal(connector_letters_schema(&letters, NULL), WEIR_OK);
  assert_int_equal(
      weir_binding_logical(sink == PICKY ? s->schema : letters, &binding, NULL), WEIR_OK);
  assert_int_equal(connector_sink_new(s->specs[sink], k + 1, 1, &made, NULL), WEIR_OK);
  assert_int_equal(connector_sink_contract(made, &contract, NULL), WEIR_OK);
  assert_int_equal(connector_sink_bind(made, &ns, NULL), WEIR_OK);
  assert_int_equal(connector_sink_open(made, &call, &binding, NULL), WEIR_OK);
  assert_int_equal(task_actor_start(s->actors[sink][k], made, NULL, NULL), WEIR_OK);
  weir_binding_done(&binding);
  weir_schema_unref(letters);
}

static void stand_up(stand *s, const char *columns, uint32_t picky, uint32_t takers,
                     uint64_t queue_bytes, const char *key) {
  static const uint8_t fed[2] = {1, 0};
  static const base_log silent;
  task_timeouts times = {SOON, SOON, SOON, SOON, SOON, SOON, SOON, SOON, SOON};
  weir_names keys = {.v = &key, .n = 1};
  base_buf_done(&world.letters);
  world.finds = FINDS_FIRST;
  world.offered = world.n_taken = world.io_after = 0;
  *s = (stand){.writers = {picky, takers}};
  s->schema = picky_schema = rows_schema(columns);
  s->host = connector_host_new(&silent, NULL);
  assert_int_equal(task_mailbox_new(&s->box, NULL), WEIR_OK);
  for (int i = PICKY; i <= TAKER; i++) {
    weir_options *options = NULL;
    const char *where = i == PICKY ? "sink lake" : "sink bad";
    assert_int_equal(connector_fill_sink(&tables[i], NULL, &s->ops[i], NULL), WEIR_OK);
    assert_int_equal(
        weir_options_new(no_options, where, NULL, NULL, 0, NULL, &options, NULL),
        WEIR_OK);
    assert_int_equal(
        connector_spec_new_sink(&s->ops[i], s->host, options, &s->specs[i], NULL),
        WEIR_OK);
    for (uint32_t k = 0; k < s->writers[i]; k++) {
      task_actor_config config = {.sink = (uint32_t)i,
                                  .participant = k + 1,
                                  .name = where + 5,
                                  .mailbox = s->box,
                                  .n_lanes = 1,
                                  .fed = &fed[i],
                                  .n_feeders = i == TAKER ? picky : 0,
                                  .sets_aside = i == PICKY ? where : NULL,
                                  .queue_bytes = queue_bytes,
                                  .timeouts = times,
                                  .flush_interval_ns = SOON};
      assert_int_equal(task_actor_new(&config, &s->actors[i][k], NULL), WEIR_OK);
    }
  }
  for (uint32_t k = 0; k < picky; k++) {
    task_router *router = NULL;
    if (key)
      assert_int_equal(task_router_new("lake", s->schema, &keys, picky, &router, NULL),
                       WEIR_OK);
    assert_int_equal(task_actor_connect_letters(s->actors[PICKY][k], s->actors[TAKER],
                                                takers, k, router, NULL),
                     WEIR_OK);
  }
  for (int i = PICKY; i <= TAKER; i++)
    for (uint32_t k = 0; k < s->writers[i]; k++) start_actor(s, i, k);
  task_lane_config lane = {.name = "a", .mailbox = s->box};
  task_router *router = NULL;
  if (key) {
    assert_int_equal(task_router_new("lake", s->schema, &keys, picky, &router, NULL),
                     WEIR_OK);
    task_router_pass_bad(router);
  }
  assert_int_equal(task_lane_new(&lane, &s->lane, NULL), WEIR_OK);
  assert_int_equal(task_lane_connect(s->lane, s->actors[PICKY], picky, router, NULL),
                   WEIR_OK);
}

static void stand_down(stand *s) {
  atomic_store(&world.hang, 0);
  task_lane_finish(s->lane);
  for (int i = PICKY; i <= TAKER; i++)
    for (uint32_t k = 0; k < s->writers[i]; k++) task_actor_stop(s->actors[i][k]);
  for (int i = PICKY; i <= TAKER; i++)
    for (uint32_t k = 0; k < s->writers[i]; k++)
      assert_int_equal(task_actor_join(s->actors[i][k], NULL), WEIR_OK);
  for (int i = PICKY; i <= TAKER; i++) {
    for (uint32_t k = 0; k < s->writers[i]; k++) task_actor_free(s->actors[i][k]);
    connector_spec_unref(s->specs[i]);
  }
  task_lane_unref(s->lane);
  weir_bytes_release(&s->event.bytes);
  task_mailbox_unref(s->box);
  connector_host_unref(s->host);
  weir_schema_unref(s->schema);
  base_buf_done(&world.letters);
}

static void open_gates(stand *s, int sink, uint64_t attempt) {
  for (uint32_t k = 0; k < s->writers[sink]; k++)
    task_actor_open_gate(s->actors[sink][k], attempt);
}

static coord_event *next(stand *s, int64_t wait) {
  int lost = 0;
  weir_bytes_release(&s->event.bytes);
  s->event = (coord_event){.type = COORD_TICK};
  (void)task_mailbox_take(s->box, base_deadline(wait), &s->event, &s->error, &lost);
  return &s->event;
}

static void push(stand *s, const char *rows) {
  weir_batch *batch = rows_batch(s->schema, rows);
  weir_error err = {0};
  if (task_lane_push(s->lane, batch, base_deadline(SOON), &err))
    fail_msg("%s", err.message);
  weir_batch_unref(batch);
}

static void barrier(stand *s, uint64_t attempt) {
  weir_bytes none = {0};
  task_lane_request(s->lane, attempt);
  assert_int_equal(task_lane_barrier(s->lane, attempt, &none, NULL), WEIR_OK);
  assert_int_equal(next(s, SOON)->type, COORD_BARRIER_SENT);
}

/* All participants seal; rows that each sink took. */
static void sealed(stand *s, uint64_t rows[2]) {
  rows[PICKY] = rows[TAKER] = 0;
  for (uint32_t i = 0; i < s->writers[PICKY] + s->writers[TAKER]; i++) {
    if (next(s, SOON)->type != COORD_SEALED)
      fail_msg("event %d: %s", s->event.type, s->error.message);
    rows[s->event.sink] += s->event.rows;
  }
}

static const char *letters(void) {
  assert_int_equal(base_buf_terminate(&world.letters, NULL), WEIR_OK);
  return (const char *)world.letters.data;
}

static size_t count(const char *text, const char *what) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) n++;
  return n;
}

/* ---- tests ------------------------------------------------------------------------------------------------ */

static bool is_bad(int pattern, int i) {
  switch (pattern) {
    case 0:
      return false;
    case 1:
      return true;
    case 2:
      return i % 7 == 3;
    case 3:
      return i == MANY - 1;
    case 4:
      return i < MANY / 2;
    default:
      return (unsigned)i * 2654435761u >> 31;
  }
}

static void check_cut(finds how, int pattern) {
  stand s;
  base_buf rows = {0};
  uint64_t took[2];
  int good = 0;
  stand_up(&s, "a: int64", 1, 1, 1 << 24, NULL);
  world.finds = how;
  for (int i = 0; i < MANY; i++)
    assert_int_equal(
        base_buf_printf(&rows, NULL, "{\"a\":%d}\n", is_bad(pattern, i) ? -1 - i : i),
        WEIR_OK);
  assert_int_equal(base_buf_terminate(&rows, NULL), WEIR_OK);
  open_gates(&s, PICKY, 1);
  open_gates(&s, TAKER, 1);
  push(&s, (const char *)rows.data);
  barrier(&s, 1);
  sealed(&s, took);
  for (int i = 0; i < MANY; i++) {
    char letter[60];
    snprintf(letter, sizeof(letter), "\"text\":\"{\\\"a\\\":%d}\"", -1 - i);
    if (!is_bad(pattern, i)) assert_int_equal(world.taken[good++], i);
    if (pattern != 1 || i % 50 == 0)
      assert_int_equal(count(letters(), letter), is_bad(pattern, i));
  }
  assert_int_equal(took[PICKY], good);
  assert_int_equal(world.n_taken, good);
  assert_int_equal(took[TAKER], MANY - good);
  assert_int_equal(count(letters(), "\n"), MANY - good);
  if (world.offered > 8 * MANY)
    fail_msg("%d rows were offered as %d", MANY, (int)world.offered);
  base_buf_done(&rows);
  stand_down(&s);
}

static void test_bad_rows_are_cut_out(void **state) {
  (void)state;
  for (int pattern = 0; pattern < 6; pattern++) {
    check_cut(FINDS_FIRST, pattern);
    check_cut(FINDS_LAST, pattern);
    check_cut(FINDS_ANY, pattern);
  }
}

static void test_a_letter_of_a_sink(void **state) {
  (void)state;
  stand s;
  uint64_t took[2];
  stand_up(&s, "a: int64; t: utf8", 1, 1, 1 << 20, NULL);
  open_gates(&s, PICKY, 1);
  open_gates(&s, TAKER, 1);
  push(&s, "{\"a\":-5,\"t\":\"x\"}\n");
  barrier(&s, 1);
  sealed(&s, took);
  assert_string_equal(
      letters(),
      "{\"kind\":\"sink\",\"name\":\"lake\",\"part\":null,\"offset\":null,"
      "\"line\":null,\"column\":\"a\",\"reason\":\"sink lake: a is "
      "negative\",\"text\":\"{\\\"a\\\":-5,\\\"t\\\":\\\"x\\\"}\","
      "\"bytes\":null}\n");
  stand_down(&s);
}

/* A text that is no UTF-8 cannot stand in JSON. */
static void test_what_json_cannot_hold_is_a_stream(void **state) {
  (void)state;
  stand s;
  uint64_t took[2];
  stand_up(&s, "a: int64; t: utf8", 1, 1, 1 << 20, NULL);
  open_gates(&s, PICKY, 1);
  open_gates(&s, TAKER, 1);
  weir_batch *batch = rows_batch(s.schema, "{\"a\":-5,\"t\":\"x\"}\n");
  ((uint8_t *)(uintptr_t)weir_batch_array(batch)->children[1]->buffers[2])[0] = 0xff;
  assert_int_equal(task_lane_push(s.lane, batch, base_deadline(SOON), NULL), WEIR_OK);
  weir_batch_unref(batch);
  barrier(&s, 1);
  sealed(&s, took);
  /* base64 of ff ff ff ff: an Arrow stream's first bytes */
  assert_non_null(strstr(letters(), "\"text\":null,\"bytes\":\"/////"));
  stand_down(&s);
}

static void test_bad_data_that_names_no_row_fails(void **state) {
  (void)state;
  static const finds ways[] = {FINDS_NONE, FINDS_BEYOND};
  for (size_t i = 0; i < BASE_COUNT(ways); i++) {
    stand s;
    stand_up(&s, "a: int64", 1, 1, 1 << 20, NULL);
    world.finds = ways[i];
    open_gates(&s, PICKY, 1);
    open_gates(&s, TAKER, 1);
    push(&s, "{\"a\":1}\n{\"a\":-5}\n");
    assert_int_equal(next(&s, SOON)->type, COORD_FAILED);
    assert_int_equal(s.error.code, WEIR_E_BAD_DATA);
    assert_int_equal(world.n_taken, 0);
    stand_down(&s);
  }
}

static void test_another_failure_on_the_way_gives_no_letter(void **state) {
  (void)state;
  stand s;
  stand_up(&s, "a: int64", 1, 1, 1 << 20, NULL);
  world.io_after = 1;
  open_gates(&s, PICKY, 1);
  open_gates(&s, TAKER, 1);
  push(&s, "{\"a\":1}\n{\"a\":-5}\n{\"a\":2}\n");
  assert_int_equal(next(&s, SOON)->type, COORD_FAILED);
  assert_int_equal(s.error.code, WEIR_E_IO);
  assert_int_equal(next(&s, 30 * BASE_NS_PER_MS)->type, COORD_TICK);
  assert_int_equal(world.letters.size, 0);
  stand_down(&s);
}

static void test_the_taker_seals_behind_every_feeder(void **state) {
  (void)state;
  stand s;
  stand_up(&s, "a: int64", 2, 2, 1 << 20, NULL);
  for (uint64_t attempt = 1; attempt <= 3; attempt++) {
    atomic_store(&world.hang, 1);
    open_gates(&s, attempt % 2 ? PICKY : TAKER, attempt);
    open_gates(&s, attempt % 2 ? TAKER : PICKY, attempt);
    push(&s, "{\"a\":-1}\n{\"a\":-2}\n");
    barrier(&s, attempt);
    /* The participant that has nothing to write seals, and nobody else. */
    assert_int_equal(next(&s, SOON)->type, COORD_SEALED);
    assert_int_equal(s.event.sink, PICKY);
    assert_int_equal(next(&s, 30 * BASE_NS_PER_MS)->type, COORD_TICK);
    atomic_store(&world.hang, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(next(&s, SOON)->type, COORD_SEALED);
    assert_int_equal(count(letters(), "\n"), 2 * attempt);
  }
  stand_down(&s);
}

/* After its sources ended a sink seals when its gate opens, and so the taker does. */
static void test_an_end_is_sent_on_with_every_attempt(void **state) {
  (void)state;
  stand s;
  uint64_t took[2];
  weir_bytes none = {0};
  stand_up(&s, "a: int64", 2, 1, 1 << 20, NULL);
  open_gates(&s, PICKY, 1);
  open_gates(&s, TAKER, 1);
  push(&s, "{\"a\":-1}\n{\"a\":1}\n");
  assert_int_equal(task_lane_end(s.lane, &none, NULL), WEIR_OK);
  assert_int_equal(next(&s, SOON)->type, COORD_LANE_ENDED);
  sealed(&s, took);
  assert_int_equal(took[PICKY], 1);
  assert_int_equal(took[TAKER], 1);
  for (uint64_t attempt = 2; attempt < 5; attempt++) {
    open_gates(&s, PICKY, attempt);
    open_gates(&s, TAKER, attempt);
    sealed(&s, took);
    assert_int_equal(took[PICKY] + took[TAKER], 0);
  }
  stand_down(&s);
}

static void test_letters_wait_for_room(void **state) {
  (void)state;
  stand s;
  uint64_t took[2];
  stand_up(&s, "a: int64", 1, 1, 100, NULL);
  open_gates(&s, PICKY, 1);
  for (int i = 0; i < 3; i++) push(&s, "{\"a\":-1}\n");
  /* The first lies with the taker, the second waits, the third is not taken. */
  int64_t until = base_deadline(SOON);
  for (int64_t offered = 0; offered < 2 && base_clock_mono() < until;) {
    base_sleep(BASE_NS_PER_MS);
    pthread_mutex_lock(&world.lock);
    offered = world.offered;
    pthread_mutex_unlock(&world.lock);
  }
  base_sleep(20 * BASE_NS_PER_MS);
  assert_int_equal(world.offered, 2);
  open_gates(&s, TAKER, 1);
  barrier(&s, 1);
  sealed(&s, took);
  assert_int_equal(took[TAKER], 3);
  stand_down(&s);
}

static void purge(stand *s, int sink, uint64_t generation) {
  task_job *job = calloc(1, sizeof(*job));
  *job = (task_job){.type = TASK_PURGE, .generation = generation};
  task_actor_send(s->actors[sink][0], job);
  assert_int_equal(next(s, SOON)->type, COORD_PURGED);
}

/* Also one that is handed over when the taker was purged already. */
static void test_a_rewind_drops_letters(void **state) {
  (void)state;
  stand s;
  uint64_t took[2];
  weir_bytes position = {0};
  stand_up(&s, "a: int64", 1, 1, 100, NULL);
  atomic_store(&world.hang, 1);
  open_gates(&s, PICKY, 1);
  push(&s, "{\"a\":-1}\n");
  task_lane_stop(s.lane, 0);
  assert_int_equal(next(&s, SOON)->type, COORD_STOPPED);
  purge(&s, TAKER, 1);
  atomic_store(&world.hang, 0);
  int64_t until = base_deadline(SOON);
  for (int64_t offered = 0; !offered && base_clock_mono() < until;) {
    base_sleep(BASE_NS_PER_MS);
    pthread_mutex_lock(&world.lock);
    offered = world.offered;
    pthread_mutex_unlock(&world.lock);
  }
  base_sleep(
      20 * BASE_NS_PER_MS); /* for the letter to go out; whether it did changes nothing */
  purge(&s, PICKY, 1);
  assert_int_equal(task_lane_seek(s.lane, 1, &position, 0, NULL), WEIR_OK);
  assert_int_equal(task_lane_take_seek(s.lane, &position), 1);
  task_lane_live(s.lane, NULL);
  assert_int_equal(next(&s, SOON)->type, COORD_SOUGHT);
  open_gates(&s, PICKY, 2);
  open_gates(&s, TAKER, 2);
  push(&s, "{\"a\":-3}\n");
  barrier(&s, 2);
  sealed(&s, took);
  assert_int_equal(took[TAKER], 1);
  assert_non_null(strstr(letters(), "{\\\"a\\\":-3}"));
  stand_down(&s);
}

static void test_rows_without_a_key_become_letters(void **state) {
  (void)state;
  stand s;
  uint64_t took[2];
  stand_up(&s, "a: int64; k: utf8; _op: utf8", 2, 1, 1 << 20, "k");
  open_gates(&s, PICKY, 1);
  open_gates(&s, TAKER, 1);
  push(&s,
       "{\"a\":1,\"k\":\"x\",\"_op\":\"U\"}\n{\"a\":2,\"k\":null,\"_op\":\"U\"}\n"
       "{\"a\":3,\"k\":\"x\",\"_op\":\"X\"}\n{\"a\":-4,\"k\":\"x\",\"_op\":\"U\"}\n"
       "{\"a\":5,\"k\":\"x\",\"_op\":\"D\"}\n{\"a\":6,\"k\":null,\"_op\":null}\n");
  barrier(&s, 1);
  sealed(&s, took);
  assert_int_equal(took[PICKY], 2);
  assert_int_equal(took[TAKER], 4);
  assert_int_equal(world.taken[0], 1);
  assert_int_equal(world.taken[1], 5);
  assert_int_equal(count(letters(), "is part of the key and has no value"), 1);
  assert_int_equal(count(letters(), "is neither U (replace by key) nor D"), 2);
  assert_int_equal(count(letters(), "\"column\":\"k\""), 1);
  stand_down(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bad_rows_are_cut_out),
      cmocka_unit_test(test_a_letter_of_a_sink),
      cmocka_unit_test(test_what_json_cannot_hold_is_a_stream),
      cmocka_unit_test(test_bad_data_that_names_no_row_fails),
      cmocka_unit_test(test_another_failure_on_the_way_gives_no_letter),
      cmocka_unit_test(test_the_taker_seals_behind_every_feeder),
      cmocka_unit_test(test_an_end_is_sent_on_with_every_attempt),
      cmocka_unit_test(test_letters_wait_for_room),
      cmocka_unit_test(test_a_rewind_drops_letters),
      cmocka_unit_test(test_rows_without_a_key_become_letters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
