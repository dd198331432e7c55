/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow IPC written and read back: mapped, in memory and streamed; damaged at every byte; with
 * nanoarrow's reader as a second opinion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>
#include <weir/ipc.h>

#include "base/base.h"

#define TYPES                                                               \
  "struct<n: int64, s: utf8, v: utf8_view, b: bool, l: list<int32>, "       \
  "t: struct<x: float64, y: large_utf8>, f: fixed_size_list<int16, 2>, d: " \
  "decimal128(9, 2)>"
#define DICTIONARY_TYPES \
  "struct<d: dictionary<int8, utf8>, l: list<dictionary<int32, utf8_view>>>"

static weir_schema *schema_of(const char *type) {
  struct ArrowSchema schema = {0};
  weir_schema *out = NULL;
  weir_error err = {0};
  if (weir_type_parse(type, &schema, &err) || weir_schema_new(&schema, &out, &err))
    fail_msg("%s", err.message);
  return out;
}

/* `rows` rows in which each third value is null; what they hold follows from `seed`. */
static void fill(struct ArrowArray *array, const struct ArrowSchema *schema, int64_t rows,
                 int seed);

static void fill_row(struct ArrowArray *array, const struct ArrowSchema *schema,
                     int64_t i, int seed) {
  char text[64];
  struct ArrowDecimal decimal;
  snprintf(text, sizeof text,
           i % 2 ? "%d-%d" : "%d-%d, which is longer than twelve bytes", seed, (int)i);
  if (schema->dictionary == NULL && i % 3 == 2 && schema->format[0] != '+') {
    assert_int_equal(ArrowArrayAppendNull(array, 1), 0);
  } else if (schema->dictionary != NULL) {
    assert_int_equal(ArrowArrayAppendInt(array, i % array->dictionary->length), 0);
  } else if (strchr("uUv", schema->format[0]) != NULL) {
    assert_int_equal(ArrowArrayAppendString(array, ArrowCharView(text)), 0);
  } else if (schema->format[0] == 'd') {
    ArrowDecimalInit(&decimal, 128, 9, 2);
    ArrowDecimalSetInt(&decimal, seed * 100 - i);
    assert_int_equal(ArrowArrayAppendDecimal(array, &decimal), 0);
  } else if (schema->format[0] == '+') {
    int64_t items = schema->format[1] == 'w' ? 2 : schema->format[1] == 's' ? 1 : i % 4;
    for (int64_t k = 0; k < schema->n_children; k++)
      for (int64_t n = 0; n < items; n++)
        fill_row(array->children[k], schema->children[k], i + n, seed);
    assert_int_equal(ArrowArrayFinishElement(array), 0);
  } else {
    assert_int_equal(
        ArrowArrayAppendInt(array, schema->format[0] == 'b' ? i % 2 : seed + i), 0);
  }
}

static void fill_dictionaries(struct ArrowArray *array, const struct ArrowSchema *schema,
                              int seed) {
  for (int64_t i = 0; i < schema->n_children; i++)
    fill_dictionaries(array->children[i], schema->children[i], seed);
  if (schema->dictionary != NULL)
    fill(array->dictionary, schema->dictionary, 3 + seed % 3, seed / 3);
}

static void fill(struct ArrowArray *array, const struct ArrowSchema *schema, int64_t rows,
                 int seed) {
  for (int64_t i = 0; i < rows; i++) fill_row(array, schema, i, seed);
}

static weir_batch *batch_of(weir_schema *schema, int64_t rows, int seed) {
  const struct ArrowSchema *s = weir_schema_arrow(schema);
  struct ArrowArray array = {0};
  weir_batch *out = NULL;
  weir_error err = {0};
  assert_int_equal(ArrowArrayInitFromSchema(&array, s, NULL), 0);
  assert_int_equal(ArrowArrayStartAppending(&array), 0);
  fill_dictionaries(&array, s, seed);
  fill(&array, s, rows, seed);
  assert_int_equal(ArrowArrayFinishBuildingDefault(&array, NULL), 0);
  if (weir_batch_new(schema, &array, &out, &err)) fail_msg("%s", err.message);
  return out;
}

static weir_status append(void *ctx, const void *data, size_t size, weir_error *err) {
  return base_buf_append(ctx, data, size, err);
}

/* Three batches (with dictionaries: grown by a delta, then replaced), the last one a slice. */
#define BATCHES 3
static weir_batch *three(weir_schema *schema, int i) {
  static const int seeds[BATCHES] = {3, 4, 9};
  weir_batch *batch = batch_of(schema, 20, seeds[i]), *slice = NULL;
  if (i < BATCHES - 1) return batch;
  assert_int_equal(weir_batch_slice(batch, 3, 11, &slice, NULL), WEIR_OK);
  weir_batch_unref(batch);
  return slice;
}

static void write_three(weir_schema *schema, int32_t file, int32_t codec, base_buf *out) {
  const weir_ipc_writer_options options = {sizeof options, file, codec, 0};
  weir_ipc_writer *writer = NULL;
  weir_error err = {0};
  assert_int_equal(weir_ipc_writer_new(schema, &options, append, out, &writer, &err),
                   WEIR_OK);
  for (int i = 0; i < BATCHES; i++) {
    weir_batch *batch = three(schema, i);
    if (weir_ipc_writer_write(writer, batch, &err)) fail_msg("%s", err.message);
    weir_batch_unref(batch);
  }
  assert_int_equal(weir_ipc_writer_finish(writer, &err), WEIR_OK);
  assert_int_equal(weir_ipc_writer_finish(writer, &err), WEIR_OK);
  assert_int_equal(weir_ipc_writer_bytes(writer), out->size);
  weir_ipc_writer_free(writer);
}

static bool same_slot(const struct ArrowArrayView *a, int64_t i,
                      const struct ArrowArrayView *b, int64_t k) {
  if (ArrowArrayViewIsNull(a, i) != ArrowArrayViewIsNull(b, k)) return false;
  if (ArrowArrayViewIsNull(a, i)) return true;
  if (a->dictionary != NULL)
    return same_slot(a->dictionary, ArrowArrayViewGetIntUnsafe(a, i), b->dictionary,
                     ArrowArrayViewGetIntUnsafe(b, k));
  int64_t from_a = a->offset + i, n = 1, from_b = b->offset + k;
  switch (a->storage_type) {
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_STRING_VIEW: {
      struct ArrowBufferView x = ArrowArrayViewGetBytesUnsafe(a, i);
      struct ArrowBufferView y = ArrowArrayViewGetBytesUnsafe(b, k);
      return x.size_bytes == y.size_bytes &&
             (x.size_bytes == 0 ||
              memcmp(x.data.data, y.data.data, (size_t)x.size_bytes) == 0);
    }
    case NANOARROW_TYPE_DECIMAL128:
      return memcmp(a->buffer_views[1].data.as_uint8 + 16 * from_a,
                    b->buffer_views[1].data.as_uint8 + 16 * from_b, 16) == 0;
    case NANOARROW_TYPE_LIST:
      n = ArrowArrayViewListChildOffset(a, from_a + 1);
      from_a = ArrowArrayViewListChildOffset(a, from_a);
      n -= from_a;
      if (ArrowArrayViewListChildOffset(b, from_b + 1) -
              ArrowArrayViewListChildOffset(b, from_b) !=
          n)
        return false;
      from_b = ArrowArrayViewListChildOffset(b, from_b);
      break;
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      n = 2;
      from_a *= 2;
      from_b *= 2;
      break;
    case NANOARROW_TYPE_STRUCT:
      break;
    default:
      return ArrowArrayViewGetIntUnsafe(a, i) == ArrowArrayViewGetIntUnsafe(b, k);
  }
  for (int64_t c = 0; c < a->n_children; c++)
    for (int64_t r = 0; r < n; r++)
      if (!same_slot(a->children[c], from_a + r, b->children[c], from_b + r))
        return false;
  return true;
}

static void expect_array(weir_batch *want, const struct ArrowArray *got) {
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(want));
  struct ArrowArrayView a, b;
  assert_int_equal(ArrowArrayViewInitFromSchema(&a, schema, NULL), 0);
  assert_int_equal(ArrowArrayViewInitFromSchema(&b, schema, NULL), 0);
  assert_int_equal(ArrowArrayViewSetArray(&a, weir_batch_array(want), NULL), 0);
  assert_int_equal(ArrowArrayViewSetArray(&b, got, NULL), 0);
  assert_int_equal(ArrowArrayViewValidate(&b, NANOARROW_VALIDATION_LEVEL_FULL, NULL), 0);
  assert_int_equal(a.length, b.length);
  for (int64_t i = 0; i < a.length; i++) assert_true(same_slot(&a, i, &b, i));
  ArrowArrayViewReset(&a);
  ArrowArrayViewReset(&b);
}

static void expect_three(weir_ipc_reader *reader, weir_schema *schema) {
  weir_error err = {0};
  weir_batch *got = NULL;
  assert_int_equal(
      weir_schema_check(weir_schema_arrow(schema),
                        weir_schema_arrow(weir_ipc_reader_schema(reader)), "t", &err),
      WEIR_OK);
  for (int i = 0; i < BATCHES; i++) {
    weir_batch *want = three(schema, i);
    assert_int_equal(weir_ipc_reader_tell(reader), i);
    if (weir_ipc_reader_next(reader, &got, &err)) fail_msg("%s", err.message);
    assert_non_null(got);
    expect_array(want, weir_batch_array(got));
    weir_batch_unref(want);
    weir_batch_unref(got);
  }
  assert_int_equal(weir_ipc_reader_next(reader, &got, &err), WEIR_OK);
  assert_null(got);
  weir_ipc_reader_free(reader);
}

static weir_ipc_reader *open_copy(const void *data, size_t size, weir_error *err) {
  weir_ipc_reader *reader = NULL;
  weir_bytes bytes = {0};
  assert_int_equal(weir_bytes_copy(&bytes, data, size, err), WEIR_OK);
  weir_status status = weir_ipc_reader_open_bytes(&bytes, "bytes", NULL, &reader, err);
  assert_true((bytes.release == NULL) == (status == WEIR_OK));
  weir_bytes_release(&bytes);
  return reader;
}

typedef struct feed {
  const uint8_t *data;
  size_t size, at, piece;
} feed;

static weir_status feed_read(void *ctx, void *buf, size_t size, size_t *got,
                             weir_error *err) {
  feed *f = ctx;
  size_t n = f->size - f->at;
  if (f->piece == 0)
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "the line is dead");
  if (n > f->piece) n = f->piece;
  if (n > size) n = size;
  if (n > 0) memcpy(buf, f->data + f->at, n);
  f->at += n;
  *got = n;
  return WEIR_OK;
}

static const char *const schemas[] = {TYPES, DICTIONARY_TYPES};

static void comes_back_as_it_was(void **state) {
  (void)state;
  for (int s = 0; s < 2; s++) {
    weir_schema *schema = schema_of(schemas[s]);
    for (int variant = 0; variant < 6; variant++) {
      weir_error err = {0};
      weir_ipc_reader *reader = NULL;
      base_buf data = {0};
      write_three(schema, variant / 3, variant % 3, &data);
      reader = open_copy(data.data, data.size, &err);
      assert_non_null(reader);
      assert_int_equal(weir_ipc_reader_is_file(reader), variant / 3);
      expect_three(reader, schema);
      feed f = {data.data, data.size, 0, 7};
      reader = NULL;
      assert_int_equal(
          weir_ipc_reader_open_stream(feed_read, &f, "feed", NULL, &reader, &err),
          WEIR_OK);
      expect_three(reader, schema);
      base_buf_done(&data);
    }
    weir_schema_unref(schema);
  }
}

static void nanoarrow_reads_the_same(void **state) {
  (void)state;
  weir_schema *schema = schema_of("struct<n: int64, s: utf8, b: bool, l: list<int32>>");
  base_buf data = {0};
  struct ArrowBuffer buffer;
  struct ArrowIpcInputStream input;
  struct ArrowArrayStream stream;
  struct ArrowArray array;
  write_three(schema, 0, WEIR_IPC_ZSTD, &data);
  ArrowBufferInit(&buffer);
  assert_int_equal(ArrowBufferAppend(&buffer, data.data, (int64_t)data.size), 0);
  assert_int_equal(ArrowIpcInputStreamInitBuffer(&input, &buffer), 0);
  assert_int_equal(ArrowIpcArrayStreamReaderInit(&stream, &input, NULL), 0);
  for (int i = 0; i < BATCHES; i++) {
    weir_batch *want = three(schema, i);
    assert_int_equal(ArrowArrayStreamGetNext(&stream, &array, NULL), 0);
    expect_array(want, &array);
    ArrowArrayRelease(&array);
    weir_batch_unref(want);
  }
  ArrowArrayStreamRelease(&stream);
  base_buf_done(&data);
  weir_schema_unref(schema);
}

/* The bounds of the mapping of `path`. */
static bool mapping_of(const char *path, uintptr_t *low, uintptr_t *high) {
  char line[1024];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    char *end = NULL;
    *low = strtoull(line, &end, 16);
    *high = strtoull(end + 1, NULL, 16);
    found = strstr(line, path) != NULL;
  }
  fclose(maps);
  return found;
}

static int count_inside(const struct ArrowArray *array, uintptr_t low, uintptr_t high) {
  int inside = 0;
  for (int64_t i = 0; i < array->n_buffers; i++) {
    uintptr_t at = (uintptr_t)array->buffers[i];
    inside += at >= low && at < high;
  }
  for (int64_t i = 0; i < array->n_children; i++)
    inside += count_inside(array->children[i], low, high);
  if (array->dictionary != NULL) inside += count_inside(array->dictionary, low, high);
  return inside;
}

static void mapped_files_are_not_copied(void **state) {
  (void)state;
  char path[] = "/tmp/weir_test_ipc_XXXXXX";
  weir_schema *schema = schema_of(TYPES);
  weir_ipc_reader *reader = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  base_buf data = {0};
  uintptr_t low = 0, high = 0;
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  write_three(schema, 1, WEIR_IPC_PLAIN, &data);
  assert_int_equal(base_write_all(fd, data.data, data.size, path, &err), WEIR_OK);
  close(fd);
  assert_int_equal(weir_ipc_reader_open_file(path, NULL, &reader, &err), WEIR_OK);
  assert_int_equal(weir_ipc_reader_next(reader, &batch, &err), WEIR_OK);
  weir_ipc_reader_free(reader);
  assert_true(mapping_of(path, &low, &high));
  /* Validity and values of each; of strings the offsets too; of views their data; the struct and the
   * lists have no nulls. */
  assert_int_equal(count_inside(weir_batch_array(batch), low, high),
                   2 + 3 + 3 + 2 + 3 + 5 + 2 + 2);
  weir_batch_unref(batch);
  assert_false(mapping_of(path, &low, &high));
  unlink(path);
  base_buf_done(&data);
  weir_schema_unref(schema);
}

static void unaligned_buffers_are_copied(void **state) {
  (void)state;
  weir_schema *schema = schema_of(TYPES);
  base_buf data = {0};
  weir_error err = {0};
  write_three(schema, 0, WEIR_IPC_PLAIN, &data);
  uint8_t *shifted = malloc(data.size + 1);
  memcpy(shifted + 1, data.data, data.size);
  weir_ipc_reader *reader = NULL;
  weir_bytes bytes = {0};
  assert_int_equal(weir_bytes_copy(&bytes, shifted, data.size + 1, &err), WEIR_OK);
  bytes.data++; /* release goes by private_data */
  bytes.size--;
  assert_int_equal(weir_ipc_reader_open_bytes(&bytes, "odd", NULL, &reader, &err),
                   WEIR_OK);
  expect_three(reader, schema);
  free(shifted);
  base_buf_done(&data);
  weir_schema_unref(schema);
}

/* Drains what can be had of it; only that nothing breaks counts. */
static void drain(const void *data, size_t size) {
  weir_error err = {0};
  weir_batch *batch = NULL;
  weir_ipc_reader *reader = open_copy(data, size, &err);
  if (reader == NULL) {
    assert_true(err.code != WEIR_OK && err.message[0] != '\0');
    return;
  }
  while (weir_ipc_reader_next(reader, &batch, &err) == WEIR_OK && batch != NULL) {
    struct ArrowArrayView view;
    assert_int_equal(ArrowArrayViewInitFromSchema(
                         &view, weir_schema_arrow(weir_batch_schema(batch)), NULL),
                     0);
    assert_int_equal(ArrowArrayViewSetArray(&view, weir_batch_array(batch), NULL), 0);
    ArrowArrayViewReset(&view);
    weir_batch_unref(batch);
  }
  weir_ipc_reader_free(reader);
}

static void survives_damage_at_every_byte(void **state) {
  (void)state;
  for (int s = 0; s < 2; s++) {
    for (int variant = 0; variant < 4; variant++) {
      weir_schema *schema = schema_of(schemas[s]);
      base_buf data = {0};
      write_three(schema, variant / 2, variant % 2 ? WEIR_IPC_LZ4 : WEIR_IPC_PLAIN,
                  &data);
      for (size_t i = 0; i < data.size; i++) {
        static const uint8_t flips[] = {0x01, 0x80, 0xff};
        uint8_t flip = flips[i % 3];
        data.data[i] ^= flip;
        drain(data.data, data.size);
        data.data[i] ^= flip;
      }
      for (size_t size = 0; size < data.size; size += 5) drain(data.data, size);
      base_buf_done(&data);
      weir_schema_unref(schema);
    }
  }
}

static void failures_stay(void **state) {
  (void)state;
  weir_schema *schema = schema_of(TYPES);
  base_buf data = {0};
  weir_error err = {0};
  weir_batch *batch = NULL;
  weir_ipc_reader *reader = NULL;
  write_three(schema, 0, WEIR_IPC_PLAIN, &data);
  feed f = {data.data, data.size, 0, 4096};
  assert_int_equal(
      weir_ipc_reader_open_stream(feed_read, &f, "feed", NULL, &reader, &err), WEIR_OK);
  f.piece = 0;
  assert_int_equal(weir_ipc_reader_next(reader, &batch, &err), WEIR_E_IO);
  assert_non_null(strstr(err.message, "feed: offset "));
  assert_non_null(strstr(err.message, "the line is dead"));
  assert_int_equal(err.flags, WEIR_ERR_RETRIABLE);
  f.piece = 4096;
  weir_error again = {0};
  assert_int_equal(weir_ipc_reader_next(reader, &batch, &again), WEIR_E_IO);
  assert_string_equal(again.message, err.message);
  assert_null(batch);
  weir_ipc_reader_free(reader);
  base_buf_done(&data);
  weir_schema_unref(schema);
}

static weir_status full(void *ctx, const void *data, size_t size, weir_error *err) {
  (void)data;
  (void)size;
  int *left = ctx;
  return (*left)-- > 0 ? WEIR_OK : weir_error_set(err, WEIR_E_IO, 0, "no room left");
}

static void a_failed_write_stays_failed(void **state) {
  (void)state;
  weir_schema *schema = schema_of(TYPES);
  weir_batch *batch = batch_of(schema, 5, 1);
  weir_ipc_writer *writer = NULL;
  weir_error err = {0};
  int left = 0;
  assert_int_equal(weir_ipc_writer_new(schema, NULL, full, &left, &writer, &err),
                   WEIR_E_IO);
  left = 3;
  assert_int_equal(weir_ipc_writer_new(schema, NULL, full, &left, &writer, &err),
                   WEIR_OK);
  assert_int_equal(weir_ipc_writer_write(writer, batch, &err), WEIR_E_IO);
  left = 1000;
  assert_int_equal(weir_ipc_writer_write(writer, batch, &err), WEIR_E_IO);
  assert_string_equal(err.message, "no room left");
  assert_int_equal(weir_ipc_writer_finish(writer, &err), WEIR_E_IO);
  weir_ipc_writer_free(writer);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

static void limits_are_kept(void **state) {
  (void)state;
  const weir_ipc_options small = {sizeof small, 0, 64, 0},
                         tight = {sizeof tight, 0, 0, 100};
  weir_schema *schema = schema_of(TYPES);
  weir_ipc_reader *reader = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  base_buf data = {0};
  write_three(schema, 0, WEIR_IPC_PLAIN, &data);
  feed f = {data.data, data.size, 0, 4096};
  assert_int_equal(weir_ipc_reader_open_stream(feed_read, &f, "f", &small, &reader, &err),
                   WEIR_E_CORRUPT);
  assert_non_null(strstr(err.message, "more than the limit"));
  f.at = 0;
  assert_int_equal(weir_ipc_reader_open_stream(feed_read, &f, "f", &tight, &reader, &err),
                   WEIR_OK);
  assert_int_equal(weir_ipc_reader_next(reader, &batch, &err), WEIR_E_CORRUPT);
  assert_non_null(strstr(err.message, "more than the limit 100"));
  weir_ipc_reader_free(reader);
  base_buf_done(&data);
  weir_schema_unref(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comes_back_as_it_was),
      cmocka_unit_test(nanoarrow_reads_the_same),
      cmocka_unit_test(mapped_files_are_not_copied),
      cmocka_unit_test(unaligned_buffers_are_copied),
      cmocka_unit_test(survives_damage_at_every_byte),
      cmocka_unit_test(failures_stay),
      cmocka_unit_test(a_failed_write_stays_failed),
      cmocka_unit_test(limits_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
