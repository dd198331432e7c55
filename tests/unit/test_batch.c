/* SPDX-License-Identifier: Apache-2.0 */
/* Counted batches: structure checked at the door, slices, sizes, export. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nanoarrow/nanoarrow.h>
#include <weir/batch.h>

/* Arrays written out by hand: buffers live in the test, release only counts. */
static int released;

static void count_release(struct ArrowArray *array) {
  if (array->private_data != NULL) released++;
  array->release = NULL;
}

static struct ArrowArray array_of(int64_t length, int64_t n_buffers,
                                  const void **buffers) {
  return (struct ArrowArray){.length = length,
                             .n_buffers = n_buffers,
                             .buffers = buffers,
                             .release = count_release};
}

static weir_schema *schema_of(const char *type) {
  struct ArrowSchema schema = {0};
  weir_schema *out = NULL;
  weir_error err = {0};
  if (weir_type_parse(type, &schema, &err) != WEIR_OK ||
      weir_schema_new(&schema, &out, &err) != WEIR_OK)
    fail_msg("%s", err.message);
  return out;
}

/* Wraps one column into a struct array of as many rows. */
typedef struct one_column {
  struct ArrowArray top, *children[1];
  const void *no_validity[1];
} one_column;

static struct ArrowArray *wrap(one_column *w, struct ArrowArray *column) {
  *w = (one_column){.children = {column}};
  w->top = array_of(column->length, 1, w->no_validity);
  w->top.n_children = 1;
  w->top.children = w->children;
  w->top.private_data = w;
  return &w->top;
}

/* `message` NULL: accepted. */
static void expect(const char *type, struct ArrowArray *column, weir_status want,
                   const char *message) {
  one_column w;
  weir_batch *batch = NULL;
  weir_error err = {0};
  weir_schema *schema = schema_of(type);
  struct ArrowArray kept = *column;
  weir_status status = weir_batch_new(schema, wrap(&w, column), &batch, &err);
  if (status != want) fail_msg("%s: %d %s", type, (int)status, err.message);
  if (message != NULL && strstr(err.message, message) == NULL)
    fail_msg("'%s' is not in: %s", message, err.message);
  assert_true((batch == NULL) == (status != WEIR_OK));
  assert_true((w.top.release == NULL) == (status == WEIR_OK));
  weir_batch_unref(batch);
  *column = kept;
  weir_schema_unref(schema);
}

static void fixed_width(void **state) {
  (void)state;
  int64_t values[] = {1, 2, 3};
  uint8_t validity[] = {0x05};
  const void *buffers[] = {NULL, values, values};
  struct ArrowArray a = array_of(3, 2, buffers);
  expect("struct<a: int64>", &a, WEIR_OK, NULL);
  expect("struct<a: int64 not null>", &a, WEIR_OK, NULL);
  expect("struct<a: utf8>", &a, WEIR_E_SCHEMA, "column 0 'a': expected 3 buffers, got 2");
  a.null_count = 1;
  expect("struct<a: int64>", &a, WEIR_E_SCHEMA, "the buffer of the validity is missing");
  buffers[0] = validity;
  expect("struct<a: int64>", &a, WEIR_OK, NULL);
  expect("struct<a: int64 not null>", &a, WEIR_E_BAD_DATA,
         "declared not null, but row 1 is null");
  a.null_count = 2;
  expect("struct<a: int64>", &a, WEIR_E_CORRUPT, "null count 2, but the validity has 1");
  a.null_count = 4;
  expect("struct<a: int64>", &a, WEIR_E_SCHEMA, "null count 4 of 3");
  a.null_count = -2;
  expect("struct<a: int64>", &a, WEIR_E_SCHEMA, "null count -2");
  a.null_count = -1;
  expect("struct<a: int64>", &a, WEIR_OK, NULL);
  buffers[1] = NULL;
  expect("struct<a: int64>", &a, WEIR_E_SCHEMA, "the buffer of the values is missing");
  a.length = 0;
  expect("struct<a: int64>", &a, WEIR_OK, NULL);
  a.length = -1;
  expect("struct<a: int64>", &a, WEIR_E_SCHEMA, "length -1");
  a.length = INT64_MAX;
  a.offset = INT64_MAX;
  expect("struct<a: int64>", &a, WEIR_E_SCHEMA, "make no sense");
  a = array_of(0, 2, NULL);
  expect("struct<a: int64>", &a, WEIR_E_SCHEMA, "NULL");
}

static void variable_width(void **state) {
  (void)state;
  int32_t offsets[] = {0, 2, 2, 5};
  int64_t large[] = {0, 2, 1, 5};
  const void *buffers[] = {NULL, offsets, "hello"};
  struct ArrowArray a = array_of(3, 3, buffers);
  expect("struct<a: utf8>", &a, WEIR_OK, NULL);
  offsets[2] = 1;
  expect("struct<a: utf8>", &a, WEIR_E_CORRUPT, "column 0 'a': falling offset at slot 1");
  a.length = 1;
  expect("struct<a: utf8>", &a, WEIR_OK, NULL);
  offsets[0] = -1;
  expect("struct<a: binary>", &a, WEIR_E_CORRUPT, "negative offset");
  buffers[1] = large;
  a.length = 3;
  expect("struct<a: large_utf8>", &a, WEIR_E_CORRUPT, "falling offset at slot 1");
  buffers[1] = NULL;
  expect("struct<a: utf8>", &a, WEIR_E_SCHEMA, "the buffer of the offsets is missing");
  a.length = 0;
  expect("struct<a: utf8>", &a, WEIR_OK, NULL);
  int32_t empty[] = {4, 4}, full[] = {0, 1};
  a.length = 1;
  buffers[1] = empty;
  buffers[2] = NULL;
  expect("struct<a: utf8>", &a, WEIR_OK, NULL);
  buffers[1] = full;
  expect("struct<a: utf8>", &a, WEIR_E_SCHEMA, "the buffer of the data is missing");
}

static void views(void **state) {
  (void)state;
  union ArrowBinaryView v[2];
  memset(v, 0, sizeof v);
  int64_t sizes[] = {20};
  uint8_t first_only = 0x01;
  const void *buffers[] = {NULL, v, "twenty bytes of data", sizes};
  struct ArrowArray a = array_of(2, 4, buffers);
  v[0].inlined.size = 12;
  v[1].ref.size = 13;
  v[1].ref.offset = 7;
  expect("struct<a: utf8_view>", &a, WEIR_OK, NULL);
  v[1].ref.offset = 8;
  expect("struct<a: utf8_view>", &a, WEIR_E_CORRUPT,
         "view past its data buffer at slot 1");
  v[1].ref.offset = INT32_MAX;
  expect("struct<a: utf8_view>", &a, WEIR_E_CORRUPT, "view past its data buffer");
  v[1].ref.offset = 0;
  v[1].ref.buffer_index = 1;
  expect("struct<a: binary_view>", &a, WEIR_E_CORRUPT, "view past its data buffer");
  v[1].ref.buffer_index = -1;
  expect("struct<a: binary_view>", &a, WEIR_E_CORRUPT, "view past its data buffer");
  buffers[0] = &first_only;
  a.null_count = -1;
  expect("struct<a: binary_view>", &a, WEIR_OK, NULL);
  v[0].inlined.size = -1;
  expect("struct<a: binary_view>", &a, WEIR_E_CORRUPT, "negative size");
  sizes[0] = -1;
  expect("struct<a: binary_view>", &a, WEIR_E_CORRUPT, "negative size of data buffer");
  a.n_buffers = 2;
  expect("struct<a: binary_view>", &a, WEIR_E_SCHEMA,
         "expected at least 3 buffers, got 2");
}

static void lists(void **state) {
  (void)state;
  int32_t items[] = {1, 2, 3, 4};
  const void *item_buffers[] = {NULL, items};
  struct ArrowArray child = array_of(4, 2, item_buffers), *children[] = {&child};
  /* Null lists whose child range is not empty are fine: the items are there and unused.
   */
  int32_t offsets[] = {0, 1, 2, 3, 4}, sizes[] = {1, 1, 1, 1};
  uint8_t validity = 0x06;
  const void *buffers[] = {&validity, offsets, sizes};
  struct ArrowArray a = array_of(4, 2, buffers);
  a.n_children = 1;
  a.children = children;
  a.null_count = 2;
  expect("struct<a: list<int32>>", &a, WEIR_OK, NULL);
  offsets[4] = 5;
  expect("struct<a: list<int32>>", &a, WEIR_E_CORRUPT, "past the child's 4 slots");
  offsets[4] = 4;
  a.n_buffers = 3;
  expect("struct<a: list_view<int32>>", &a, WEIR_OK, NULL);
  sizes[3] = 2;
  expect("struct<a: list_view<int32>>", &a, WEIR_E_CORRUPT,
         "list past its child at slot 3");
  sizes[3] = -1;
  expect("struct<a: list_view<int32>>", &a, WEIR_E_CORRUPT, "list past its child");
  a.n_buffers = 1;
  a.null_count = -1;
  expect("struct<a: fixed_size_list<int32, 1>>", &a, WEIR_OK, NULL);
  expect("struct<a: fixed_size_list<int32, 2>>", &a, WEIR_E_CORRUPT, "not 4 times 2");
  expect("struct<a: struct<b: int32>>", &a, WEIR_OK, NULL);
  child.length = 3;
  expect("struct<a: struct<b: int32>>", &a, WEIR_E_CORRUPT,
         "child 0 has 3 slots, expected 4");
  child.null_count = 1;
  expect("struct<a: struct<b: int32>>", &a, WEIR_E_SCHEMA,
         "column 0 'a', field 0 'b': the buffer");
  child.release = NULL;
  expect("struct<a: struct<b: int32>>", &a, WEIR_E_SCHEMA, "released");
  a.n_children = 0;
  expect("struct<a: struct<b: int32>>", &a, WEIR_E_SCHEMA, "expected 1 children, got 0");
}

/* Sliced parents and children: every bound counts from where the slice begins. */
static void slices_of_nested(void **state) {
  (void)state;
  int32_t items[] = {1, 2, 3, 4, 5, 6};
  const void *item_buffers[] = {NULL, items};
  struct ArrowArray child = array_of(3, 2, item_buffers), *children[] = {&child};
  child.offset = 3; /* slots 3, 4, 5 of the buffer */
  int32_t offsets[] = {-9, 0, 2, 3, 99}, sizes[] = {99, 2, 1, 0, 99};
  const void *buffers[] = {NULL, offsets, sizes};
  struct ArrowArray a = array_of(2, 2, buffers);
  a.offset = 1;
  a.n_children = 1;
  a.children = children;
  expect("struct<a: list<int32>>", &a, WEIR_OK, NULL);
  a.offset = 2;
  expect("struct<a: list<int32>>", &a, WEIR_E_CORRUPT, "the last offset 99 is past");
  a.offset = 0;
  expect("struct<a: list<int32>>", &a, WEIR_E_CORRUPT, "negative offset");
  a.offset = 1;
  a.n_buffers = 3;
  expect("struct<a: list_view<int32>>", &a, WEIR_OK, NULL);
  a.length = 4;
  expect("struct<a: list_view<int32>>", &a, WEIR_E_CORRUPT, "past its child at slot 3");
  a.n_buffers = 1;
  a.length = 2;
  expect("struct<a: fixed_size_list<int32, 1>>", &a, WEIR_OK, NULL);
  expect("struct<a: struct<b: int32>>", &a, WEIR_OK, NULL);
  a.offset = 2;
  expect("struct<a: fixed_size_list<int32, 1>>", &a, WEIR_E_CORRUPT, "3 slots, not 4");
  expect("struct<a: struct<b: int32>>", &a, WEIR_E_CORRUPT, "3 slots, expected 4");
  a.offset = INT64_MAX / 128;
  expect("struct<a: fixed_size_list<int32, 2147483647>>", &a, WEIR_E_CORRUPT, "slots");
  /* nothing in them: no buffer is looked at */
  buffers[1] = buffers[2] = NULL;
  a = array_of(0, 2, buffers);
  a.n_children = 1;
  a.children = children;
  item_buffers[1] = NULL;
  child.length = child.offset = 0;
  expect("struct<a: list<int32>>", &a, WEIR_OK, NULL);
  expect("struct<a: large_list<int32>>", &a, WEIR_OK, NULL);
  a.n_buffers = 3;
  expect("struct<a: list_view<int32>>", &a, WEIR_OK, NULL);
}

/* What is declared not null, below columns: a null above hides it, a null list its items too. */
static void nulls_below_columns(void **state) {
  (void)state;
  int32_t items[] = {1, 2, 3, 4}, offsets[] = {0, 1, 3, 4};
  uint8_t some = 0x0d /* item 1 is null */, outer = 0x05 /* row 1 is null */;
  const void *item_buffers[] = {&some, items}, *buffers[] = {&outer, offsets};
  struct ArrowArray child = array_of(4, 2, item_buffers), *children[] = {&child};
  struct ArrowArray a = array_of(3, 2, buffers);
  child.null_count = a.null_count = 1;
  a.n_children = 1;
  a.children = children;
  expect("struct<a: list<int32 not null>>", &a, WEIR_OK, NULL);
  outer = 0x06; /* row 0 is null, whose item is not */
  expect("struct<a: list<int32 not null>>", &a, WEIR_E_BAD_DATA,
         "column 0 'a', child 0 'item' is declared not null, but row 1 is null there");
  expect("struct<a: list<int32>>", &a, WEIR_OK, NULL);
  expect("struct<a: list<int32> not null>", &a, WEIR_E_BAD_DATA,
         "column 0 'a' is declared not null, but row 0 is null");
  a.n_buffers = 1;
  expect("struct<a: struct<b: int32 not null>>", &a, WEIR_E_BAD_DATA,
         "column 0 'a', field 0 'b' is declared not null, but row 1 is null there");
  outer = 0x05;
  expect("struct<a: struct<b: int32 not null>>", &a, WEIR_OK, NULL);
  expect("struct<a: fixed_size_list<int32 not null, 1>>", &a, WEIR_OK, NULL);
  a.offset = 1; /* now row 0 is the hidden one, and item 0 of the next is slot 2 */
  a.length = 2;
  outer = 0x04;
  expect("struct<a: fixed_size_list<int32 not null, 1>>", &a, WEIR_OK, NULL);
  outer = 0x02;
  expect("struct<a: fixed_size_list<int32 not null, 1>>", &a, WEIR_E_BAD_DATA,
         "but row 0 is null there");
}

/* Keys of a map are never null, whatever the schema says. */
static void keys_of_maps(void **state) {
  (void)state;
  int32_t items[] = {1, 2, 3}, offsets[] = {0, 1, 3};
  uint8_t keys_valid = 0x03, outer = 0x01;
  const void *key_buffers[] = {&keys_valid, items}, *value_buffers[] = {NULL, items};
  const void *no_validity[] = {NULL}, *buffers[] = {NULL, offsets};
  struct ArrowArray key = array_of(3, 2, key_buffers),
                    value = array_of(3, 2, value_buffers);
  struct ArrowArray *fields[] = {&key, &value};
  struct ArrowArray entries = array_of(3, 1, no_validity), *children[] = {&entries};
  struct ArrowArray a = array_of(2, 2, buffers);
  key.null_count = 1;
  entries.n_children = 2;
  entries.children = fields;
  a.n_children = 1;
  a.children = children;
  expect(
      "struct<a: map<int32, int32>>", &a, WEIR_E_BAD_DATA,
      "column 0 'a', child 0 'entries', field 0 'key' is declared not null, but row 1");
  buffers[0] = &outer;
  a.null_count = 1;
  expect("struct<a: map<int32, int32>>", &a, WEIR_OK, NULL);
  outer = 0x02;
  expect("struct<a: map<int32, int32>>", &a, WEIR_E_BAD_DATA, "row 1 is null there");
}

static void unions_and_runs(void **state) {
  (void)state;
  int32_t items[] = {1, 2, 4};
  int8_t types[] = {5, 7, 5};
  int32_t offsets[] = {0, 0, 1};
  const void *item_buffers[] = {NULL, items};
  struct ArrowArray x = array_of(3, 2, item_buffers), y = x, *children[] = {&x, &y};
  const void *buffers[] = {types, offsets};
  struct ArrowArray a = array_of(3, 1, buffers);
  a.n_children = 2;
  a.children = children;
  expect("struct<a: sparse_union<x: int32=5, y: int32=7>>", &a, WEIR_OK, NULL);
  expect("struct<a: sparse_union<x: int32=5, y: int32=6>>", &a, WEIR_E_CORRUPT,
         "unknown union type id at slot 1");
  a.n_buffers = 2;
  expect("struct<a: dense_union<x: int32=5, y: int32=7>>", &a, WEIR_OK, NULL);
  offsets[2] = 3;
  expect("struct<a: dense_union<x: int32=5, y: int32=7>>", &a, WEIR_E_CORRUPT,
         "union offset past its child at slot 2");
  types[0] = -1;
  expect("struct<a: dense_union<x: int32=5, y: int32=7>>", &a, WEIR_E_CORRUPT,
         "type id at slot 0");

  a.n_buffers = 0;
  expect("struct<a: run_end_encoded<int32, int32>>", &a, WEIR_OK, NULL);
  a.length = 5;
  expect("struct<a: run_end_encoded<int32, int32>>", &a, WEIR_E_CORRUPT,
         "the runs end at 4");
  a.length = 4;
  items[1] = 1;
  expect("struct<a: run_end_encoded<int32, int32>>", &a, WEIR_E_CORRUPT,
         "does not rise at slot 1");
  items[1] = 2;
  y.length = 2;
  expect("struct<a: run_end_encoded<int32, int32>>", &a, WEIR_E_CORRUPT,
         "3 runs but 2 values");
}

static void dictionaries(void **state) {
  (void)state;
  int8_t indices[] = {0, 1};
  int32_t offsets[] = {0, 1, 2};
  const void *index_buffers[] = {NULL, indices}, *value_buffers[] = {NULL, offsets, "ab"};
  struct ArrowArray values = array_of(2, 3, value_buffers);
  struct ArrowArray a = array_of(2, 2, index_buffers);
  expect("struct<a: dictionary<int8, utf8>>", &a, WEIR_E_SCHEMA, "lacks a dictionary");
  a.dictionary = &values;
  expect("struct<a: dictionary<int8, utf8>>", &a, WEIR_OK, NULL);
  expect("struct<a: int8>", &a, WEIR_E_SCHEMA, "does not expect a dictionary");
  /* a null among the values is one of the slots that name it */
  uint8_t first_alone = 1;
  value_buffers[0] = &first_alone;
  values.null_count = -1;
  expect("struct<a: dictionary<int8, utf8>>", &a, WEIR_OK, NULL);
  expect("struct<a: dictionary<int8, utf8> not null>", &a, WEIR_E_BAD_DATA,
         "column 0 'a' is declared not null, but row 1 is null");
  indices[1] = 0;
  expect("struct<a: dictionary<int8, utf8> not null>", &a, WEIR_OK, NULL);
  indices[1] = 1;
  value_buffers[0] = NULL;
  values.null_count = 0;
  offsets[2] = 0;
  expect("struct<a: dictionary<int8, utf8>>", &a, WEIR_E_CORRUPT,
         "column 0 'a', dictionary: falling offset");
}

static void rows_null_as_a_whole(void **state) {
  (void)state;
  weir_schema *schema = schema_of("struct<>");
  weir_batch *batch = NULL;
  weir_error err = {0};
  uint8_t validity = 0x01;
  const void *buffers[] = {&validity};
  struct ArrowArray a = array_of(2, 1, buffers);
  a.null_count = -1;
  assert_int_equal(weir_batch_new(schema, &a, &batch, &err), WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "null as a whole"));
  a.length = 1;
  assert_int_equal(weir_batch_new(schema, &a, &batch, &err), WEIR_OK);
  assert_null(weir_batch_array(batch)->buffers[0]);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

/* Five rows: a = 0..4 with row 3 null, s = "", "b", "cc", "ddd", "eeee". */
static weir_batch *five_rows(void) {
  weir_schema *schema = schema_of("struct<a: int64, s: utf8>");
  struct ArrowArray array = {0};
  weir_batch *batch = NULL;
  weir_error err = {0};
  static const char *const texts[] = {"", "b", "cc", "ddd", "eeee"};
  assert_int_equal(ArrowArrayInitFromSchema(&array, weir_schema_arrow(schema), NULL), 0);
  assert_int_equal(ArrowArrayStartAppending(&array), 0);
  for (int64_t i = 0; i < 5; i++) {
    if (i == 3)
      assert_int_equal(ArrowArrayAppendNull(array.children[0], 1), 0);
    else
      assert_int_equal(ArrowArrayAppendInt(array.children[0], i), 0);
    assert_int_equal(ArrowArrayAppendString(array.children[1], ArrowCharView(texts[i])),
                     0);
    assert_int_equal(ArrowArrayFinishElement(&array), 0);
  }
  assert_int_equal(ArrowArrayFinishBuildingDefault(&array, NULL), 0);
  if (weir_batch_new(schema, &array, &batch, &err) != WEIR_OK)
    fail_msg("%s", err.message);
  weir_schema_unref(schema);
  return batch;
}

static void slices_share_and_start_at_zero(void **state) {
  (void)state;
  weir_error err = {0};
  weir_batch *batch = five_rows(), *slice = NULL, *inner = NULL, *none = NULL;
  const struct ArrowArray *whole = weir_batch_array(batch);
  const void *values = whole->children[0]->buffers[1];
  assert_int_equal(weir_batch_slice(batch, 1, 4, &slice, &err), WEIR_OK);
  assert_int_equal(weir_batch_slice(slice, 1, 2, &inner, &err), WEIR_OK);
  assert_int_equal(weir_batch_slice(batch, 2, 4, &none, &err), WEIR_E_INVALID_STATE);
  assert_int_equal(weir_batch_slice(batch, -1, 1, &none, &err), WEIR_E_INVALID_STATE);
  assert_int_equal(weir_batch_slice(batch, 1, INT64_MAX, &none, &err),
                   WEIR_E_INVALID_STATE);
  weir_batch_unref(batch);
  weir_batch_unref(slice);
  const struct ArrowArray *top = weir_batch_array(inner);
  assert_int_equal(top->offset, 0);
  assert_int_equal(weir_batch_rows(inner), 2);
  assert_int_equal(top->children[0]->length, 2);
  assert_int_equal(top->children[0]->offset, 2);
  assert_int_equal(top->children[0]->null_count, -1);
  assert_int_equal(top->children[1]->null_count, 0);
  assert_ptr_equal(top->children[0]->buffers[1], values);
  assert_int_equal(((const int64_t *)values)[2], 2);
  assert_int_equal(weir_batch_slice(inner, 2, 0, &none, &err), WEIR_OK);
  assert_int_equal(weir_batch_bytes(none), 0);
  weir_batch_unref(none);
  weir_batch_unref(inner);
}

static void a_producers_offset_is_folded_in(void **state) {
  (void)state;
  int64_t values[] = {1, 2, 3, 4, 5};
  const void *buffers[] = {NULL, values};
  struct ArrowArray column = array_of(5, 2, buffers);
  one_column w;
  weir_batch *batch = NULL;
  weir_error err = {0};
  weir_schema *schema = schema_of("struct<a: int64>");
  struct ArrowArray *top = wrap(&w, &column);
  top->offset = 1;
  top->length = 3;
  released = 0;
  assert_int_equal(weir_batch_new(schema, top, &batch, &err), WEIR_OK);
  const struct ArrowArray *a = weir_batch_array(batch);
  assert_int_equal(a->offset, 0);
  assert_int_equal(a->length, 3);
  assert_int_equal(a->children[0]->offset, 1);
  assert_int_equal(a->children[0]->length, 3);
  assert_int_equal(released, 0);
  weir_batch_unref(batch);
  assert_int_equal(released, 1);
  weir_schema_unref(schema);
}

static void counts_the_bytes_reached(void **state) {
  (void)state;
  weir_error err = {0};
  weir_batch *batch = five_rows(), *slice = NULL;
  /* a: 1 + 40; s: 6 offsets, 10 characters. */
  assert_int_equal(weir_batch_bytes(batch), 41 + 24 + 10);
  assert_int_equal(weir_batch_slice(batch, 4, 1, &slice, &err), WEIR_OK);
  assert_int_equal(weir_batch_bytes(slice), 9 + 8 + 4);
  weir_batch_unref(slice);
  weir_batch_unref(batch);
}

static void exported_children_live_alone(void **state) {
  (void)state;
  weir_error err = {0};
  weir_batch *batch = five_rows();
  struct ArrowArray out = {0}, moved = {0};
  assert_int_equal(weir_batch_export(batch, &out, &err), WEIR_OK);
  weir_batch_unref(batch);
  ArrowArrayMove(out.children[1], &moved);
  out.release(&out);
  assert_null(out.release);
  assert_int_equal(moved.length, 5);
  assert_memory_equal(moved.buffers[2], "bccdddeeee", 10);
  moved.release(&moved);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixed_width),
      cmocka_unit_test(variable_width),
      cmocka_unit_test(views),
      cmocka_unit_test(lists),
      cmocka_unit_test(slices_of_nested),
      cmocka_unit_test(nulls_below_columns),
      cmocka_unit_test(keys_of_maps),
      cmocka_unit_test(unions_and_runs),
      cmocka_unit_test(dictionaries),
      cmocka_unit_test(rows_null_as_a_whole),
      cmocka_unit_test(slices_share_and_start_at_zero),
      cmocka_unit_test(a_producers_offset_is_folded_in),
      cmocka_unit_test(counts_the_bytes_reached),
      cmocka_unit_test(exported_children_live_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
