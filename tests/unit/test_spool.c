/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: written, read while they grow and by their descriptors, and every way of being wrong. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "spool/segment.h"
#include "support/folder.h"
#include "support/rows.h"

static char folder[FOLDER_PATH];
static const weir_namespace ns = {
    .struct_size = sizeof(ns), .pipeline = "p", .sink_id = "s", .identity = {1}};

static int set_up(void **state) {
  (void)state;
  weir_error err = {0};
  return folder_make(folder) || weir_spool_prepare(folder, &ns, &err);
}

static int tear_down(void **state) {
  (void)state;
  return folder_remove(folder);
}

static weir_spool_id id_of(uint64_t attempt, uint64_t participant) {
  return (weir_spool_id){attempt, participant, {9, 8, 7, (uint8_t)attempt}};
}

static weir_spool_writer *new_writer(const weir_spool_id *id) {
  weir_spool_writer *w = NULL;
  weir_error err = {0};
  assert_int_equal(weir_spool_writer_new(folder, &ns, id, &w, &err), WEIR_OK);
  return w;
}

static const char *texts[] = {
    "{\"a\":1,\"b\":\"x\",\"d\":\"u\"}\n{\"a\":null,\"b\":null,\"d\":\"v\"}\n",
    "{\"a\":2,\"b\":\"\",\"d\":null}\n",
    "{\"a\":3,\"b\":\"long enough to be no prefix\",\"d\":\"u\"}\n"};

static weir_batch *batch_of(size_t i) {
  weir_schema *schema = rows_schema("a: int64; b: utf8; d: utf8");
  weir_batch *batch = rows_batch(schema, texts[i]);
  weir_schema_unref(schema);
  return batch;
}

static weir_spool_frame append(weir_spool_writer *w, weir_batch *batch) {
  weir_spool_frame frame = {0};
  weir_error err = {0};
  assert_int_equal(weir_spool_writer_append(w, batch, &frame, &err), WEIR_OK);
  weir_batch_unref(batch);
  return frame;
}

static weir_spool_segment seal(weir_spool_writer *w) {
  weir_spool_segment segment = {{0}, 0, 0, 0, 0};
  weir_bytes bytes = {0};
  weir_error err = {0};
  assert_int_equal(weir_spool_writer_seal(w, &bytes, &err), WEIR_OK);
  assert_int_equal(bytes.size, WEIR_SPOOL_DESCRIPTOR_SIZE);
  assert_int_equal(weir_spool_descriptor_read(bytes.data, bytes.size, &segment, &err),
                   WEIR_OK);
  weir_bytes_release(&bytes);
  return segment;
}

/* Three batches, sealed. */
static weir_spool_segment write_segment(uint64_t attempt, uint64_t participant) {
  weir_spool_id id = id_of(attempt, participant);
  weir_spool_writer *w = new_writer(&id);
  for (size_t i = 0; i < 3; i++) append(w, batch_of(i));
  weir_spool_segment segment = seal(w);
  weir_spool_writer_free(w);
  return segment;
}

static void check_batch(weir_batch *batch, size_t i) {
  char *text = rows_text(batch);
  assert_string_equal(text, texts[i]);
  free(text);
  weir_batch_unref(batch);
}

/* All batches; the first failure. */
static weir_status read_all(const weir_namespace *of, const weir_spool_segment *segment,
                            weir_error *err) {
  weir_spool_reader *reader = NULL;
  weir_batch *batch = NULL;
  weir_status status = weir_spool_reader_open(folder, of, segment, &reader, err);
  if (status) return status;
  for (size_t i = 0; !status; i++) {
    status = weir_spool_reader_next(reader, &batch, err);
    if (status || !batch) break;
    check_batch(batch, i);
  }
  weir_spool_reader_free(reader);
  return status;
}

/* Path below `folder`. */
static const char *name_of(const weir_spool_segment *segment) {
  static char name[FOLDER_PATH];
  char *path = spool_path_of(folder, &ns, &segment->id, NULL);
  assert_non_null(path);
  snprintf(name, sizeof(name), "%s", path + strlen(folder) + 1);
  free(path);
  return name;
}

static void must_be_corrupt(const weir_namespace *of, const weir_spool_segment *segment,
                            const char *what) {
  weir_error err = {0};
  assert_int_equal(read_all(of, segment, &err), WEIR_E_CORRUPT);
  assert_non_null(strstr(err.message, ".spool"));
  if (!strstr(err.message, what)) fail_msg("'%s' does not say '%s'", err.message, what);
}

static void test_written_and_read(void **state) {
  (void)state;
  weir_error err = {0};
  weir_spool_segment segment = write_segment(3, 2);
  assert_int_equal(segment.frames, 3);
  assert_int_equal(segment.rows, 4);
  assert_int_equal(segment.id.attempt, 3);
  assert_int_equal(read_all(&ns, &segment, &err), WEIR_OK);
  struct stat info;
  char path[2 * FOLDER_PATH];
  snprintf(path, sizeof(path), "%s/%s", folder, name_of(&segment));
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_size,
                   segment.bytes); /* what was allocated ahead is given back */
  assert_int_equal(info.st_mode & 0777, 0600);
  *strrchr(path, '/') = 0;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
}

static void test_read_while_it_grows(void **state) {
  (void)state;
  weir_spool_id id = id_of(1, 1);
  weir_error err = {0};
  weir_batch *batch = NULL;
  weir_spool_frame frames[3];
  weir_spool_writer *w = new_writer(&id);
  for (size_t i = 0; i < 3; i++) {
    frames[i] = append(w, batch_of(i));
    for (size_t k = 0; k <= i; k++) {
      assert_int_equal(weir_spool_writer_read_at(w, &frames[k], &batch, &err), WEIR_OK);
      check_batch(batch, k);
    }
  }
  weir_spool_segment segment = seal(w), again = seal(w);
  assert_memory_equal(&segment, &again, sizeof(segment));
  assert_int_equal(weir_spool_writer_read_at(w, &frames[1], &batch, &err), WEIR_OK);
  weir_spool_writer_free(w);
  check_batch(batch, 1); /* outlives its writer */
  assert_int_equal(read_all(&ns, &segment, &err), WEIR_OK);
}

/* Pieces on both sides of what is buffered, and more than is allocated ahead at once. */
static void test_large_batches(void **state) {
  (void)state;
  enum { LARGE = 1 << 20 };
  weir_error err = {0};
  weir_spool_id id = id_of(1, 1);
  weir_spool_writer *w = new_writer(&id);
  weir_schema *schema = rows_schema("b: utf8");
  static const size_t sizes[] = {0, 63, 64, 65000, 65536, 65537, 262000, LARGE};
  char *text = malloc(LARGE + 64);
  assert_non_null(text);
  for (size_t i = 0; i < BASE_COUNT(sizes); i++) {
    memcpy(text, "{\"b\":\"", 6);
    memset(text + 6, 'a' + (int)i, sizes[i]);
    memcpy(text + 6 + sizes[i], "\"}\n", 4);
    append(w, rows_batch(schema, text));
  }
  weir_spool_segment segment = seal(w);
  weir_spool_writer_free(w);
  weir_spool_reader *reader = NULL;
  weir_batch *batch = NULL;
  assert_int_equal(weir_spool_reader_open(folder, &ns, &segment, &reader, &err), WEIR_OK);
  for (size_t i = 0; i < BASE_COUNT(sizes); i++) {
    assert_int_equal(weir_spool_reader_next(reader, &batch, &err), WEIR_OK);
    const struct ArrowArray *column = weir_batch_array(batch)->children[0];
    const int32_t *ends = column->buffers[1];
    const char *data = column->buffers[2];
    assert_int_equal(ends[1] - ends[0], sizes[i]);
    for (size_t k = 0; k < sizes[i]; k++) assert_true(data[k] == 'a' + (int)i);
    weir_batch_unref(batch);
  }
  assert_int_equal(weir_spool_reader_next(reader, &batch, &err), WEIR_OK);
  assert_null(batch);
  weir_spool_reader_free(reader);
  weir_schema_unref(schema);
  free(text);
}

static void test_every_flipped_bit_is_found(void **state) {
  (void)state;
  weir_spool_segment segment = write_segment(1, 1);
  const char *name = name_of(&segment);
  char path[2 * FOLDER_PATH], old = 0;
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  uint64_t padding = 0;
  for (uint64_t at = 0; at < segment.bytes; at++) {
    weir_error err = {0};
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fread(&old, 1, 1, f), 1);
    char changed = (char)(old ^ (1 << at % 8));
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&changed, 1, 1, f), 1);
    assert_int_equal(fflush(f), 0);
    /* Zeros between what is read are nobody's. */
    if (read_all(&ns, &segment, &err)) {
      assert_int_equal(err.code, WEIR_E_CORRUPT);
      assert_non_null(strstr(err.message, path));
    } else {
      assert_int_equal(old, 0);
      padding++;
    }
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&old, 1, 1, f), 1);
    assert_int_equal(fflush(f), 0);
  }
  fclose(f);
  assert_true(padding < 3 * (16 + 4 + SPOOL_ALIGN));
}

static void test_torn_and_longer(void **state) {
  (void)state;
  weir_spool_segment segment = write_segment(1, 1);
  folder_add(folder, name_of(&segment), "x");
  must_be_corrupt(&ns, &segment, "were synced when it was sealed");
  for (long size = (long)segment.bytes - 1; size >= 0; size -= 37) {
    folder_cut(folder, name_of(&segment), size);
    must_be_corrupt(&ns, &segment, "were synced when it was sealed");
  }
}

/* Cut, and its descriptor believes it: still it ends in the wrong place. */
static void test_a_descriptor_of_another_length(void **state) {
  (void)state;
  weir_spool_segment whole = write_segment(1, 1), segment = whole;
  for (uint64_t size = whole.bytes - 1; size > 0; size -= size > 29 ? 29 : size) {
    weir_error err = {0};
    folder_cut(folder, name_of(&segment), (long)size);
    segment.bytes = size;
    assert_int_equal(read_all(&ns, &segment, &err), WEIR_E_CORRUPT);
  }
}

static void test_missing(void **state) {
  (void)state;
  weir_error err = {0};
  weir_spool_segment segment = write_segment(1, 1);
  assert_int_equal(weir_spool_remove(folder, &ns, &segment.id, &err), WEIR_OK);
  assert_int_equal(weir_spool_remove(folder, &ns, &segment.id, &err), WEIR_OK);
  assert_int_equal(read_all(&ns, &segment, &err), WEIR_E_NOT_FOUND);
  assert_non_null(strstr(err.message, ".spool"));
}

/* A file under another one's name. */
static void test_foreign(void **state) {
  (void)state;
  weir_namespace other = ns;
  other.sink_id = "t";
  weir_error err = {0};
  char name[FOLDER_PATH], kept[FOLDER_PATH], key[WEIR_NAMESPACE_KEY_SIZE];
  weir_spool_segment a = write_segment(1, 1), b = write_segment(1, 2);
  snprintf(name, sizeof(name), "%s", name_of(&a));
  snprintf(kept, sizeof(kept), "%s", name_of(&b));
  folder_rename(folder, kept, name);
  must_be_corrupt(&ns, &a, "is damaged, or of another pipeline");
  weir_spool_segment c = write_segment(2, 1);
  assert_int_equal(weir_spool_prepare(folder, &other, &err), WEIR_OK);
  weir_namespace_key(&other, key);
  snprintf(name, sizeof(name), "%s/%s", key, strchr(name_of(&c), '/') + 1);
  snprintf(kept, sizeof(kept), "%s", name_of(&c));
  folder_rename(folder, kept, name);
  must_be_corrupt(&other, &c, "is damaged, or of another pipeline");
}

/* Of the same id and length, with other rows: what a copied state folder could do with a fixed name. */
static void test_other_contents(void **state) {
  (void)state;
  weir_error err = {0};
  weir_spool_segment first = write_segment(1, 1);
  assert_int_equal(weir_spool_remove(folder, &ns, &first.id, &err), WEIR_OK);
  weir_spool_writer *w = new_writer(&first.id);
  for (size_t i = 0; i < 3; i++) append(w, batch_of(i == 2 ? 2 : 1));
  weir_spool_segment second = seal(w);
  weir_spool_writer_free(w);
  first.bytes = second.bytes;
  weir_spool_reader *reader = NULL;
  weir_batch *batch = NULL;
  assert_int_equal(weir_spool_reader_open(folder, &ns, &first, &reader, &err), WEIR_OK);
  weir_status status = WEIR_OK;
  while (!(status = weir_spool_reader_next(reader, &batch, &err)) && batch)
    weir_batch_unref(batch);
  assert_int_equal(status, WEIR_E_CORRUPT);
  weir_spool_reader_free(reader);
}

static void test_descriptors(void **state) {
  (void)state;
  uint8_t bytes[WEIR_SPOOL_DESCRIPTOR_SIZE + 1] = {0};
  weir_spool_segment segment = write_segment(1, 1), out = segment;
  weir_error err = {0};
  spool_descriptor_put(&segment, bytes);
  assert_int_equal(weir_spool_descriptor_read(bytes, sizeof(bytes), &out, &err),
                   WEIR_E_CORRUPT);
  assert_int_equal(weir_spool_descriptor_read(NULL, 0, &out, &err), WEIR_E_CORRUPT);
  for (size_t i = 0; i < WEIR_SPOOL_DESCRIPTOR_SIZE; i++) {
    bytes[i] ^= 4;
    assert_int_equal(
        weir_spool_descriptor_read(bytes, WEIR_SPOOL_DESCRIPTOR_SIZE, &out, &err),
        WEIR_E_CORRUPT);
    bytes[i] ^= 4;
  }
}

static void test_states(void **state) {
  (void)state;
  weir_error err = {0};
  weir_spool_id id = id_of(1, 1);
  weir_spool_frame frame = {0};
  weir_spool_writer *w = new_writer(&id), *second = NULL;
  assert_int_equal(weir_spool_writer_new(folder, &ns, &id, &second, &err), WEIR_E_EXISTS);
  append(w, batch_of(0));
  seal(w);
  weir_batch *batch = batch_of(1);
  assert_int_equal(weir_spool_writer_append(w, batch, &frame, &err),
                   WEIR_E_INVALID_STATE);
  weir_batch_unref(batch);
  weir_spool_writer_free(w);
  weir_spool_writer_free(NULL);
  weir_spool_reader_free(NULL);
}

/* ---- removing ------------------------------------------------------------------------------------ */

static size_t count_files(void) {
  char *dir = spool_folder_of(folder, &ns, NULL);
  size_t n = 0;
  DIR *d = opendir(dir);
  assert_non_null(d);
  for (struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
  closedir(d);
  free(dir);
  return n;
}

static bool is_there(uint64_t attempt, uint64_t participant) {
  weir_spool_id id = id_of(attempt, participant);
  char *path = spool_path_of(folder, &ns, &id, NULL);
  struct stat info;
  bool there = stat(path, &info) == 0;
  free(path);
  return there;
}

static void test_prune(void **state) {
  (void)state;
  weir_error err = {0};
  uint64_t bytes = 0;
  for (uint64_t n = 8; n <= 12; n++)
    for (uint64_t p = 1; p <= 2; p++) bytes = write_segment(n, p).bytes;
  char *dir = spool_folder_of(folder, &ns, NULL);
  folder_put(dir, "00012-1-notes.spool", "not ours");
  free(dir);
  assert_int_equal(weir_spool_prune(folder, &ns, 11, 3, UINT64_MAX, &err), WEIR_OK);
  assert_int_equal(count_files(), 4 * 2 + 1); /* 12, which is later, and 9 to 11 */
  assert_false(is_there(8, 1));
  assert_int_equal(weir_spool_prune(folder, &ns, 11, 3, 5 * bytes, &err), WEIR_OK);
  assert_int_equal(count_files(), 3 * 2 + 1);
  assert_false(is_there(9, 2));
  assert_int_equal(weir_spool_prune(folder, &ns, 12, 3, 0, &err), WEIR_OK);
  assert_int_equal(count_files(), 1);
}

static void test_remove_all(void **state) {
  (void)state;
  weir_error err = {0};
  write_segment(1, 1), write_segment(1, 2), write_segment(11, 1), write_segment(1, 11);
  weir_spool_id id = id_of(1, 1);
  id.incarnation[0] = 77;
  weir_spool_writer_free(new_writer(&id));
  assert_int_equal(weir_spool_remove_all(folder, &ns, 1, 1, &err), WEIR_OK);
  assert_false(is_there(1, 1));
  assert_true(is_there(1, 2) && is_there(11, 1) && is_there(1, 11));
  assert_int_equal(count_files(), 3);
  weir_namespace nobody = ns;
  nobody.sink_id = "u";
  assert_int_equal(weir_spool_remove_all(folder, &nobody, 1, 1, &err), WEIR_OK);
  assert_int_equal(weir_spool_prune(folder, &nobody, 9, 1, 1, &err), WEIR_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(test_written_and_read), TEST(test_read_while_it_grows),
      TEST(test_large_batches),    TEST(test_every_flipped_bit_is_found),
      TEST(test_torn_and_longer),  TEST(test_a_descriptor_of_another_length),
      TEST(test_missing),          TEST(test_foreign),
      TEST(test_other_contents),   TEST(test_descriptors),
      TEST(test_states),           TEST(test_prune),
      TEST(test_remove_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
