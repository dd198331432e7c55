/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to writers by key, and what has no key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nanoarrow/nanoarrow.h>

#include "support/rows.h"
#include "task/task.h"

#define WRITERS 4

typedef struct split {
  weir_schema *schema;
  task_router *router;
  weir_batch *pieces[WRITERS];
} split;

static split split_new(const char *columns, const char *const *key, size_t n,
                       uint32_t writers) {
  split s = {.schema = rows_schema(columns)};
  weir_error err = {0};
  const weir_names names = {.v = key, .n = n};
  if (task_router_new("lake", s.schema, &names, writers, &s.router, &err))
    fail_msg("%s", err.message);
  return s;
}

static weir_status split_rows(split *s, const char *ndjson, weir_error *err) {
  weir_batch *batch = rows_batch(s->schema, ndjson);
  for (int i = 0; i < WRITERS; i++) weir_batch_unref(s->pieces[i]);
  memset(s->pieces, 0, sizeof(s->pieces));
  weir_status status = task_router_split(s->router, batch, s->pieces, err);
  weir_batch_unref(batch);
  return status;
}

static void split_done(split *s) {
  for (int i = 0; i < WRITERS; i++) weir_batch_unref(s->pieces[i]);
  task_router_free(s->router);
  weir_schema_unref(s->schema);
}

static int64_t int_at(const weir_batch *batch, int column, int64_t row) {
  const struct ArrowArray *a = weir_batch_array(batch)->children[column];
  return ((const int64_t *)a->buffers[1])[a->offset + row];
}

static const char *const by_id[] = {"id"};

/* Every row goes to one writer, those of a key to the same in batch after batch, in their order. */
static void test_rows_of_a_key_stay_together_and_in_order(void **state) {
  (void)state;
  split s = split_new("id: int64; at: int64; _op: utf8", by_id, 1, WRITERS);
  int owner[50];
  memset(owner, -1, sizeof(owner));
  int64_t last[50] = {0};
  size_t used[WRITERS] = {0}, all = 0;
  for (int round = 0; round < 5; round++) {
    char text[32768];
    size_t at = 0;
    for (int i = 0; i < 200; i++)
      at += (size_t)snprintf(text + at, sizeof(text) - at,
                             "{\"id\": %d, \"at\": %d, \"_op\": \"%s\"}\n", i * 7 % 50,
                             1 + round * 200 + i, i % 3 ? "U" : "D");
    assert_int_equal(split_rows(&s, text, NULL), WEIR_OK);
    for (int w = 0; w < WRITERS; w++)
      for (int64_t i = 0; s.pieces[w] && i < weir_batch_rows(s.pieces[w]); i++, all++) {
        int64_t id = int_at(s.pieces[w], 0, i), stamp = int_at(s.pieces[w], 1, i);
        if (owner[id] < 0) owner[id] = w;
        assert_int_equal(owner[id], w);
        assert_true(stamp > last[id]);
        last[id] = stamp;
        used[w]++;
      }
  }
  assert_int_equal(all, 1000);
  for (int w = 0; w < WRITERS; w++) assert_true(used[w] > 0);
  split_done(&s);
}

static int owner_of(split *s, const char *row) {
  weir_error err = {0};
  if (split_rows(s, row, &err)) fail_msg("%s", err.message);
  int found = -1;
  for (int w = 0; w < WRITERS; w++)
    if (s->pieces[w]) found = w;
  return found;
}

/* Of a row whose key is the second entry of a dictionary. */
static int owner_of_entry(const char *text) {
  split s = split_new("id: dictionary<int32, utf8>", by_id, 1, WRITERS);
  struct ArrowArray array = {0};
  weir_batch *batch = NULL;
  int found = -1;
  assert_int_equal(
      ArrowArrayInitFromSchema(&array, weir_schema_arrow(s.schema), NULL) ||
          ArrowArrayStartAppending(&array) ||
          ArrowArrayAppendString(array.children[0]->dictionary, ArrowCharView("x")) ||
          ArrowArrayAppendString(array.children[0]->dictionary, ArrowCharView(text)) ||
          ArrowArrayAppendInt(array.children[0], 1) || ArrowArrayFinishElement(&array) ||
          ArrowArrayFinishBuildingDefault(&array, NULL),
      0);
  assert_int_equal(weir_batch_new(s.schema, &array, &batch, NULL), WEIR_OK);
  assert_int_equal(task_router_split(s.router, batch, s.pieces, NULL), WEIR_OK);
  weir_batch_unref(batch);
  for (int w = 0; w < WRITERS; w++)
    if (s.pieces[w]) found = w;
  split_done(&s);
  return found;
}

/* The same value has the same writer however it lies in memory. */
static void test_equal_values_have_one_writer(void **state) {
  (void)state;
  static const char *const types[] = {"utf8", "large_utf8"};
  for (int i = 0; i < 20; i++) {
    int first = -1;
    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++) {
      char columns[64], row[128];
      snprintf(columns, sizeof(columns), "id: %s", types[t]);
      snprintf(row, sizeof(row), "{\"id\": \"%skey %d\"}\n",
               i % 2 ? "a longer text for the " : "", i);
      split s = split_new(columns, by_id, 1, WRITERS);
      int owner = owner_of(&s, row);
      if (first < 0) first = owner;
      assert_int_equal(owner, first);
      split_done(&s);
    }
    char text[64];
    snprintf(text, sizeof(text), "%skey %d", i % 2 ? "a longer text for the " : "", i);
    assert_int_equal(owner_of_entry(text), first);
  }
  split s = split_new("id: float64", by_id, 1, WRITERS);
  assert_int_equal(owner_of(&s, "{\"id\": 0.0}\n"), owner_of(&s, "{\"id\": -0.0}\n"));
  split_done(&s);
}

static void test_a_key_without_a_value_is_bad_data(void **state) {
  (void)state;
  weir_error err = {0};
  static const char *const by_two[] = {"id", "part"};
  for (uint32_t writers = 1; writers <= WRITERS; writers += 3) {
    split s = split_new("id: int64; part: utf8; _op: utf8", by_two, 2, writers);
    assert_int_equal(split_rows(&s,
                                "{\"id\": 1, \"part\": \"a\", \"_op\": \"U\"}\n"
                                "{\"id\": 1, \"part\": null, \"_op\": \"D\"}\n",
                                &err),
                     WEIR_E_BAD_DATA);
    assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
    assert_int_equal(err.row, 1);
    assert_int_equal(err.column, 1);
    assert_non_null(strstr(err.message, "sink lake: column 'part'"));
    split_done(&s);
  }
}

static void test_an_op_is_U_or_D(void **state) {
  (void)state;
  static const char *const bad[] = {"null", "\"\"", "\"u\"", "\"UD\""};
  split s = split_new("id: int64; _op: utf8", by_id, 1, WRITERS);
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    weir_error err = {0};
    char text[128];
    snprintf(text, sizeof(text),
             "{\"id\": 1, \"_op\": \"U\"}\n{\"id\": 2, \"_op\": %s}\n", bad[i]);
    assert_int_equal(split_rows(&s, text, &err), WEIR_E_BAD_DATA);
    assert_int_equal(err.row, 1);
    assert_non_null(strstr(err.message, "'_op'"));
  }
  split_done(&s);
}

/* Only key columns of a delete are read: the others may be null. */
static void test_a_delete_needs_its_key_alone(void **state) {
  (void)state;
  split s = split_new("id: int64; text: utf8; _op: utf8", by_id, 1, WRITERS);
  assert_int_equal(split_rows(&s, "{\"id\": 1, \"text\": null, \"_op\": \"D\"}\n", NULL),
                   WEIR_OK);
  split_done(&s);
}

static void test_what_cannot_be_a_key(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("id: list<int64>; other: int64");
  task_router *router = NULL;
  weir_error err = {0};
  const weir_names list = {.v = by_id, .n = 1};
  assert_int_equal(task_router_new("lake", schema, &list, 2, &router, &err),
                   WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "cannot be a key"));
  static const char *const unknown[] = {"nobody"};
  const weir_names none = {.v = unknown, .n = 1};
  assert_int_equal(task_router_new("lake", schema, &none, 2, &router, &err),
                   WEIR_E_SCHEMA);
  weir_schema_unref(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_of_a_key_stay_together_and_in_order),
      cmocka_unit_test(test_equal_values_have_one_writer),
      cmocka_unit_test(test_a_key_without_a_value_is_bad_data),
      cmocka_unit_test(test_an_op_is_U_or_D),
      cmocka_unit_test(test_a_delete_needs_its_key_alone),
      cmocka_unit_test(test_what_cannot_be_a_key),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
