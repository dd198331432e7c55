/* SPDX-License-Identifier: Apache-2.0 */
/* The file source over CSV: options, delimiters by name, and that every position continues exactly, which
 * takes the header again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/file/source.h"
#include "support/rows.h"
#include "support/source_rig.h"

#define OPS &weir_file_source_ops

static void release(weir_bytes *bytes) {
  if (bytes->release != NULL) bytes->release(bytes);
}

static void check_all(const char *pattern, const char *name, const char *value,
                      const char *want) {
  opened_source s = sources_open(OPS, source_rig_settings(pattern, name, value), NULL);
  char *got = sources_read_text(&s, 1000);
  assert_string_equal(got, want);
  free(got);
  sources_close(&s);
}

static void test_names_and_options(void **state) {
  (void)state;
  const char *want = "{\"id\":1,\"name\":\"a,b\"}\n{\"id\":2,\"name\":null}\n";
  weir_error err = {0};
  folder_put(source_rig_folder, "x.csv", "name,id\r\n\"a,b\",1\r\n,2\r\n");
  folder_put(source_rig_folder, "x.tsv", "id\tname\n1\ta,b\n2\t\n");
  folder_put(source_rig_folder, "x.txt", "id;name\n1;a,b\n2;\n");
  folder_put(source_rig_folder, "y.csv", "id|name\n1|a,b\n2|NA\n");
  folder_put(source_rig_folder, "z.csv", "1,\"a,b\"\n2,\n");
  check_all("x.csv", NULL, NULL, want);
  check_all("x.tsv", NULL, NULL, want);
  check_all("z.csv", "csv.header", "false", want);
  assert_int_equal(
      sources_open_error(OPS, source_rig_settings("x.[ct]sv", NULL, NULL), NULL, &err),
      WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "another format than the files before it"));
  assert_int_equal(sources_open_error(
                       OPS, source_rig_settings("x.[ct]sv", "format", "csv"), NULL, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "another delimiter than the files before it"));
}

/* Every file has its header; a run that stops after any batch goes on with the next row. */
static void test_every_position_continues(void **state) {
  (void)state;
  char text[4000], *p = text;
  p += sprintf(p, "\xef\xbb\xbfname,x,id\r\n");
  for (int i = 0; i < 20; i++) p += sprintf(p, "\"n\r\n%d\",\"\",%d\r\n", i, i);
  folder_put(source_rig_folder, "a.csv", text);
  folder_put(source_rig_folder, "b.csv", "id,name\n100,x\n101,y\n102,z\n103,w");
  char *all = source_rig_read("*.csv", NULL, 1000, NULL);
  assert_non_null(strstr(all, "{\"id\":19,\"name\":\"n\\r\\n19\"}\n{\"id\":100,"));
  for (int batches = 1; batches < 10; batches++) {
    weir_bytes position = {0};
    char *begin = source_rig_read("*.csv", NULL, batches, &position);
    char *rest = source_rig_read("*.csv", &position, 1000, NULL);
    size_t n = strlen(begin);
    assert_memory_equal(all, begin, n);
    assert_string_equal(all + n, rest);
    free(begin);
    free(rest);
    release(&position);
  }
  free(all);
}

static void test_files_that_grow(void **state) {
  (void)state;
  weir_bytes position = {0}, later = {0};
  folder_put(source_rig_folder, "a.csv", "\n");
  char *got = source_rig_read("a.csv", NULL, 1000, &position);
  assert_string_equal(got, "");
  free(got);
  folder_add(source_rig_folder, "a.csv", "id,name\n1,a\n");
  got = source_rig_read("a.csv", &position, 1000, &later);
  assert_string_equal(got, "{\"id\":1,\"name\":\"a\"}\n");
  free(got);
  folder_add(source_rig_folder, "a.csv", "2,\"b\nc\"\n");
  got = source_rig_read("a.csv", &later, 1000, NULL);
  assert_string_equal(got, "{\"id\":2,\"name\":\"b\\nc\"}\n");
  free(got);
  release(&position);
  release(&later);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_names_and_options),
      IN_FOLDER(test_every_position_continues),
      IN_FOLDER(test_files_that_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
