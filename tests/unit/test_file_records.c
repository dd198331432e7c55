/* SPDX-License-Identifier: Apache-2.0 */
/* The file sink's records: what is written is read back, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/file/json.h"
#include "../../connectors/file/manifest.h"
#include "../../connectors/file/partition.h"

static file_epoch_key test_key(void) {
  file_epoch_key key = {.attempt = 42, .participant = 3};
  memset(key.incarnation, 0xab, sizeof(key.incarnation));
  return key;
}

#define NAME "000000000042-0003-00001-abababababababababababababababab.parquet"

static void names_have_one_spelling(void **state) {
  (void)state;
  file_data_name name = {
      .attempt = 42, .participant = 3, .index = 1, .extension = "parquet"};
  char text[DATA_NAME_SIZE];
  memset(name.incarnation, 0xab, sizeof(name.incarnation));
  file_data_name_format(&name, text);
  assert_string_equal(text, NAME);
  name.attempt = name.participant = name.index = UINT64_MAX;
  file_data_name_format(&name, text);
  file_data_name back = {0};
  assert_true(file_data_name_parse(text, &back));
  assert_int_equal(back.attempt, UINT64_MAX);
  assert_int_equal(back.index, UINT64_MAX);
  static const char *const bad[] = {
      "",
      "x",
      "..",
      "42-3-1-abababababababababababababababab.parquet", /* not padded */
      "0000000000042-0003-00001-abababababababababababababababab.parquet",
      "000000000042-0003-00001-ababababababababababababababab.parquet",
      "000000000042-0003-00001-ABABABABABABABABABABABABABABABAB.parquet",
      "000000000042-0003-00001-abababababababababababababababab",
      "000000000042-0003-00001-abababababababababababababababab.",
      "000000000042-0003-00001-abababababababababababababababab.parquet2x",
      "000000000042-0003-00001-abababababababababababababababab.a/../..",
      "../000000000042-0003-00001-abababababababababababababababab.parquet",
      "18446744073709551616-0003-00001-abababababababababababababababab.parquet",
      "-0003-00001-abababababababababababababababab.parquet",
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    if (file_data_name_parse(bad[i], &back)) fail_msg("'%s' was taken", bad[i]);
  }
}

static void intents_come_back(void **state) {
  (void)state;
  file_epoch_key key = test_key(), back = {0};
  weir_bytes bytes = {0};
  assert_int_equal(file_intent_write(&key, &bytes, NULL), WEIR_OK);
  assert_int_equal(file_intent_read(bytes.data, bytes.size, &back, NULL), WEIR_OK);
  assert_memory_equal(&key, &back, sizeof(key));
  weir_bytes_release(&bytes);
}

static weir_status read_descriptor(const char *text, char *message) {
  file_data_files files = {0};
  weir_error err = {0};
  weir_status status = file_descriptor_read(text, strlen(text), 42, 3, &files, &err);
  assert_int_equal(files.n, status ? 0 : 1);
  file_data_files_done(&files);
  if (message) strcpy(message, err.message);
  return status;
}

#define INCARNATION "abababababababababababababababab"
#define SHA "0000000000000000000000000000000000000000000000000000000000000000"
#define HEAD \
  "{\"weir\":\"file-descriptor\",\"version\":1,\"attempt\":42,\"participant\":3,"
#define FILE_1 "{\"name\":\"" NAME "\",\"rows\":7,\"bytes\":9,\"sha256\":\"" SHA "\"}"

static void descriptors_are_read_as_a_strangers(void **state) {
  (void)state;
  char message[1024];
  const char *good = HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[" FILE_1 "]}";
  assert_int_equal(read_descriptor(good, NULL), WEIR_OK);
  static const struct {
    const char *text, *names;
  } bad[] = {
      {"", "JSON"},
      {"[]", "record of weir's"},
      {"{\"weir\":\"file-manifest\",\"version\":1}", "file-descriptor"},
      {"{\"weir\":\"file-descriptor\"}", "version"},
      {HEAD "\"files\":[]}", "incarnation"},
      {HEAD "\"incarnation\":\"" INCARNATION "\"}", "files"},
      {HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":{}}", "files"},
      {HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[1]}", "name"},
      {HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[" FILE_1 "," FILE_1 "]}",
       "name"},
      {HEAD "\"incarnation\":\"cdababababababababababababababab\",\"files\":[" FILE_1
            "]}",
       "name"},
      {HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[{\"name\":\"" NAME
            "\",\"rows\":-7,\"bytes\":9,\"sha256\":\"" SHA "\"}]}",
       "rows"},
      {HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[{\"name\":\"" NAME
            "\",\"rows\":7,\"bytes\":\"9\",\"sha256\":\"" SHA "\"}]}",
       "bytes"},
      {HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[{\"name\":\"" NAME
            "\",\"rows\":7,\"bytes\":9,\"sha256\":\"00\"}]}",
       "sha256"},
      {HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[{\"name\":\"../" NAME
            "\",\"rows\":7,\"bytes\":9,\"sha256\":\"" SHA "\"}]}",
       "name"},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    if (read_descriptor(bad[i].text, message) != WEIR_E_CORRUPT ||
        !strstr(message, bad[i].names)) {
      fail_msg("%s: %s", bad[i].text, message);
    }
  }
  assert_int_equal(
      read_descriptor("{\"weir\":\"file-descriptor\",\"version\":2}", message),
      WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(message, "newer weir"));
  file_data_files files = {0};
  assert_int_equal(file_descriptor_read(good, strlen(good), 43, 3, &files, NULL),
                   WEIR_E_CORRUPT);
  assert_int_equal(file_descriptor_read(good, strlen(good), 42, 4, &files, NULL),
                   WEIR_E_CORRUPT);
  assert_int_equal(files.n, 0);
}

#define IN_FOLDER(folder)                                                            \
  HEAD "\"incarnation\":\"" INCARNATION "\",\"files\":[{\"name\":\"" folder "/" NAME \
       "\",\"rows\":7,\"bytes\":9,\"sha256\":\"" SHA "\"}]}"

static void folders_have_one_spelling_and_lie_below(void **state) {
  (void)state;
  static const char *const good[] = {
      "day=2024-02-29", "a=/b=",
      "a=..",           "a b=x%20y/\xc3\xa9=\xe6\x97\xa5",
      "a=%2F%00%25",    "k=__HIVE_DEFAULT_PARTITION__",
  };
  static const char *const bad[] = {
      "",       ".",      "..",    "/",     "a",     "/a=1", "a=1/",  "a=1//b=2",
      "a=1/..", "../a=1", "a=1/.", "..=1",  ".a=1",  "_a=1", "=1",    "a=1/=2",
      "a=x y",  "a=b=c",  "a=%2f", "a=%41", "a=%2",  "a=%",  "a=%GG", "a%2F=1",
      "a=:",    "a*=1",   "a\\=1", "a=\n",  "a=1/b",
  };
  for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
    if (!file_partition_folder_valid(good[i], strlen(good[i])))
      fail_msg("'%s' was refused", good[i]);
  }
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    if (file_partition_folder_valid(bad[i], strlen(bad[i])))
      fail_msg("'%s' was taken", bad[i]);
  }
  assert_false(file_partition_folder_valid("a=1\0b", 5));
  char longest[PARTITION_FOLDER_MAX + 2] = "a=";
  memset(longest + 2, 'x', 254);
  assert_true(file_partition_folder_valid(longest, 255));
  assert_false(file_partition_folder_valid(longest, 256));
  for (size_t i = 0; i < sizeof(longest); i++) longest[i] = "a=x/"[i % 4];
  assert_true(file_partition_folder_valid(longest, PARTITION_FOLDER_MAX - 1));
  assert_false(file_partition_folder_valid(longest, PARTITION_FOLDER_MAX + 1));
}

static void folders_of_files_come_back(void **state) {
  (void)state;
  char message[1024];
  file_data_files files = {0}, back = {0};
  file_data_file file = {.name = NAME, .rows = 7, .bytes = UINT64_MAX};
  file_epoch_key key = test_key();
  weir_bytes bytes = {0};
  file.folder = strdup("a b=x%20y/\xc3\xa9=\xe6\x97\xa5");
  assert_int_equal(file_data_files_add(&files, &file, NULL), WEIR_OK);
  assert_int_equal(file_descriptor_write(&key, &files, &bytes, NULL), WEIR_OK);
  file_data_files none = {0};
  weir_bytes empty = {0};
  assert_int_equal(file_descriptor_write(&key, &none, &empty, NULL), WEIR_OK);
  assert_true(bytes.size - empty.size <= file_descriptor_bytes(file.folder));
  assert_int_equal(file_descriptor_read(bytes.data, bytes.size, 42, 3, &back, NULL),
                   WEIR_OK);
  assert_string_equal(back.v[0].name, NAME);
  assert_string_equal(back.v[0].folder, file.folder);
  weir_bytes_release(&bytes);
  weir_bytes_release(&empty);
  file_data_files_done(&files);
  file_data_files_done(&back);
  assert_int_equal(read_descriptor(IN_FOLDER("a=1"), NULL), WEIR_OK);
  static const char *const bad[] = {IN_FOLDER("a"), IN_FOLDER(".."), IN_FOLDER("a=1/.."),
                                    IN_FOLDER("/a=1"), IN_FOLDER("a=\\u0000")};
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    if (read_descriptor(bad[i], message) != WEIR_E_CORRUPT || !strstr(message, "name"))
      fail_msg("%s: %s", bad[i], message);
  }
}

static weir_namespace test_ns(void) {
  weir_namespace ns = {
      .struct_size = sizeof(ns), .pipeline = "orders", .sink_id = "l\"ake"};
  memset(ns.identity, 0x11, sizeof(ns.identity));
  memset(ns.deployment, 0x22, sizeof(ns.deployment));
  return ns;
}

static void manifests_come_back(void **state) {
  (void)state;
  file_epoch_key key = test_key();
  file_data_file file = {.name = NAME, .participant = 3, .rows = 7, .bytes = 9};
  file_data_files files = {0};
  weir_bytes bytes = {0};
  weir_namespace ns = test_ns();
  file_manifest m = {0}, back = {0};
  weir_error err = {0};
  char *text = NULL;
  size_t size = 0;
  assert_int_equal(file_data_files_add(&files, &file, NULL), WEIR_OK);
  assert_int_equal(file_descriptor_write(&key, &files, &bytes, NULL), WEIR_OK);
  weir_commit_entry entries[] = {{1, 0, NULL, 0}, {3, 1, bytes.data, bytes.size}};
  weir_commit_attempt attempts[] = {{{41, 5, {1}}, entries, 1},
                                    {{42, 5, {2}}, entries, 2}};
  weir_commit_batch batch = {.struct_size = sizeof(batch), .ns = &ns, .n_attempts = 2};
  batch.attempts = attempts;
  batch.positions = "{\"a\": [1.10, 123456789012345678901234567890]}";
  weir_cursor predecessor = {40, 4, {9}};
  if (file_manifest_build(&batch, 0, 7, 2, &predecessor, &m, &err) ||
      file_manifest_write(&m, &ns, &text, &size, &err) ||
      file_manifest_read(text, size, 7, "it", &back, &err)) {
    fail_msg("%s", err.message);
  }
  assert_int_equal(back.sequence, 7);
  assert_int_equal(back.floor, 2);
  assert_true(weir_cursor_equal(&back.predecessor, &predecessor));
  assert_int_equal(back.n_attempts, 2);
  assert_true(weir_cursor_equal(file_manifest_cursor(&back), &attempts[1].cursor));
  assert_true(file_manifest_has_attempt(&back, 41));
  assert_false(file_manifest_has_attempt(&back, 40));
  assert_int_equal(back.attempts[0].n_files, 0);
  assert_int_equal(back.attempts[1].n_files, 1);
  assert_memory_equal(&back.files.v[0], &file, sizeof(file));
  assert_non_null(strstr(back.positions, "123456789012345678901234567890"));
  file_manifest_done(&back);

  /* Under another number, or cut anywhere, it is no manifest. */
  assert_int_equal(file_manifest_read(text, size, 8, "it", &back, NULL), WEIR_E_CORRUPT);
  for (size_t n = 0; n < size - 1; n++) {
    char *cut = malloc(n + 1); /* so that a read past the end is seen */
    memcpy(cut, text, n);
    if (file_manifest_read(cut, n, 7, "it", &back, NULL) == WEIR_OK) {
      /* Only the line break may be missing. */
      assert_int_equal(n, size - 1);
      file_manifest_done(&back);
    }
    free(cut);
  }
  batch.positions = "{";
  file_manifest_done(&m);
  assert_int_equal(file_manifest_build(&batch, 0, 7, 2, &predecessor, &m, NULL), WEIR_OK);
  char *none = NULL;
  assert_int_equal(file_manifest_write(&m, &ns, &none, &size, NULL), WEIR_E_INTERNAL);
  file_manifest_done(&m);
  free(text);
  weir_bytes_release(&bytes);
  file_data_files_done(&files);
}

static void owner_records_come_back(void **state) {
  (void)state;
  weir_namespace ns = test_ns();
  uint8_t folder[WEIR_INCARNATION_SIZE];
  memset(folder, 0x77, sizeof(folder));
  for (int kind = RECORD_OWNER; kind <= RECORD_CLAIM; kind++) {
    char *text = NULL;
    size_t size = 0;
    file_owner_record record = {0};
    assert_int_equal(file_record_write(kind, &ns, folder, &text, &size, NULL), WEIR_OK);
    assert_int_equal(file_record_read(kind, text, size, "it", &record, NULL), WEIR_OK);
    assert_string_equal(record.pipeline, "orders");
    assert_string_equal(record.sink_id, "l\"ake");
    assert_memory_equal(record.identity, ns.identity, sizeof(ns.identity));
    if (kind == RECORD_OWNER) {
      assert_memory_equal(record.folder, folder, sizeof(folder));
    } else {
      assert_memory_equal(record.deployment, ns.deployment, sizeof(ns.deployment));
    }
    file_record_done(&record);
    int other = kind == RECORD_OWNER ? RECORD_NAMESPACE : RECORD_OWNER;
    assert_int_equal(file_record_read(other, text, size, "it", &record, NULL),
                     WEIR_E_CORRUPT);
    free(text);
  }
}

static void uuids_have_one_spelling(void **state) {
  (void)state;
  uint8_t uuid[WEIR_UUID_SIZE];
  assert_true(file_json_uuid_parse("01234567-89ab-cdef-0123-456789abcdef", uuid));
  assert_int_equal(uuid[0], 0x01);
  assert_int_equal(uuid[15], 0xef);
  assert_false(file_json_uuid_parse("01234567-89AB-cdef-0123-456789abcdef", uuid));
  assert_false(file_json_uuid_parse("0123456789abcdef0123456789abcdef", uuid));
  assert_false(file_json_uuid_parse("0123456789ab-cdef-0123-456789abcdef-", uuid));
  assert_false(file_json_uuid_parse("", uuid));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_have_one_spelling),
      cmocka_unit_test(intents_come_back),
      cmocka_unit_test(descriptors_are_read_as_a_strangers),
      cmocka_unit_test(folders_have_one_spelling_and_lie_below),
      cmocka_unit_test(folders_of_files_come_back),
      cmocka_unit_test(manifests_come_back),
      cmocka_unit_test(owner_records_come_back),
      cmocka_unit_test(uuids_have_one_spelling),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
