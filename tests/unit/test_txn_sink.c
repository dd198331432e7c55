/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* The transactional adapter on a target in memory that loses sessions and answers as it is told: whatever
 * happens, the target has each row once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connector/connector.h"
#include "coord/coord.h"
#include "spool/txn.h"
#include "support/folder.h"
#include "support/rows.h"
#include "support/txn_target.h"

/* ---- a runtime ---------------------------------------------------------------------------------- */

enum { WRITERS = 2, ATTEMPTS = 16 };

static char folder[FOLDER_PATH];
static weir_host host;
static const weir_host *given_host = &host;
static int checkpoints, holds;
static weir_namespace ns = {
    .struct_size = sizeof(ns), .pipeline = "p", .sink_id = "s", .identity = {1}};
static weir_binding binding = {.struct_size = sizeof(binding)};
static weir_sink sinks[WRITERS];
static size_t n_sinks;
static int64_t next_row, decided_rows[ROWS];
static size_t n_decided;
static struct decided {
  weir_commit_attempt attempt;
  weir_commit_entry entries[WRITERS];
  weir_bytes descriptors[WRITERS];
} history[ATTEMPTS];
static uint64_t number;  /* of the last attempt */
static weir_cursor seen; /* committed last */

static void host_log(void *ctx, int32_t level, const char *where, const char *text) {
  (void)ctx, (void)level, (void)where, (void)text;
}

static weir_status host_random(void *ctx, void *out, size_t size, weir_error *err) {
  (void)ctx;
  return base_random(out, size, err);
}

static void host_checkpoint(void *ctx) {
  (void)ctx;
  __atomic_add_fetch(&checkpoints, 1, __ATOMIC_SEQ_CST);
}

static void host_hold(void *ctx, int32_t on) {
  (void)ctx;
  __atomic_add_fetch(&holds, on ? 1 : -1, __ATOMIC_SEQ_CST);
}

static void must(weir_status status, const weir_error *err) {
  if (status) fail_msg("%s: %s", weir_status_name(status), err->message);
}

static weir_call *call_of(int64_t ns_left) {
  weir_call *call = weir_call_new(ns_left);
  assert_non_null(call);
  return call;
}

static void open_sinks(size_t n) {
  weir_error err = {0};
  weir_options *none = NULL;
  weir_contract given = {.struct_size = sizeof(given)};
  weir_schema *schema = rows_schema("id: int64; name: utf8");
  weir_binding_done(&binding);
  must(weir_options_new(txn_target_options, "sink s", NULL, NULL, 0, NULL, &none, &err),
       &err);
  for (n_sinks = 0; n_sinks < n; n_sinks++) {
    weir_sink *s = &sinks[n_sinks];
    *s = (weir_sink){.ops = &txn_target_sink};
    must(txn_target_sink.create(given_host, s, &err), &err);
    must(txn_target_sink.contract(s, none, &given, &err), &err);
    must(txn_target_sink.bind_runtime_context(s, &ns, n_sinks + 1, &err), &err);
    if (!n_sinks) {
      must(txn_target_sink.resolve_schema(s, NULL, none, schema, &binding, &err), &err);
      must(txn_target_sink.prepare_schema(s, NULL, none, &binding, &err), &err);
    }
    must(txn_target_sink.open(s, NULL, none, &binding, &err), &err);
  }
  weir_options_free(none);
  weir_schema_unref(schema);
}

static void close_sinks(void) {
  weir_error err = {0};
  for (size_t i = 0; i < n_sinks; i++) {
    must(txn_target_sink.close(&sinks[i], NULL, &err), &err);
    txn_target_sink.release(&sinks[i]);
  }
  n_sinks = 0;
}

static uint64_t begin_epoch(void) {
  weir_error err = {0};
  number++;
  for (size_t i = 0; i < n_sinks; i++) {
    weir_bytes intent = {0};
    must(txn_target_sink.checkpoint_artifact_intent(&sinks[i], NULL, number, &intent,
                                                    &err),
         &err);
    weir_bytes_release(&intent);
    must(txn_target_sink.begin_epoch(&sinks[i], NULL, number, &err), &err);
  }
  return number;
}

static weir_status write_ids(size_t i, const int64_t *ids, size_t n, weir_error *err) {
  char text[4096] = "";
  for (size_t k = 0; k < n; k++)
    snprintf(text + strlen(text), sizeof(text) - strlen(text),
             "{\"id\":%lld,\"name\":\"n\"}\n", (long long)ids[k]);
  weir_batch *batch = rows_batch(binding.schema, text);
  weir_write_result result = {0};
  weir_status status = txn_target_sink.write_batch(&sinks[i], NULL, batch, &result, err);
  weir_batch_unref(batch);
  if (!status) assert_int_equal(result.records, n);
  return status;
}

/* `batches` of two rows to each sink. */
static void fill(size_t batches) {
  weir_error err = {0};
  for (size_t b = 0; b < batches; b++) {
    for (size_t i = 0; i < n_sinks; i++) {
      int64_t ids[2] = {next_row, next_row + 1};
      next_row += 2;
      must(write_ids(i, ids, 2, &err), &err);
    }
  }
}

static weir_status try_prepare(const weir_call *call, weir_error *err) {
  struct decided *d = &history[number];
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < n_sinks && !status; i++) {
    weir_bytes_release(&d->descriptors[i]);
    status = txn_target_sink.pre_commit(&sinks[i], call, number, &d->descriptors[i], err);
  }
  return status;
}

static void decide(void) {
  struct decided *d = &history[number];
  weir_error err = {0};
  weir_commit_attempt *a = &d->attempt;
  for (size_t i = 0; i < n_sinks; i++)
    d->entries[i] = (weir_commit_entry){i + 1, d->descriptors[i].release != NULL,
                                        d->descriptors[i].data, d->descriptors[i].size};
  *a = (weir_commit_attempt){.entries = d->entries, .n_entries = n_sinks};
  a->cursor.checkpoint = number;
  a->cursor.token = 1;
  must(coord_digest("s", number, d->entries, n_sinks, a->cursor.digest, &err), &err);
  while ((int64_t)n_decided < next_row) {
    decided_rows[n_decided] = (int64_t)n_decided;
    n_decided++;
  }
}

static void prepare_all(void) {
  weir_error err = {0};
  must(try_prepare(NULL, &err), &err);
  decide();
}

static uint64_t decided_epoch(size_t batches) {
  begin_epoch();
  fill(batches);
  prepare_all();
  return number;
}

static weir_status try_commit(uint64_t first, uint64_t last, const weir_call *call,
                              weir_error *err) {
  weir_commit_attempt attempts[ATTEMPTS];
  weir_cursor out = {0};
  for (uint64_t n = first; n <= last; n++) attempts[n - first] = history[n].attempt;
  weir_commit_batch batch = {.struct_size = sizeof(batch),
                             .ns = &ns,
                             .predecessor = seen,
                             .attempts = attempts,
                             .n_attempts = (size_t)(last - first + 1)};
  weir_committer committer = txn_target_sink.as_coordinated_committer(&sinks[0]);
  weir_status status =
      committer.ops->commit_aggregated(committer.state, call, &batch, &out, err);
  if (!status) {
    assert_true(weir_cursor_equal(&out, &history[last].attempt.cursor));
    seen = out;
  }
  return status;
}

static void commit_all(uint64_t first, uint64_t last) {
  weir_error err = {0};
  must(try_commit(first, last, NULL, &err), &err);
}

static void roll_back(uint64_t n) {
  weir_error err = {0};
  for (size_t i = 0; i < n_sinks; i++)
    must(txn_target_sink.rollback_epoch(&sinks[i], NULL, n, &err), &err);
  next_row = (int64_t)n_decided; /* the source goes back */
}

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

/* Each decided row once, and no other. */
static void check_rows(void) {
  lock();
  int64_t rows[ROWS];
  size_t n = target.n;
  memcpy(rows, target.rows, n * sizeof(*rows));
  unlock();
  qsort(rows, n, sizeof(*rows), by_number);
  assert_int_equal(n, n_decided);
  for (size_t i = 0; i < n; i++) assert_int_equal(rows[i], decided_rows[i]);
}

static int start(void **state) {
  (void)state;
  memset((char *)&target + offsetof(struct target, rows), 0,
         sizeof(target) - offsetof(struct target, rows));
  target.contract.struct_size = sizeof(target.contract);
  memset(history, 0, sizeof(history));
  next_row = 0;
  n_decided = 0;
  number = 0;
  checkpoints = holds = 0;
  memset(&seen, 0, sizeof(seen));
  if (folder_make(folder)) return -1;
  host = (weir_host){.abi_version = WEIR_ABI_VERSION,
                     .struct_size = sizeof(host),
                     .log = host_log,
                     .random = host_random,
                     .spool = folder,
                     .spool_limit = 1 << 30,
                     .spool_keep = 1 << 30,
                     .checkpoint = host_checkpoint,
                     .hold = host_hold};
  return 0;
}

static int stop(void **state) {
  (void)state;
  close_sinks();
  for (size_t n = 0; n < ATTEMPTS; n++)
    for (size_t i = 0; i < WRITERS; i++) weir_bytes_release(&history[n].descriptors[i]);
  weir_binding_done(&binding);
  return folder_remove(folder);
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void test_epochs(void **state) {
  (void)state;
  open_sinks(WRITERS);
  for (int i = 0; i < 4; i++) {
    uint64_t n = decided_epoch(3);
    lock();
    assert_int_equal(target.n, n_decided - 12); /* nothing before the commit */
    assert_int_equal(target.prepared, i + 1);
    unlock();
    commit_all(n, n);
    check_rows();
  }
  assert_int_equal(target.opened, 1); /* one session, and no row applied twice */
  assert_int_equal(target.applied, 4 * 6);
  assert_int_equal(target.taken_over, 1);
  seen = history[number - 1].attempt.cursor;
  commit_all(number, number); /* again */
  check_rows();
}

static void test_a_bad_row_is_refused_before_it_is_taken(void **state) {
  (void)state;
  weir_error err = {0};
  const int64_t bad[] = {7, -1};
  open_sinks(1);
  begin_epoch();
  fill(1);
  assert_int_equal(write_ids(0, bad, 2, &err), WEIR_E_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_int_equal(err.column, 0);
  fill(1);
  prepare_all();
  commit_all(1, 1);
  check_rows();
}

static void test_empty_epochs(void **state) {
  (void)state;
  open_sinks(WRITERS);
  decided_epoch(0);
  assert_null(history[1].descriptors[0].release);
  decided_epoch(1);
  commit_all(1, 2);
  decided_epoch(0);
  decided_epoch(0);
  decided_epoch(2);
  commit_all(3, 5);
  check_rows();
}

/* A commit that fails with that error, in which the rows may have landed. */
static void commit_with(rule r, weir_status want) {
  weir_error err = {0};
  add_rule(r);
  uint64_t n = decided_epoch(2);
  assert_int_equal(try_commit(n, n, NULL, &err), want);
  if (want) assert_int_equal(err.flags, WEIR_ERR_RETRIABLE);
  if (want) commit_all(n, n);
  check_rows();
  decided_epoch(1);
  commit_all(number, number);
  check_rows();
}

static void test_commit_in_doubt_landed(void **state) {
  (void)state;
  open_sinks(WRITERS);
  commit_with((rule){"commit", 1, WEIR_E_IO, WEIR_ERR_IN_DOUBT, true}, WEIR_OK);
  assert_int_equal(target.applied, 4 + 2);
}

static void test_commit_in_doubt_lost(void **state) {
  (void)state;
  open_sinks(WRITERS);
  commit_with((rule){"commit", 1, WEIR_E_IO, WEIR_ERR_IN_DOUBT, false}, WEIR_E_IO);
}

static void test_commit_called_fenced(void **state) {
  (void)state;
  open_sinks(WRITERS);
  commit_with((rule){"commit", 1, WEIR_E_FENCED, 0, false}, WEIR_E_IO);
}

static void test_commit_refused_once(void **state) {
  (void)state;
  open_sinks(WRITERS);
  commit_with((rule){"commit", 1, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, false},
              WEIR_E_BAD_DATA);
}

static void test_commit_refused_for_good(void **state) {
  (void)state;
  weir_error err = {0};
  open_sinks(WRITERS);
  uint64_t n = decided_epoch(2);
  add_rule((rule){"commit", 0, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, false});
  assert_int_equal(try_commit(n, n, NULL, &err), WEIR_E_BAD_DATA);
  assert_true(err.flags & WEIR_ERR_RETRIABLE); /* the lease is asked first */
  assert_int_equal(try_commit(n, n, NULL, &err), WEIR_E_BAD_DATA);
  assert_false(err.flags & WEIR_ERR_RETRIABLE);
  drop_rule(0);
  commit_all(n, n);
  check_rows();
}

/* And the cursor cannot be read afterwards: nobody knows. */
static void test_commit_nobody_knows(void **state) {
  (void)state;
  weir_error err = {0};
  open_sinks(WRITERS);
  uint64_t n = decided_epoch(2);
  add_rule((rule){"commit", 1, WEIR_E_IO, WEIR_ERR_IN_DOUBT, true});
  add_rule((rule){"open", 0, WEIR_E_IO, WEIR_ERR_RETRIABLE, false});
  assert_int_equal(try_commit(n, n, NULL, &err), WEIR_E_IO);
  assert_int_equal(err.flags, WEIR_ERR_IN_DOUBT);
  drop_rule(1);
  commit_all(n, n);
  check_rows();
}

/* The session is lost before pre_commit's, after it, in each hook. */
static void test_sessions_lost(void **state) {
  (void)state;
  const char *const hooks[] = {"begin", "apply", "prepare", "take_over", "read_cursor"};
  open_sinks(WRITERS);
  decided_epoch(1);
  commit_all(1, 1);
  for (size_t i = 0; i < BASE_COUNT(hooks); i++) {
    add_rule((rule){hooks[i], 1, WEIR_E_IO, WEIR_ERR_RETRIABLE, false});
    lose_sessions();
    decided_epoch(2);
    commit_all(number, number);
    check_rows();
    drop_rule(0);
  }
  decided_epoch(2);
  lose_sessions(); /* after the decision */
  weir_error err = {0};
  assert_int_equal(try_commit(number, number, NULL, &err), WEIR_E_IO);
  assert_int_equal(err.flags, WEIR_ERR_RETRIABLE);
  commit_all(number, number);
  check_rows();
}

static void test_bad_data_is_believed_twice(void **state) {
  (void)state;
  weir_error err = {0};
  open_sinks(WRITERS);
  add_rule((rule){"prepare", 1, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, false});
  decided_epoch(2); /* once: an owner that was replaced would see it */
  commit_all(1, 1);
  check_rows();
  add_rule((rule){"apply", 0, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, false});
  begin_epoch();
  int64_t ids[2] = {next_row, next_row + 1};
  next_row += 2;
  must(write_ids(0, ids, 2, &err), &err);
  assert_int_equal(try_prepare(NULL, &err), WEIR_E_BAD_DATA);
  assert_true(err.flags & WEIR_ERR_BAD_DATA);
  /* Of a batch that was taken: a row of the next one must not be set aside for it. */
  assert_int_equal(write_ids(0, ids, 2, &err), WEIR_E_BAD_DATA);
  assert_int_equal(err.row, -1);
  roll_back(number);
  drop_rules();
  decided_epoch(1);
  commit_all(number, number);
  check_rows();
}

static void test_fenced_is_asked_of_the_cursor(void **state) {
  (void)state;
  weir_error err = {0};
  open_sinks(WRITERS);
  decided_epoch(1);
  commit_all(1, 1);
  /* A transaction that expired is called fenced, though nobody else exists. */
  add_rule((rule){"prepare", 1, WEIR_E_FENCED, 0, false});
  decided_epoch(1);
  commit_all(2, 2);
  check_rows();
  /* Somebody else exists. */
  decided_epoch(1);
  lock();
  target.cursor = (weir_cursor){9, 2, {0}};
  unlock();
  lose_sessions();
  for (int i = 0; i < 2; i++)
    assert_int_equal(try_commit(3, 3, NULL, &err), WEIR_E_FENCED);
  begin_epoch();
  int64_t ids[2] = {90, 91};
  must(write_ids(0, ids, 2, &err), &err);
  weir_status status = try_prepare(NULL, &err);
  assert_int_equal(status,
                   WEIR_OK); /* the store's lease says no; the target, at the commit */
  assert_int_equal(target.n, 8);
}

static void test_recovery_by_another_process(void **state) {
  (void)state;
  open_sinks(WRITERS);
  decided_epoch(2);
  close_sinks();
  open_sinks(1);
  commit_all(1, 1);
  check_rows();
}

static void test_what_another_run_left_behind_is_not_joined(void **state) {
  (void)state;
  weir_host other = host;
  open_sinks(1);
  weir_sink left = sinks[0];
  given_host = &other;
  open_sinks(1);
  given_host = &host;
  assert_int_equal(target.opened, 2);
  decided_epoch(1);
  commit_all(1, 1);
  check_rows();
  close_sinks();
  sinks[n_sinks++] = left;
}

static void test_rollbacks(void **state) {
  (void)state;
  open_sinks(WRITERS);
  for (int i = 0; i < 3; i++) {
    begin_epoch();
    if (i) fill(2);
    weir_error err = {0};
    if (i == 2) must(try_prepare(NULL, &err), &err);
    roll_back(number);
    roll_back(number);
    roll_back(number + 7);
    decided_epoch(1);
    commit_all(number, number);
    check_rows();
  }
  roll_back(number);
  check_rows();
  /* Behind a decided one, which stays. */
  uint64_t n = decided_epoch(1);
  begin_epoch();
  fill(1);
  roll_back(number);
  commit_all(n, n);
  check_rows();
}

static void test_several_in_one_transaction(void **state) {
  (void)state;
  open_sinks(1);
  decided_epoch(1);
  decided_epoch(2);
  decided_epoch(1);
  assert_int_equal(target.begun, 1);
  commit_all(1, 3);
  assert_int_equal(target.applied, 4);
  check_rows();
  /* The first alone, when two are open. */
  decided_epoch(1);
  decided_epoch(1);
  commit_all(4, 4);
  assert_int_equal(target.n, n_decided - 2);
  commit_all(5, 5);
  check_rows();
}

static void test_the_next_epoch_waits_in_the_spool(void **state) {
  (void)state;
  open_sinks(WRITERS);
  uint64_t n = decided_epoch(1);
  begin_epoch();
  fill(3);
  assert_int_equal(target.applied, 2);
  commit_all(n, n);
  assert_int_equal(target.n, 4); /* of the second, nothing */
  prepare_all();
  commit_all(number, number);
  check_rows();
}

static void test_brief(void **state) {
  (void)state;
  weir_error err = {0};
  target.contract.brief = 1;
  open_sinks(WRITERS);
  decided_epoch(2);
  assert_int_equal(target.begun, 1); /* tried, and nothing is left open */
  commit_all(1, 1);
  assert_int_equal(target.begun, 2);
  decided_epoch(1);
  decided_epoch(1);
  commit_all(2, 3);
  check_rows();
  add_rule((rule){"prepare", 0, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, false});
  begin_epoch();
  fill(1);
  assert_int_equal(try_prepare(NULL, &err), WEIR_E_BAD_DATA);
  roll_back(number);
  drop_rules();
  decided_epoch(1);
  commit_all(number, number);
  check_rows();
}

static void test_a_segment_that_is_gone(void **state) {
  (void)state;
  weir_error err = {0};
  weir_spool_segment segment;
  open_sinks(1);
  decided_epoch(1);
  close_sinks();
  must(weir_spool_descriptor_read(history[1].descriptors[0].data,
                                  history[1].descriptors[0].size, &segment, &err),
       &err);
  must(weir_spool_remove(folder, &ns, &segment.id, &err), &err);
  open_sinks(1);
  assert_int_equal(try_commit(1, 1, NULL, &err), WEIR_E_NOT_FOUND);
  assert_int_equal(err.flags, 0);
  assert_non_null(strstr(err.message, ".spool"));
  assert_int_equal(target.n, 0);
}

/* A target that does not come back costs the calls that wait for it, and no row. */
static void test_a_hung_target(void **state) {
  (void)state;
  weir_error err = {0};
  open_sinks(1);
  weir_task_tracker *tracker = txn_target_sink.terminal_task_tracker(&sinks[0]);
  lock();
  target.hang = true;
  unlock();
  for (int i = 0; i < 2; i++) {
    begin_epoch();
    fill(1);
    weir_call *call = call_of(30 * BASE_NS_PER_MS);
    assert_int_equal(try_prepare(call, &err), WEIR_E_TIMEOUT);
    assert_true(err.flags & WEIR_ERR_RETRIABLE);
    weir_call_free(call);
    roll_back(number);
  }
  /* Left behind; the next one hangs as well, until all come back. */
  begin_epoch();
  fill(1);
  lock();
  target.hang = false;
  unlock();
  prepare_all();
  commit_all(number, number);
  check_rows();
  close_sinks();
  must(weir_task_tracker_wait(tracker, 60 * BASE_NS_PER_S, &err), &err);
  weir_task_tracker_unref(tracker);
  assert_int_equal(target.opened, target.closed);
  check_rows();
}

/* What a step does that comes back late is nothing to the transaction of its successor, which knows what it
 * holds. */
static void test_a_step_left_behind_comes_back(void **state) {
  (void)state;
  weir_error err = {0};
  weir_status status = WEIR_OK;
  bool closed = false;
  target.stuck = 1;
  open_sinks(1);
  begin_epoch();
  fill(1);
  do {
    weir_call *call = call_of(30 * BASE_NS_PER_MS);
    status = try_prepare(call, &err);
    weir_call_free(call);
  } while (status);
  do {
    base_sleep(BASE_NS_PER_MS);
    lock();
    target.stuck = 0;
    closed = target.closed > 0;
    unlock();
  } while (!closed);
  roll_back(number);
  decided_epoch(1);
  commit_all(number, number);
  check_rows();
}

static void test_limits(void **state) {
  (void)state;
  host.spool_limit = 4000;
  open_sinks(1);
  uint64_t n = decided_epoch(1);
  begin_epoch();
  while (!__atomic_load_n(&checkpoints, __ATOMIC_SEQ_CST)) fill(1);
  assert_int_equal(holds, 0);
  while (!__atomic_load_n(&holds, __ATOMIC_SEQ_CST)) fill(1);
  fill(2); /* what is under way is taken */
  assert_int_equal(holds, 1);
  assert_int_equal(checkpoints, 1);
  commit_all(n, n);
  prepare_all();
  commit_all(number, number);
  assert_int_equal(holds, 0);
  check_rows();
}

static void test_epoch_bytes_and_age(void **state) {
  (void)state;
  target.contract.max_epoch_bytes = 4000;
  target.contract.max_age_ns = 20 * BASE_NS_PER_MS;
  open_sinks(1);
  begin_epoch();
  fill(1);
  int64_t deadline = base_deadline(60 * BASE_NS_PER_S);
  while (!__atomic_load_n(&checkpoints, __ATOMIC_SEQ_CST) && base_clock_mono() < deadline)
    base_sleep(BASE_NS_PER_MS);
  assert_int_equal(checkpoints, 1);
  while (!__atomic_load_n(&holds, __ATOMIC_SEQ_CST)) fill(1);
  assert_int_equal(checkpoints, 2);
  roll_back(number);
  assert_int_equal(holds, 0);
}

static void test_tables_that_lack_something(void **state) {
  (void)state;
  weir_error err = {0};
  weir_sink sink = {0};
  weir_txn_ops ops = txn_target_ops;
  ops.commit = NULL;
  assert_int_equal(weir_txn_sink_create(&ops, &host, &sink, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "`commit`"));
  ops = txn_target_ops;
  ops.struct_size = 8;
  assert_int_equal(weir_txn_sink_create(&ops, &host, &sink, &err),
                   WEIR_E_NOT_IMPLEMENTED);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
  const struct CMUnitTest tests[] = {
      TEST(test_epochs),
      TEST(test_a_bad_row_is_refused_before_it_is_taken),
      TEST(test_empty_epochs),
      TEST(test_commit_in_doubt_landed),
      TEST(test_commit_in_doubt_lost),
      TEST(test_commit_called_fenced),
      TEST(test_commit_refused_once),
      TEST(test_commit_refused_for_good),
      TEST(test_commit_nobody_knows),
      TEST(test_sessions_lost),
      TEST(test_bad_data_is_believed_twice),
      TEST(test_fenced_is_asked_of_the_cursor),
      TEST(test_recovery_by_another_process),
      TEST(test_what_another_run_left_behind_is_not_joined),
      TEST(test_rollbacks),
      TEST(test_several_in_one_transaction),
      TEST(test_the_next_epoch_waits_in_the_spool),
      TEST(test_brief),
      TEST(test_a_segment_that_is_gone),
      TEST(test_a_hung_target),
      TEST(test_a_step_left_behind_comes_back),
      TEST(test_limits),
      TEST(test_epoch_bytes_and_age),
      TEST(test_tables_that_lack_something),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
