/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sources.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/rows.h"

int64_t sources_now = 1000;

static void no_log(void *ctx, int32_t level, const char *where, const char *text) {
  (void)ctx;
  (void)level;
  (void)where;
  (void)text;
}

static int64_t fake_clock(void *ctx) {
  (void)ctx;
  return sources_now;
}

static weir_status no_random(void *ctx, void *out, size_t size, weir_error *err) {
  (void)ctx;
  (void)err;
  memset(out, 7, size);
  return WEIR_OK;
}

const weir_host sources_host = {.abi_version = WEIR_ABI_VERSION,
                                .struct_size = sizeof(weir_host),
                                .log = no_log,
                                .monotonic_ns = fake_clock,
                                .wall_ns = fake_clock,
                                .random = no_random};

static weir_status try_open(const weir_source_ops *ops, const char *const *settings,
                            const weir_bytes *position, opened_source *s,
                            weir_error *err) {
  const char *names[32], *values[32];
  size_t n = 0;
  weir_source_contract contract = {.struct_size = sizeof(contract)};
  weir_schema *schema = NULL;
  for (; settings[2 * n] != NULL; n++) {
    assert_true(n < 32);
    names[n] = settings[2 * n];
    values[n] = settings[2 * n + 1];
  }
  weir_status status = weir_options_new(ops->options, "source in", names, values, n, NULL,
                                        &s->options, err);
  if (status == WEIR_OK) status = ops->create(&sources_host, &s->source, err);
  if (status == WEIR_OK) status = ops->contract(&s->source, s->options, &contract, err);
  if (status == WEIR_OK) {
    assert_int_equal(contract.replay, WEIR_SOURCE_REPLAYABLE);
    status = ops->resolve_schema(&s->source, NULL, s->options, &schema, err);
  }
  if (status == WEIR_OK) {
    weir_bytes none = {0};
    status = ops->open(&s->source, NULL, s->options, position ? position : &none, err);
  }
  weir_schema_unref(schema);
  return status;
}

static void drop(opened_source *s) {
  if (s->source.ops != NULL) s->source.ops->release(&s->source);
  assert_null(s->source.ops);
  weir_options_free(s->options);
  s->options = NULL;
}

opened_source sources_open(const weir_source_ops *ops, const char *const *settings,
                           const weir_bytes *position) {
  opened_source s = {0};
  weir_error err = {0};
  if (try_open(ops, settings, position, &s, &err) != WEIR_OK) fail_msg("%s", err.message);
  return s;
}

weir_status sources_open_error(const weir_source_ops *ops, const char *const *settings,
                               const weir_bytes *position, weir_error *err) {
  opened_source s = {0};
  weir_status status = try_open(ops, settings, position, &s, err);
  assert_int_not_equal(status, WEIR_OK);
  assert_int_equal(status, err->code);
  drop(&s);
  return status;
}

weir_batch *sources_read(opened_source *s) {
  weir_batch *batch = NULL;
  weir_error err = {0};
  int32_t what = 0;
  do {
    if (s->source.ops->read(&s->source, NULL, &what, &batch, &err) != WEIR_OK) {
      fail_msg("%s", err.message);
    }
  } while (what == WEIR_READ_NOTHING);
  assert_int_equal(what == WEIR_READ_BATCH, batch != NULL);
  return batch;
}

char *sources_read_text(opened_source *s, int max) {
  size_t size = 0;
  char *all = calloc(1, 1);
  weir_batch *batch;
  assert_non_null(all);
  for (int i = 0; i < max && (batch = sources_read(s)) != NULL; i++) {
    char *text = rows_text(batch);
    size_t more = strlen(text);
    all = realloc(all, size + more + 1);
    assert_non_null(all);
    memcpy(all + size, text, more + 1);
    size += more;
    free(text);
    weir_batch_unref(batch);
  }
  return all;
}

weir_bytes sources_position(opened_source *s) {
  weir_bytes position = {0};
  weir_error err = {0};
  if (s->source.ops->position(&s->source, &position, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
  assert_non_null(position.release);
  return position;
}

void sources_seek(opened_source *s, const weir_bytes *position) {
  weir_error err = {0};
  if (s->source.ops->seek(&s->source, NULL, position, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
}

void sources_close(opened_source *s) {
  weir_error err = {0};
  assert_int_equal(s->source.ops->close(&s->source, NULL, &err), WEIR_OK);
  drop(s);
}
