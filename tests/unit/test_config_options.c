/* SPDX-License-Identifier: Apache-2.0 */
/* Values against option tables: every type, default, bound and complaint. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"

static const weir_option table[] = {
    {"path", WEIR_OPT_PATH, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL, "Where to."},
    {"format", WEIR_OPT_ENUM, 0, "parquet", 0, 0, "parquet|arrow|csv", "The format."},
    {"label", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL, "A label."},
    {"threads", WEIR_OPT_INT, 0, "2", 1, 64, NULL, "Threads."},
    {"offset", WEIR_OPT_INT, 0, "0", 0, 0, NULL, "Any number."},
    {"ratio", WEIR_OPT_FLOAT, 0, "0.5", 0, 1, NULL, "A share."},
    {"sync", WEIR_OPT_BOOL, 0, "true", 0, 0, NULL, "Sync."},
    {"roll.size", WEIR_OPT_SIZE, 0, "64MiB", 1024, INT64_C(1) << 40, NULL,
     "Size of a file."},
    {"roll.rows", WEIR_OPT_INT, 0, NULL, 1, 0, NULL, "Rows of a file."},
    {"wait", WEIR_OPT_DURATION, 0, "250ms", 0, 0, NULL, "A time."},
    {"columns", WEIR_OPT_LIST, 0, "a", 0, 0, NULL, "Columns."},
    {"inputs", WEIR_OPT_PATHS, 0, NULL, 0, 0, NULL, "Inputs."},
    {"schema", WEIR_OPT_MAP, 0, "infer", 0, 0, NULL, "Columns to types."},
    {"password", WEIR_OPT_STRING, WEIR_OPT_SECRET, NULL, 0, 0, NULL, "Password."},
    {"properties", WEIR_OPT_MAP, WEIR_OPT_SECRET, NULL, 0, 0, NULL, "Free properties."},
    {0},
};

struct pair {
  const char *name, *value;
};

static weir_status try_options(const struct pair *pairs, const char *base,
                               weir_options **out, weir_error *err) {
  const char *names[16], *values[16];
  size_t n = 0;
  for (; pairs[n].name; n++) names[n] = pairs[n].name, values[n] = pairs[n].value;
  return weir_options_new(table, "sink lake", names, values, n, base, out, err);
}

static weir_options *make(const struct pair *pairs) {
  weir_options *options = NULL;
  weir_error err = {0};
  if (try_options(pairs, "/base", &options, &err)) fail_msg("%s", err.message);
  return options;
}

/* Expects one pair beside a good path to be refused with all the parts in the message. */
static void refused(const char *name, const char *value, ...) {
  weir_options *options = NULL;
  weir_error err = {0};
  const struct pair pairs[] = {{"path", "x"}, {name, value}, {NULL, NULL}};
  assert_int_equal(try_options(pairs, NULL, &options, &err), WEIR_E_INVALID_CONFIG);
  assert_null(options);
  va_list parts;
  va_start(parts, value);
  for (const char *part = va_arg(parts, const char *); part;
       part = va_arg(parts, const char *)) {
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
  }
  va_end(parts);
}

static void test_defaults(void **state) {
  (void)state;
  weir_options *o = make((const struct pair[]){{"path", "out"}, {NULL, NULL}});
  assert_string_equal(weir_options_where(o), "sink lake");
  assert_string_equal(weir_options_string(o, "path"), "/base/out");
  assert_string_equal(weir_options_string(o, "format"), "parquet");
  assert_null(weir_options_string(o, "label"));
  assert_int_equal(weir_options_int(o, "threads"), 2);
  assert_int_equal(weir_options_int(o, "roll.size"), 64 << 20);
  assert_int_equal(weir_options_int(o, "roll.rows"), 0);
  assert_int_equal(weir_options_int(o, "wait"), 250000000);
  assert_true(weir_options_float(o, "ratio") == 0.5);
  assert_int_equal(weir_options_bool(o, "sync"), 1);
  assert_int_equal(weir_options_count(o, "columns"), 1);
  assert_string_equal(weir_options_item(o, "columns", 0), "a");
  assert_int_equal(weir_options_count(o, "inputs"), 0);
  assert_null(weir_options_item(o, "inputs", 0));
  assert_string_equal(weir_options_string(o, "schema"), "infer");
  assert_int_equal(weir_options_count(o, "schema"), 0);
  assert_true(weir_options_given(o, "path"));
  assert_false(weir_options_given(o, "format"));
  weir_options_free(o);
}

static void test_given_values(void **state) {
  (void)state;
  weir_options *o = make((const struct pair[]){{"path", "/abs"},
                                               {"format", "csv"},
                                               {"threads", "64"},
                                               {"offset", "-5"},
                                               {"ratio", "1e-1"},
                                               {"sync", "false"},
                                               {"roll.size", "1GB"},
                                               {"wait", "0"},
                                               {"columns", "x"},
                                               {"columns", "y"},
                                               {"inputs", "./in/*.csv"},
                                               {"inputs", "-"},
                                               {"inputs", "s3://bucket/k"},
                                               {"schema.b", "int64"},
                                               {"schema.a.x", "decimal128(38, 10)"},
                                               {NULL, NULL}});
  assert_string_equal(weir_options_string(o, "path"), "/abs");
  assert_string_equal(weir_options_string(o, "format"), "csv");
  assert_int_equal(weir_options_int(o, "threads"), 64);
  assert_int_equal(weir_options_int(o, "offset"), -5);
  assert_true(weir_options_float(o, "ratio") == 0.1);
  assert_int_equal(weir_options_bool(o, "sync"), 0);
  assert_int_equal(weir_options_int(o, "roll.size"), 1000000000);
  assert_int_equal(weir_options_int(o, "wait"), 0);
  assert_int_equal(weir_options_count(o, "columns"), 2);
  assert_string_equal(weir_options_item(o, "columns", 1), "y");
  assert_null(weir_options_key(o, "columns", 0));
  assert_int_equal(weir_options_count(o, "inputs"), 3);
  assert_string_equal(weir_options_item(o, "inputs", 0), "/base/in/*.csv");
  assert_string_equal(weir_options_item(o, "inputs", 1), "-");
  assert_string_equal(weir_options_item(o, "inputs", 2), "s3://bucket/k");
  assert_int_equal(weir_options_count(o, "schema"), 2);
  assert_null(weir_options_string(o, "schema"));
  assert_string_equal(weir_options_key(o, "schema", 0), "b");
  assert_string_equal(weir_options_item(o, "schema", 0), "int64");
  assert_string_equal(weir_options_key(o, "schema", 1), "a.x");
  assert_string_equal(weir_options_item(o, "schema", 1), "decimal128(38, 10)");
  assert_null(weir_options_item(o, "schema", 2));
  weir_options_free(o);
}

static void test_wrong_values_say_what_was_expected(void **state) {
  (void)state;
  refused("threads", "many", "sink lake", "'threads'", "a whole number, from 1 to 64",
          "'many'", NULL);
  refused("threads", "0", "from 1 to 64", "'0'", NULL);
  refused("threads", "65", "from 1 to 64", NULL);
  refused("threads", "3.5", "a whole number", NULL);
  refused("threads", "99999999999999999999", "a whole number", NULL);
  refused("roll.rows", "0", "at least 1", NULL);
  refused("ratio", "1.5", "a number, from 0 to 1", NULL);
  refused("ratio", "nan", "a number", NULL);
  refused("ratio", "0x1", "a number", NULL);
  refused("ratio", "0,5", "a number", NULL);
  refused("sync", "yes", "true or false", "'yes'", NULL);
  refused("roll.size", "64 potatoes", "a size such as 64MiB", "from 1KiB to 1TiB", NULL);
  refused("roll.size", "16B", "from 1KiB", NULL);
  refused("wait", "10", "a time such as 250ms", "'10'", NULL);
  refused("wait", "-1s", "a time", NULL);
  refused("format", "parket", "one of parquet, arrow, csv", "'parket'", NULL);
  refused("format", "parquet|arrow", "one of", NULL);
  refused("format", "", "one of", NULL);
  refused("label", NULL, "has no value", "a text", NULL);
  refused("inputs", "", "a path or a list of paths", NULL);
}

static void test_unknown_names_get_the_nearest(void **state) {
  (void)state;
  refused("formatt", "csv", "no option 'formatt'", "did you mean 'format'", NULL);
  refused("roll.sise", "1MiB", "'roll.sise'", "'roll.size'", NULL);
  refused("zzzzzzzz", "1", "no option 'zzzzzzzz'", "the known ones are path, format",
          NULL);
}

static void test_twice_and_missing(void **state) {
  (void)state;
  weir_options *options = NULL;
  weir_error err = {0};
  refused("path", "y", "'path'", "twice", NULL);
  const struct pair both[] = {
      {"path", "x"}, {"schema", "infer"}, {"schema.a", "int64"}, {NULL, NULL}};
  assert_int_equal(try_options(both, NULL, &options, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "twice"));
  const struct pair none[] = {{NULL, NULL}};
  assert_int_equal(try_options(none, NULL, &options, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "sink lake, option 'path': is missing"));
  assert_non_null(strstr(err.message, "Where to."));
  assert_null(options);
}

static void test_a_bad_default_is_a_bug_of_the_table(void **state) {
  (void)state;
  static const weir_option bad[] = {{"n", WEIR_OPT_INT, 0, "x", 0, 0, NULL, "."}, {0}};
  weir_options *options = NULL;
  weir_error err = {0};
  assert_int_equal(weir_options_new(bad, "sink s", NULL, NULL, 0, NULL, &options, &err),
                   WEIR_E_INTERNAL);
  assert_non_null(strstr(err.message, "'n'"));
}

static void test_the_hosts_locale_does_not_matter(void **state) {
  (void)state;
  const char *set = setlocale(LC_ALL, "de_DE.UTF-8");
  weir_options *o =
      make((const struct pair[]){{"path", "x"}, {"ratio", "0.25"}, {NULL, NULL}});
  assert_true(weir_options_float(o, "ratio") == 0.25);
  weir_options_free(o);
  if (set) setlocale(LC_ALL, "C");
}

/* ---- secrets
 * --------------------------------------------------------------------------------- */

static void write_file(const char *path, const void *data, size_t size, mode_t mode) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chmod(path, mode), 0);
}

static void test_secret_files_are_read(void **state) {
  const char *dir = *state;
  char path[200];
  weir_error err = {0};
  weir_options *o = NULL;
  snprintf(path, sizeof(path), "%s/pw", dir);
  write_file(path, "s3cret\n", 7, 0600);
  const struct pair pairs[] = {{"path", "x"},
                               {"password", "file:pw"},
                               {"properties.k", "file:./pw"},
                               {NULL, NULL}};
  if (try_options(pairs, dir, &o, &err)) fail_msg("%s", err.message);
  assert_string_equal(weir_options_string(o, "password"), "s3cret");
  assert_string_equal(weir_options_item(o, "properties", 0), "s3cret");
  assert_int_equal(config_options_notes(o), 0);
  weir_options_free(o);

  write_file(path, "s3cret", 6, 0644);
  if (try_options(pairs, dir, &o, &err)) fail_msg("%s", err.message);
  assert_string_equal(weir_options_string(o, "password"), "s3cret");
  assert_int_equal(config_options_notes(o), 2);
  assert_non_null(strstr(config_options_note(o, 0), "sink lake"));
  assert_non_null(strstr(config_options_note(o, 0), "0644"));
  assert_null(strstr(config_options_note(o, 0), "s3cret"));
  weir_options_free(o);
}

static void test_unusable_secret_files_are_refused(void **state) {
  const char *dir = *state;
  char path[200], big[CONFIG_MAX_SECRET + 1];
  weir_error err = {0};
  weir_options *o = NULL;
  const struct pair missing[] = {{"path", "x"}, {"password", "file:none"}, {NULL, NULL}};
  assert_int_equal(try_options(missing, dir, &o, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "'password'"));
  assert_non_null(strstr(err.message, "none"));
  snprintf(path, sizeof(path), "%s/none", dir);
  memset(big, 'x', sizeof(big));
  write_file(path, big, sizeof(big), 0600);
  assert_int_equal(try_options(missing, dir, &o, &err), WEIR_E_INVALID_CONFIG);
  write_file(path, "a\0b", 3, 0600);
  assert_int_equal(try_options(missing, dir, &o, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "NUL"));
  const struct pair folder[] = {{"path", "x"}, {"password", "file:."}, {NULL, NULL}};
  assert_int_equal(try_options(folder, dir, &o, &err), WEIR_E_INVALID_CONFIG);
  assert_null(o);
}

static void test_dump_hides_secrets(void **state) {
  (void)state;
  base_buf out = {0};
  weir_options *o = make((const struct pair[]){{"path", "out"},
                                               {"password", "hunter2"},
                                               {"properties.user", "hunter3"},
                                               {"columns", "x"},
                                               {"roll.size", "1048576"},
                                               {NULL, NULL}});
  assert_int_equal(config_options_dump(o, &out, NULL), WEIR_OK);
  base_buf_terminate(&out, NULL);
  const char *text = (const char *)out.data;
  assert_null(strstr(text, "hunter"));
  assert_non_null(strstr(text, "  path: /base/out\n"));
  assert_non_null(strstr(text, "  password: (secret)\n"));
  assert_non_null(strstr(text, "  properties: {user: (secret)}\n"));
  assert_non_null(strstr(text, "  columns: [x]\n"));
  assert_non_null(strstr(text, "  roll.size: 1MiB\n"));
  assert_non_null(strstr(text, "  wait: 250ms (default)\n"));
  assert_null(strstr(text, "label"));
  base_buf_done(&out);
  weir_options_free(o);
}

static int make_dir(void **state) {
  static char dir[64];
  snprintf(dir, sizeof(dir), "/tmp/weir-options-XXXXXX");
  *state = mkdtemp(dir);
  return *state ? 0 : -1;
}

static int remove_dir(void **state) {
  char path[200];
  snprintf(path, sizeof(path), "%s/pw", (const char *)*state);
  unlink(path);
  snprintf(path, sizeof(path), "%s/none", (const char *)*state);
  unlink(path);
  return rmdir(*state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_given_values),
      cmocka_unit_test(test_wrong_values_say_what_was_expected),
      cmocka_unit_test(test_unknown_names_get_the_nearest),
      cmocka_unit_test(test_twice_and_missing),
      cmocka_unit_test(test_a_bad_default_is_a_bug_of_the_table),
      cmocka_unit_test(test_the_hosts_locale_does_not_matter),
      cmocka_unit_test_setup_teardown(test_secret_files_are_read, make_dir, remove_dir),
      cmocka_unit_test_setup_teardown(test_unusable_secret_files_are_refused, make_dir,
                                      remove_dir),
      cmocka_unit_test(test_dump_hides_secrets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
