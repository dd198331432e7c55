/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that a file source sets aside: each once, with all the others, whatever the blocks and wherever it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/file/source.h"
#include "base/base.h"
#include "connector/connector.h"
#include "support/rows.h"
#include "support/source_rig.h"

typedef struct reading {
  connector_host *host;
  weir_source_ops ops;
  connector_spec *spec;
  connector_source *source;
  weir_call call;
  base_buf rows, letters; /* as NDJSON */
  weir_error err;
} reading;

#define OK(r, call_)                                         \
  do {                                                       \
    if (call_) fail_msg("%s: %s", #call_, (r)->err.message); \
  } while (0)

static void begin(reading *r, const char *pattern, const char *name, const char *value,
                  const weir_bytes *position) {
  const char *const *settings = source_rig_settings(pattern, name, value);
  const char *names[16], *values[16];
  weir_options *options = NULL;
  weir_source_contract contract = {0};
  weir_schema *schema = NULL;
  size_t n = 0;
  *r = (reading){0};
  for (; settings[2 * n]; n++) {
    names[n] = settings[2 * n];
    values[n] = settings[2 * n + 1];
  }
  r->host = connector_host_new(NULL, &r->err);
  OK(r, connector_fill_source(&weir_file_source_ops, NULL, &r->ops, &r->err));
  OK(r, weir_options_new(r->ops.options, "source in", names, values, n, NULL, &options,
                         &r->err));
  OK(r, connector_spec_new_source(&r->ops, r->host, options, &r->spec, &r->err));
  OK(r, connector_source_new(r->spec, 1, &r->source, &r->err));
  OK(r, connector_source_contract(r->source, &contract, &r->err));
  OK(r, connector_source_set_aside(r->source, &r->err));
  connector_call_arm(&r->call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  OK(r, connector_source_resolve_schema(r->source, &r->call, &schema, &r->err));
  weir_schema_unref(schema);
  OK(r, connector_source_open(r->source, &r->call, position, &r->err));
}

static void add(base_buf *to, weir_batch *batch) {
  char *text = batch ? rows_text(batch) : NULL;
  if (text) assert_int_equal(base_buf_append_str(to, text, NULL), WEIR_OK);
  free(text);
  weir_batch_unref(batch);
}

/* Reads `n` times or to the end; false: it failed. */
static bool go_on(reading *r, int n) {
  int32_t what = 0;
  while (n-- > 0 && what != WEIR_READ_END) {
    weir_batch *batch = NULL, *letters = NULL;
    if (connector_source_read(r->source, &r->call, &what, &batch, &letters, &r->err))
      return false;
    add(&r->rows, batch);
    add(&r->letters, letters);
  }
  return true;
}

static void end(reading *r) {
  connector_source_unref(r->source);
  connector_spec_unref(r->spec);
  connector_host_unref(r->host);
  base_buf_done(&r->rows);
  base_buf_done(&r->letters);
}

static const char *text_of(base_buf *buf) {
  assert_int_equal(base_buf_terminate(buf, NULL), WEIR_OK);
  return (const char *)buf->data;
}

static size_t count(base_buf *buf, const char *what) {
  size_t n = 0;
  for (const char *at = text_of(buf); (at = strstr(at, what)) != NULL; at++) n++;
  return n;
}

static void test_a_letter(void **state) {
  (void)state;
  reading r;
  folder_put(source_rig_folder, "a.ndjson",
             "{\"id\":1}\n\n{\"id\":\"x\",\"name\":\"n\"}\r\n{\"id\":\xff\n{\"id\":2}");
  begin(&r, "*.ndjson", NULL, NULL, NULL);
  assert_true(go_on(&r, 100));
  assert_string_equal(text_of(&r.rows),
                      "{\"id\":1,\"name\":null}\n{\"id\":2,\"name\":null}\n");
  char want[2000];
  snprintf(want, sizeof(want),
           "{\"kind\":\"source\",\"name\":\"in\",\"part\":\"%s/a.ndjson\",\"offset\":10,"
           "\"line\":3,\"column\":\"id\",\"reason\":\"line 3, byte 17: column 'id'",
           source_rig_folder);
  assert_memory_equal(text_of(&r.letters), want, strlen(want));
  assert_non_null(strstr(text_of(&r.letters),
                         "\"text\":\"{\\\"id\\\":\\\"x\\\",\\\"name\\\":\\\"n\\\"}\","
                         "\"bytes\":null}\n"));
  /* base64 of {"id": and the byte that is no UTF-8 */
  assert_non_null(
      strstr(text_of(&r.letters), "\"text\":null,\"bytes\":\"eyJpZCI6/w==\"}\n"));
  assert_int_equal(count(&r.letters, "\n"), 2);
  end(&r);
}

static void test_csv_goes_on_with_the_next_record(void **state) {
  (void)state;
  reading r;
  folder_put(
      source_rig_folder, "a.csv",
      "id,name\r\n1,a\r\n\"x\",\"two\r\nlines\"\r\n2,b,c\r\n3,\"d\"\"\"\r\n4\r\n5,a\"b"
      "\r\n6,\"e\"f\r\n7,g");
  begin(&r, "*.csv", NULL, NULL, NULL);
  assert_true(go_on(&r, 100));
  assert_string_equal(text_of(&r.rows),
                      "{\"id\":1,\"name\":\"a\"}\n{\"id\":3,\"name\":\"d\\\"\"}\n"
                      "{\"id\":7,\"name\":\"g\"}\n");
  assert_int_equal(count(&r.letters, "\n"), 5);
  assert_non_null(strstr(text_of(&r.letters), "\"offset\":14,\"line\":3,"));
  assert_non_null(
      strstr(text_of(&r.letters), "\"text\":\"\\\"x\\\",\\\"two\\r\\nlines\\\"\""));
  assert_non_null(strstr(text_of(&r.letters), "\"line\":5,"));
  assert_non_null(strstr(text_of(&r.letters), "\"text\":\"2,b,c\""));
  assert_non_null(strstr(text_of(&r.letters), "\"text\":\"6,\\\"e\\\"f\""));
  end(&r);
}

/* What leaves no next row to go on with. */
static void test_broken_framing_stays_an_error(void **state) {
  (void)state;
  reading r;
  char longer[5000];
  memset(longer, 'x', sizeof(longer));
  longer[sizeof(longer) - 2] = '\n';
  longer[sizeof(longer) - 1] = 0;
  folder_put(source_rig_folder, "a.csv", "id,name\nx,a\n1,\"b\n2,c\n");
  folder_put(source_rig_folder, "b.csv", "id,other\n1,a\n");
  folder_put(source_rig_folder, "c.ndjson", longer);
  folder_put(source_rig_folder, "d.csv.gz", "no gzip");
  static const char *const patterns[] = {"a.csv", "b.csv", "c.ndjson", "d.csv.gz"},
                           *const says[] = {"never closed", "lacks column 'name'",
                                            "longer than the 2048", "gzip"};
  for (size_t i = 0; i < BASE_COUNT(patterns); i++) {
    begin(&r, patterns[i], "max_line", "2048", NULL);
    assert_false(go_on(&r, 100));
    assert_non_null(strstr(r.err.message, says[i]));
    /* what was set aside by the read that failed is not told */
    assert_int_equal(r.letters.size, 0);
    end(&r);
  }
}

static bool is_bad(int i) {
  return i % 5 == 2 || (i > 40 && i < 60);
}

/* Row i as it stands in its file. */
static void row_text(int i, bool csv, char out[80]) {
  if (csv && is_bad(i))
    snprintf(out, 80, "bad %d,\"a\nb\"\n", i);
  else if (csv)
    snprintf(out, 80, "%d,n\n", i);
  else if (is_bad(i))
    snprintf(out, 80, "{\"id\":\"bad %d,\"}\n", i);
  else
    snprintf(out, 80, "{\"id\":%d,\"name\":\"n\"}\n\n", i);
}

static void put_rows(const char *name, int first, int n, bool csv) {
  base_buf text = {0};
  if (csv) assert_int_equal(base_buf_append_str(&text, "id,name\n", NULL), WEIR_OK);
  for (int i = first; i < first + n; i++) {
    char row[80];
    row_text(i, csv, row);
    assert_int_equal(base_buf_append_str(&text, row, NULL), WEIR_OK);
  }
  folder_put(source_rig_folder, name, text_of(&text));
  base_buf_done(&text);
}

/* Every read begins anew from the position before, which is as good as a kill at any moment. */
static void check_every_position(const char *pattern, size_t block) {
  weir_bytes position = {0};
  base_buf good = {0}, bad = {0};
  file_reader_set_block(block);
  for (bool done = false; !done;) {
    reading r;
    weir_bytes next = {0};
    begin(&r, pattern, NULL, NULL, &position);
    assert_true(go_on(&r, 1));
    OK(&r, connector_source_position(r.source, &next, &r.err));
    done = connector_source_state_of(r.source) == CONNECTOR_SOURCE_ENDED;
    assert_int_equal(base_buf_append_str(&good, text_of(&r.rows), NULL), WEIR_OK);
    assert_int_equal(base_buf_append_str(&bad, text_of(&r.letters), NULL), WEIR_OK);
    weir_bytes_release(&position);
    position = next;
    end(&r);
  }
  file_reader_set_block(SOURCE_RIG_BLOCK);
  weir_bytes_release(&position);
  for (int i = 0; i < 200; i++) {
    char as_row[40], as_bad[40];
    snprintf(as_row, sizeof(as_row), "{\"id\":%d,", i);
    snprintf(as_bad, sizeof(as_bad), "bad %d,", i);
    assert_int_equal(count(&good, as_row), !is_bad(i));
    /* once as the row, once more in the excerpt of the reason */
    assert_int_equal(count(&bad, as_bad), is_bad(i) ? 2 : 0);
  }
  base_buf_done(&good);
  base_buf_done(&bad);
}

static void test_each_row_once_from_every_position(void **state) {
  (void)state;
  put_rows("a.ndjson", 0, 100, false);
  put_rows("b.ndjson", 100, 100, false);
  put_rows("a.csv", 0, 100, true);
  put_rows("b.csv", 100, 100, true);
  static const size_t blocks[] = {40, 150, SOURCE_RIG_BLOCK};
  for (size_t b = 0; b < BASE_COUNT(blocks); b++) {
    check_every_position("*.ndjson", blocks[b]);
    check_every_position("*.csv", blocks[b]);
  }
}

/* A file of bad rows alone is no end of memory: it comes in pieces. */
static void test_bad_rows_come_in_bounded_pieces(void **state) {
  (void)state;
  enum { ROWS = 20000 };
  base_buf text = {0};
  reading r;
  for (int i = 0; i < ROWS; i++)
    assert_int_equal(base_buf_printf(&text, NULL, "no row %d\n", i), WEIR_OK);
  assert_int_equal(base_buf_terminate(&text, NULL), WEIR_OK);
  folder_put(source_rig_folder, "a.ndjson", (const char *)text.data);
  begin(&r, "*.ndjson", NULL, NULL, NULL);
  int64_t all = 0;
  for (int32_t what = 0; what != WEIR_READ_END;) {
    weir_batch *batch = NULL, *letters = NULL;
    OK(&r, connector_source_read(r.source, &r.call, &what, &batch, &letters, &r.err));
    assert_null(batch);
    if (!letters) continue;
    assert_true(weir_batch_rows(letters) <= 8192);
    all += weir_batch_rows(letters);
    weir_batch_unref(letters);
  }
  assert_int_equal(all, ROWS);
  base_buf_done(&text);
  end(&r);
}

static void test_letters_alone(void **state) {
  (void)state;
  weir_error err = {0};
  connector_letters *letters = NULL;
  weir_batch *batch = NULL;
  weir_bad_row row = {.struct_size = sizeof(row),
                      .data = "r",
                      .size = 1,
                      .part = "caf\xe9/\xc3\xa9",
                      .offset = -1,
                      .line = -1};
  assert_int_equal(connector_letters_new("sink lake", &letters, &err), WEIR_OK);
  assert_int_equal(connector_letters_take(letters, &batch, &err), WEIR_OK);
  assert_null(batch);
  assert_int_equal(connector_letters_add(letters, &row, &err), WEIR_OK);
  connector_letters_drop(letters);
  assert_int_equal(connector_letters_add(letters, &row, &err), WEIR_OK);
  assert_int_equal(connector_letters_take(letters, &batch, &err), WEIR_OK);
  char *text = rows_text(batch);
  assert_string_equal(
      text,
      "{\"kind\":\"sink\",\"name\":\"lake\",\"part\":\"caf\xef\xbf\xbd/"
      "\xef\xbf\xbd\xef\xbf\xbd\","
      "\"offset\":null,\"line\":null,\"column\":null,\"reason\":\"no reason told\","
      "\"text\":\"r\",\"bytes\":null}\n");
  free(text);
  weir_batch_unref(batch);
  connector_letters_free(letters);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_a_letter),
      IN_FOLDER(test_csv_goes_on_with_the_next_record),
      IN_FOLDER(test_broken_framing_stays_an_error),
      IN_FOLDER(test_each_row_once_from_every_position),
      IN_FOLDER(test_bad_rows_come_in_bounded_pieces),
      cmocka_unit_test(test_letters_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
