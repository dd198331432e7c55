/* SPDX-License-Identifier: Apache-2.0 */
/* The file source over gzip and zstd, and every format's text slid over every edge of a block. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>
#include <zstd.h>

#include "../../connectors/file/source.h"
#include "../../connectors/file/source_input.h"
#include "support/rows.h"
#include "support/source_rig.h"

#define OPS &weir_file_source_ops

struct bytes {
  uint8_t data[16384];
  size_t size;
};

static void add(struct bytes *to, const void *data, size_t size) {
  assert_true(to->size + size <= sizeof(to->data));
  if (size > 0) memcpy(to->data + to->size, data, size);
  to->size += size;
}

static void add_gzip(struct bytes *to, const char *text, size_t size) {
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, 0), Z_OK);
  z.next_in = (Bytef *)(uintptr_t)text;
  z.avail_in = (uInt)size;
  z.next_out = to->data + to->size;
  z.avail_out = (uInt)(sizeof(to->data) - to->size);
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  to->size = sizeof(to->data) - z.avail_out;
  deflateEnd(&z);
}

static void add_zstd(struct bytes *to, const char *text, size_t size) {
  ZSTD_CCtx *c = ZSTD_createCCtx();
  assert_non_null(c);
  ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
  size_t n =
      ZSTD_compress2(c, to->data + to->size, sizeof(to->data) - to->size, text, size);
  assert_false(ZSTD_isError(n));
  to->size += n;
  ZSTD_freeCCtx(c);
}

typedef void (*pack_fn)(struct bytes *to, const char *text, size_t size);

static void put(const char *name, const void *data, size_t size) {
  char path[600];
  snprintf(path, sizeof(path), "%s/%s", source_rig_folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

/* Reads until it fails, which it must, as bad data that names the file; the number of batches before. */
static int read_broken(const char *name, const char *more, const char *value,
                       weir_error *err) {
  weir_batch *batch = NULL;
  int32_t what = 0;
  int n = 0;
  *err = (weir_error){0};
  opened_source s = sources_open(OPS, source_rig_settings(name, more, value), NULL);
  while (weir_file_source_ops.read(&s.source, NULL, &what, &batch, err) == WEIR_OK) {
    assert_int_not_equal(what, WEIR_READ_END);
    weir_batch_unref(batch);
    batch = NULL;
    n++;
  }
  assert_null(batch);
  assert_int_equal(err->code, WEIR_E_BAD_DATA);
  assert_int_equal(err->flags, WEIR_ERR_BAD_DATA);
  assert_non_null(strstr(err->message, name));
  sources_close(&s);
  return n;
}

static const struct {
  const char *extension;
  pack_fn pack;
} packs[] = {{".gz", add_gzip}, {".zst", add_zstd}};

static size_t make_rows(char *text, bool csv) {
  char *p = text;
  if (csv) p += sprintf(p, "name,id\r\n");
  for (int i = 0; i < 20; i++)
    p += csv ? sprintf(p, "\"n\r\n%d\",%d\r\n", i, i)
             : sprintf(p, "{\"id\":%d,\"name\":\"n\\r\\n%d\"}\n", i, i);
  return (size_t)(p - text);
}

static void test_every_position_continues(void **state) {
  (void)state;
  char text[4000], name[64];
  for (size_t k = 0; k < 4; k++) {
    bool csv = k & 1;
    size_t size = make_rows(text, csv);
    struct bytes packed = {0};
    /* members that are cut within lines, and an empty one */
    packs[k / 2].pack(&packed, text, 100);
    packs[k / 2].pack(&packed, text, 0);
    packs[k / 2].pack(&packed, text + 100, 77);
    packs[k / 2].pack(&packed, text + 177, size - 177);
    put(csv ? "plain.csv" : "plain.ndjson", text, size);
    snprintf(name, sizeof(name), "x.%s%s", csv ? "csv" : "ndjson",
             packs[k / 2].extension);
    put(name, packed.data, packed.size);
    file_reader_set_block(SOURCE_RIG_BLOCK);
    char *all = source_rig_read(csv ? "plain.csv" : "plain.ndjson", NULL, 1000, NULL);
    assert_non_null(strstr(all, "{\"id\":19,\"name\":\"n\\r\\n19\"}\n"));
    for (int batches = 0; batches < 9; batches++) {
      weir_bytes position = {0};
      file_reader_set_block(batches & 1 ? 32 : SOURCE_RIG_BLOCK);
      char *begin = source_rig_read(name, NULL, batches, &position);
      char *rest = source_rig_read(name, &position, 1000, NULL);
      size_t n = strlen(begin);
      assert_memory_equal(all, begin, n);
      assert_string_equal(all + n, rest);
      free(begin);
      free(rest);
      position.release(&position);
    }
    free(all);
  }
}

/* Cut anywhere, or with any bit of its end wrong: an error, and never its end. */
static void test_broken_files(void **state) {
  (void)state;
  char text[4000], name[64];
  size_t size = make_rows(text, false);
  weir_error err;
  for (size_t k = 0; k < 2; k++) {
    struct bytes whole = {0};
    packs[k].pack(&whole, text, size);
    snprintf(name, sizeof(name), "x.ndjson%s", packs[k].extension);
    for (size_t n = 0; n < whole.size; n++) {
      put(name, whole.data, n);
      read_broken(name, NULL, NULL, &err);
      assert_non_null(strstr(err.message, n == 0 ? "it is empty" : "it ends within it"));
    }
    for (size_t back = 1; back <= 4; back++) {
      whole.data[whole.size - back] ^= 0x10;
      put(name, whole.data, whole.size);
      read_broken(name, NULL, NULL, &err);
      assert_non_null(strstr(err.message, "is broken at byte"));
      whole.data[whole.size - back] ^= 0x10;
    }
    add(&whole, "no member", 9);
    put(name, whole.data, whole.size);
    read_broken(name, NULL, NULL, &err);
  }
  put("plain.ndjson", text, size);
  read_broken("plain.ndjson", "compression", "gzip", &err);
  read_broken("plain.ndjson", "compression", "zstd", &err);
}

static void test_padding_and_windows(void **state) {
  (void)state;
  static const uint8_t zeros[600];
  /* RFC 8878, 3.1.1.1: no content size, a window of 2^28 bytes, one raw last block of 1 byte */
  static const uint8_t wide[] = {0x28,    0xb5,       0x2f, 0xfd, 0,
                                 18 << 3, 1 << 3 | 1, 0,    0,    ' '};
  static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
  const char *row = "{\"id\":1,\"name\":\"a\"}\n";
  struct bytes padded = {0}, skips = {0};
  weir_error err;
  add_gzip(&padded, row, strlen(row));
  add(&padded, zeros, sizeof(zeros));
  put("x.jsonl.gz", padded.data, padded.size);
  char *got = source_rig_read("x.jsonl.gz", NULL, 1000, NULL);
  assert_string_equal(got, row);
  free(got);
  add(&padded, "x", 1);
  put("x.jsonl.gz", padded.data, padded.size);
  read_broken("x.jsonl.gz", NULL, NULL, &err);
  assert_non_null(strstr(err.message, "behind its end"));
  put("w.ndjson.zst", wide, sizeof(wide));
  read_broken("w.ndjson.zst", NULL, NULL, &err);
  assert_non_null(strstr(err.message, "too much memory"));
  add(&skips, skippable, sizeof(skippable));
  add_zstd(&skips, row, strlen(row));
  add(&skips, skippable, sizeof(skippable));
  put("s.ndjson.zst", skips.data, skips.size);
  got = source_rig_read("s.ndjson.zst", NULL, 1000, NULL);
  assert_string_equal(got, row);
  free(got);
}

/* Calls are what costs: who reads looks through its unfinished line again after each. */
static void test_members_of_a_byte_fill_a_call(void **state) {
  (void)state;
  enum { ROOM = 100, MEMBERS = 250 };
  for (size_t k = 0; k < 2; k++) {
    struct bytes all = {0};
    size_t calls = 0, got = 1, have = 0;
    char path[600], text[MEMBERS + ROOM];
    bool wait = true;
    file_input *input = NULL;
    for (int i = 0; i < MEMBERS; i++) packs[k].pack(&all, i % 5 ? "x" : "", i % 5 > 0);
    put("x", all.data, all.size);
    snprintf(path, sizeof(path), "%s/x", source_rig_folder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(
        file_input_new(fd, path, k == 0 ? FILE_GZIP : FILE_ZSTD, false, &input, NULL),
        WEIR_OK);
    for (; got > 0; calls++) {
      assert_int_equal(file_input_read(input, text + have, ROOM, &got, &wait, NULL),
                       WEIR_OK);
      have += got;
      assert_int_equal(file_input_offset(input), have);
    }
    assert_int_equal(have, MEMBERS / 5 * 4);
    assert_int_equal(calls, 3); /* 100, 100, and the end */
    file_input_free(input);
    close(fd);
  }
}

static void test_a_file_that_changed(void **state) {
  (void)state;
  char text[4000];
  size_t size = make_rows(text, false);
  struct bytes packed = {0};
  weir_bytes position = {0};
  weir_error err = {0};
  add_gzip(&packed, text, size);
  put("x.ndjson.gz", packed.data, packed.size);
  free(source_rig_read("x.ndjson.gz", NULL, 2, &position));
  add_gzip(&packed, text, size);
  put("x.ndjson.gz", packed.data, packed.size);
  sources_open_error(OPS, source_rig_settings("x.ndjson.gz", NULL, NULL), &position,
                     &err);
  assert_int_equal(err.code, WEIR_E_BAD_DATA);
  assert_non_null(strstr(err.message, "changed its size"));
  position.release(&position);
}

/* CR LF, quotes, escapes and characters of 2 to 4 bytes, at every place relative to a block's edge. */
static void test_every_edge(void **state) {
  (void)state;
  static const char *const bodies[] = {
      "\xef\xbb\xbfid,name\r\n1,\"a\r\n\"\"\xc3\xa9\"\"\"\r\n2,\xe2\x82\xac\r\n"
      "3,\"\xf0\x9f\x98\x80,\"\"\"\r\n\r\n4,\"\"\r\n5,\xf0\x9f\x98\x80",
      "{\"id\":1,\"name\":\"a\\r\\n\\\"\xc3\xa9\\\"\"}\r\n{\"id\":2,\"name\":"
      "\"\xe2\x82\xac\"}"
      "\r\n{\"name\":\"\\ud83d\\ude00\xf0\x9f\x98\x80,\\\\\",\"id\":3}\r\n\r\n{\"id\":4,"
      "\"name\":\"\"}\r\n{\"id\":5,\"name\":\"\xf0\x9f\x98\x80\"}"};
  static const char *const names[] = {"e.csv", "e.ndjson"};
  for (size_t k = 0; k < 2; k++) {
    char name[64];
    size_t size = strlen(bodies[k]);
    struct bytes gzip = {0}, zstd = {0};
    add_gzip(&gzip, bodies[k], size);
    add_zstd(&zstd, bodies[k], size);
    put(names[k], bodies[k], size);
    snprintf(name, sizeof(name), "%s.gz", names[k]);
    put(name, gzip.data, gzip.size);
    snprintf(name, sizeof(name), "%s.zst", names[k]);
    put(name, zstd.data, zstd.size);
    file_reader_set_block(SOURCE_RIG_BLOCK);
    char *want = source_rig_read(names[k], NULL, 1000, NULL);
    assert_non_null(strstr(want, "\"id\":5,\"name\":\"\xf0\x9f\x98\x80\"}\n"));
    for (size_t block = 1; block <= size + 1; block++) {
      for (size_t kind = 0; kind < 3; kind++) {
        snprintf(name, sizeof(name), "%s%s", names[k],
                 kind == 0 ? "" : packs[kind - 1].extension);
        file_reader_set_block(block);
        char *got = source_rig_read(name, NULL, 1000, NULL);
        assert_string_equal(got, want);
        free(got);
      }
    }
    free(want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_every_position_continues),
      IN_FOLDER(test_broken_files),
      IN_FOLDER(test_padding_and_windows),
      IN_FOLDER(test_members_of_a_byte_fill_a_call),
      IN_FOLDER(test_a_file_that_changed),
      IN_FOLDER(test_every_edge),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
