/* SPDX-License-Identifier: Apache-2.0 */
/* Which tables weir may append to, and what it says of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/delta/features.h"

enum { MANY = 20 };

/* A protocol and a metadata whose lists are given as "a,b" and "key=value,key=value". */
typedef struct table {
  delta_text features[MANY];
  delta_pair properties[MANY];
  delta_protocol protocol;
  delta_metadata metadata;
} table;

static size_t split(const char *list, delta_text *out) {
  size_t n = 0;
  while (list && *list) {
    size_t length = strcspn(list, ",");
    assert_true(n < MANY);
    out[n++] = (delta_text){list, length};
    list += length + (list[length] != 0);
  }
  return n;
}

static void make(table *t, int32_t reader, int32_t writer, const char *features,
                 const char *properties) {
  memset(t, 0, sizeof(*t));
  size_t n = split(features, t->features);
  t->protocol.reader = reader;
  t->protocol.writer = writer;
  if (features) t->protocol.writer_features = (delta_texts){t->features, n, true};
  if (features && reader == 3)
    t->protocol.reader_features = (delta_texts){t->features, 0, true};
  delta_text both[MANY];
  n = split(properties, both);
  for (size_t i = 0; i < n; i++) {
    const char *is = memchr(both[i].p, '=', both[i].n);
    assert_non_null(is);
    size_t length = (size_t)(is - both[i].p);
    t->properties[i].key = (delta_text){both[i].p, length};
    t->properties[i].value = (delta_text){is + 1, both[i].n - length - 1};
  }
  t->metadata.provider = (delta_text){"parquet", 7};
  t->metadata.configuration = (delta_pairs){t->properties, n, true};
}

static delta_features read_good(int32_t reader, int32_t writer, const char *features,
                                const char *properties) {
  table t;
  delta_features out = {0};
  weir_error err = {0};
  make(&t, reader, writer, features, properties);
  if (delta_features_read(&t.protocol, &t.metadata, "table", &out, &err))
    fail_msg("%s", err.message);
  return out;
}

static void read_bad(int32_t reader, int32_t writer, const char *features,
                     const char *properties, const char *says) {
  table t;
  delta_features out = {0};
  weir_error err = {0};
  make(&t, reader, writer, features, properties);
  weir_status status = delta_features_read(&t.protocol, &t.metadata, "table", &out, &err);
  if (status == WEIR_OK || !strstr(err.message, says))
    fail_msg("expected '%s', got %d '%s'", says, (int)status, err.message);
}

static void versions_imply_features(void **state) {
  (void)state;
  delta_features f = read_good(1, 1, NULL, "");
  assert_false(f.invariants);
  f = read_good(1, 2, NULL, "");
  assert_true(f.invariants);
  assert_false(f.generated);
  f = read_good(1, 4, NULL, "");
  assert_true(f.generated);
  assert_false(f.identity);
  f = read_good(2, 6, NULL, "");
  assert_true(f.identity);
  assert_false(f.timestamp_ntz);
  f = read_good(1, 7, "", ""); /* at version 7 the list alone counts */
  assert_false(f.invariants);
  f = read_good(3, 7, "timestampNtz,v2Checkpoint,invariants,allowColumnDefaults", "");
  assert_true(f.timestamp_ntz && f.v2_checkpoints && f.invariants && f.defaults);
}

static void features_that_an_append_keeps_are_taken(void **state) {
  (void)state;
  read_good(
      3, 7,
      "appendOnly,changeDataFeed,deletionVectors,domainMetadata,vacuumProtocolCheck,"
      "typeWidening",
      "delta.appendOnly=true,delta.enableChangeDataFeed=true");
}

static void in_commit_timestamps_need_feature_and_property(void **state) {
  (void)state;
  assert_true(read_good(1, 7, "inCommitTimestamp", "delta.enableInCommitTimestamps=true")
                  .in_commit_timestamps);
  assert_false(read_good(1, 7, "inCommitTimestamp", "").in_commit_timestamps);
  assert_false(
      read_good(1, 7, "", "delta.enableInCommitTimestamps=true").in_commit_timestamps);
}

static void column_mapping_counts_where_it_is_supported(void **state) {
  (void)state;
  const char *name = "delta.columnMapping.mode=name";
  assert_int_equal(read_good(2, 5, NULL, name).mapping, DELTA_MAPPING_NAME);
  assert_int_equal(read_good(1, 4, NULL, name).mapping, DELTA_MAPPING_NONE);
  assert_int_equal(read_good(2, 7, "columnMapping", name).mapping, DELTA_MAPPING_NAME);
  assert_int_equal(read_good(3, 7, "", name).mapping, DELTA_MAPPING_NONE);
  assert_int_equal(read_good(2, 5, NULL, "delta.columnMapping.mode=id").mapping,
                   DELTA_MAPPING_ID);
  assert_int_equal(read_good(2, 5, NULL, "delta.columnMapping.mode=none").mapping,
                   DELTA_MAPPING_NONE);
  read_bad(2, 5, NULL, "delta.columnMapping.mode=odd", "columnMapping.mode 'odd'");
}

static void what_is_unknown_is_refused_by_name(void **state) {
  (void)state;
  read_bad(4, 7, "", "", "reader version 4");
  read_bad(1, 8, "", "", "writer version 8");
  read_bad(3, 7, NULL, "", "without the lists");
  read_bad(3, 6, "", "", "without the lists");
  read_bad(1, 7, NULL, "", "without the lists");
  read_bad(1, 7, "appendOnly,rowTracking", "", "writer feature 'rowTracking'");
  read_bad(1, 7, "icebergCompatV2", "", "'icebergCompatV2'");
  read_bad(1, 7, "catalogManaged", "", "'catalogManaged'");
  read_bad(1, 3, NULL, "delta.constraints.birth=a > 1", "CHECK constraint 'birth'");
  read_good(1, 2, NULL, "delta.constraints.birth=a > 1"); /* means nothing at version 2 */
  table t;
  delta_features out;
  weir_error err = {0};
  make(&t, 1, 2, NULL, "");
  t.metadata.provider = (delta_text){"orc", 3};
  assert_int_equal(delta_features_read(&t.protocol, &t.metadata, "table", &out, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "'orc'"));
  delta_text odd = {"oddReader", 9};
  make(&t, 3, 7, "", "");
  t.protocol.reader_features = (delta_texts){&odd, 1, true};
  assert_int_equal(delta_features_read(&t.protocol, &t.metadata, "table", &out, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "reader feature 'oddReader'"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(versions_imply_features),
      cmocka_unit_test(features_that_an_append_keeps_are_taken),
      cmocka_unit_test(in_commit_timestamps_need_feature_and_property),
      cmocka_unit_test(column_mapping_counts_where_it_is_supported),
      cmocka_unit_test(what_is_unknown_is_refused_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
