/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks `blackhole` and `stdout`. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/sink.h>
#include "support/file_rig.h"
#include "support/rows.h"

extern const weir_sink_ops weir_blackhole_sink_ops;
extern const weir_sink_ops weir_stdout_sink_ops;

typedef struct opened {
  weir_sink sink;
  weir_options *options;
  weir_schema *schema;
  weir_binding binding;
} opened;

static void open_with(opened *o, const weir_sink_ops *ops, const char *columns,
                      const char *const *names, const char *const *values, size_t n) {
  weir_error err = {0};
  memset(o, 0, sizeof(*o));
  o->binding.struct_size = sizeof(o->binding);
  o->schema = rows_schema(columns);
  if (weir_options_new(ops->options, "sink it", names, values, n, NULL, &o->options,
                       &err) ||
      ops->create(file_rig_host(), &o->sink, &err) ||
      weir_binding_logical(o->schema, &o->binding, &err) ||
      ops->open(&o->sink, NULL, o->options, &o->binding, &err)) {
    fail_msg("%s", err.message);
  }
}

static void open_sink(opened *o, const weir_sink_ops *ops, const char *columns) {
  open_with(o, ops, columns, NULL, NULL, 0);
}

static void close_sink(opened *o) {
  assert_int_equal(o->sink.ops->close(&o->sink, NULL, NULL), WEIR_OK);
  o->sink.ops->release(&o->sink);
  assert_null(o->sink.ops);
  weir_binding_done(&o->binding);
  weir_schema_unref(o->schema);
  weir_options_free(o->options);
}

static void blackhole_counts(void **state) {
  (void)state;
  opened o;
  weir_contract contract = {.struct_size = sizeof(contract)};
  weir_write_result result = {0};
  struct ArrowSchema schema = {0};
  open_sink(&o, &weir_blackhole_sink_ops, "a: int64");
  const weir_sink_ops *ops = o.sink.ops;
  assert_int_equal(ops->contract(&o.sink, o.options, &contract, NULL), WEIR_OK);
  assert_int_equal(contract.consistency, WEIR_EPHEMERAL);
  assert_int_equal(contract.topology, WEIR_MULTI_WRITER);
  weir_batch *batch = rows_batch(o.schema, "{\"a\":1}\n{\"a\":2}\n");
  assert_int_equal(ops->write_batch(&o.sink, NULL, batch, &result, NULL), WEIR_OK);
  assert_int_equal(result.records, 2);
  assert_true(result.bytes >= 16);
  assert_int_equal(ops->schema(&o.sink, &schema, NULL), WEIR_OK);
  assert_int_equal(schema.n_children, 1);
  schema.release(&schema);
  weir_batch_unref(batch);
  close_sink(&o);
}

/* Standard output is `to` while `batch` is written. */
static weir_status write_to(opened *o, int to, weir_batch *batch, weir_error *err) {
  weir_write_result result = {0};
  int kept = dup(STDOUT_FILENO);
  assert_true(kept >= 0 && dup2(to, STDOUT_FILENO) >= 0);
  weir_status status = o->sink.ops->write_batch(&o->sink, NULL, batch, &result, err);
  assert_true(dup2(kept, STDOUT_FILENO) >= 0);
  close(kept);
  return status;
}

static void stdout_writes_lines(void **state) {
  (void)state;
  opened o;
  int ends[2];
  char text[64] = {0};
  weir_error err = {0};
  weir_contract contract = {.struct_size = sizeof(contract)};
  open_sink(&o, &weir_stdout_sink_ops, "a: int64; b: utf8");
  assert_int_equal(o.sink.ops->contract(&o.sink, o.options, &contract, NULL), WEIR_OK);
  assert_int_equal(contract.consistency, WEIR_EPHEMERAL);
  assert_int_equal(contract.topology, WEIR_SINGLETON);
  weir_batch *batch =
      rows_batch(o.schema, "{\"a\":1,\"b\":\"x\"}\n{\"a\":null,\"b\":\"y\"}\n");
  assert_int_equal(pipe(ends), 0);
  if (write_to(&o, ends[1], batch, &err)) fail_msg("%s", err.message);
  close(ends[1]);
  assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
  assert_string_equal(text, "{\"a\":1,\"b\":\"x\"}\n{\"a\":null,\"b\":\"y\"}\n");
  close(ends[0]);
  weir_batch_unref(batch);
  close_sink(&o);
}

static void stdout_writes_csv(void **state) {
  (void)state;
  static const char *const names[] = {"format", "csv.delimiter", "csv.null"};
  static const char *const values[] = {"csv", ";", "NULL"};
  opened o;
  int ends[2];
  char text[64] = {0};
  weir_error err = {0};
  open_with(&o, &weir_stdout_sink_ops, "a: int64; b: utf8", names, values, 3);
  weir_batch *batch =
      rows_batch(o.schema, "{\"a\":1,\"b\":\"x;\"}\n{\"a\":null,\"b\":\"\"}\n");
  assert_int_equal(pipe(ends), 0);
  for (int i = 0; i < 2; i++) { /* one header */
    if (write_to(&o, ends[1], batch, &err)) fail_msg("%s", err.message);
  }
  close(ends[1]);
  assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
  assert_string_equal(text, "a;b\n1;\"x;\"\nNULL;\n1;\"x;\"\nNULL;\n");
  close(ends[0]);
  weir_batch_unref(batch);
  close_sink(&o);
}

static void stdout_survives_a_closed_reader(void **state) {
  (void)state;
  opened o;
  int ends[2];
  sigset_t pending;
  weir_error err = {0};
  open_sink(&o, &weir_stdout_sink_ops, "a: int64");
  weir_batch *batch = rows_batch(o.schema, "{\"a\":1}\n");
  assert_int_equal(pipe(ends), 0);
  close(ends[0]);
  signal(SIGPIPE, SIG_DFL); /* it would end this process */
  assert_int_equal(write_to(&o, ends[1], batch, &err), WEIR_E_IO);
  assert_int_equal(err.flags, 0);
  assert_non_null(strstr(err.message, "closed by its reader"));
  sigpending(&pending);
  assert_false(sigismember(&pending, SIGPIPE));
  close(ends[1]);
  weir_batch_unref(batch);
  close_sink(&o);
}

static void stdout_waits_for_room(void **state) {
  (void)state;
  enum { ROWS = 10000 };
  opened o;
  int ends[2];
  weir_error err = {0};
  char *lines = calloc(ROWS, 16), *at = lines;
  open_sink(&o, &weir_stdout_sink_ops, "a: int64");
  for (int i = 0; i < ROWS; i++) {
    memcpy(at, "{\"a\":1234}\n", 11);
    at += 11;
  }
  weir_batch *batch = rows_batch(o.schema, lines);
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) { /* the reader, in pieces */
    char piece[4096];
    size_t total = 0;
    ssize_t n;
    close(ends[1]);
    while ((n = read(ends[0], piece, sizeof(piece))) > 0) total += (size_t)n;
    _exit(total == (size_t)ROWS * 11 ? 0 : 1);
  }
  close(ends[0]);
  if (write_to(&o, ends[1], batch, &err)) fail_msg("%s", err.message);
  close(ends[1]);
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  weir_batch_unref(batch);
  close_sink(&o);
  free(lines);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blackhole_counts),
      cmocka_unit_test(stdout_writes_lines),
      cmocka_unit_test(stdout_writes_csv),
      cmocka_unit_test(stdout_survives_a_closed_reader),
      cmocka_unit_test(stdout_waits_for_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
