/* SPDX-License-Identifier: Apache-2.0 */
#include "features.h"

#include <string.h>
#include <strings.h>

enum { READER_MAX = 3, WRITER_MAX = 7 };

/* What weir keeps when it appends. `since`: the writer version that implies the feature (section "Writer Version
 * Requirements"); 0: it stands in the list or is not there. */
static const struct known {
  const char *name;
  int32_t since;
} known_features[] = {
    {"appendOnly", 2}, /* an append removes nothing */
    {"invariants", 2}, /* with one: refused, schema.h */
    {"checkConstraints", 3},
    {"changeDataFeed", 4}, /* an append's changes are its files: section "Add CDC File" */
    {"generatedColumns", 4},
    {"columnMapping", 5},
    {"identityColumns", 6},
    {"allowColumnDefaults", 0},
    {"deletionVectors", 0}, /* those of other files stay as they are */
    {"timestampNtz", 0},
    {"domainMetadata", 0}, /* kept by checkpoints */
    {"v2Checkpoint", 0},
    {"inCommitTimestamp", 0},
    {"vacuumProtocolCheck", 0}, /* weir does not vacuum */
    {"typeWidening", 0}, /* files are written with the types that the schema has now */
    {"typeWidening-preview", 0},
};

static bool feature_known(delta_text name) {
  for (size_t i = 0; i < sizeof(known_features) / sizeof(known_features[0]); i++) {
    if (delta_text_is(name, known_features[i].name)) return true;
  }
  return false;
}

bool delta_features_writer(const delta_protocol *protocol, const char *name) {
  if (protocol->writer >= WRITER_MAX)
    return delta_texts_have(&protocol->writer_features, name);
  for (size_t i = 0; i < sizeof(known_features) / sizeof(known_features[0]); i++) {
    const struct known *k = &known_features[i];
    if (strcmp(k->name, name) == 0) return k->since && protocol->writer >= k->since;
  }
  return false;
}

static weir_status check_list(const delta_texts *features, const char *kind,
                              const char *where, weir_error *err) {
  for (size_t i = 0; i < features->n; i++) {
    if (feature_known(features->v[i])) continue;
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "%s has the %s feature '%.*s', which this weir does not know to "
        "keep when it appends: write it with a program that does",
        where, kind, (int)features->v[i].n, features->v[i].p);
  }
  return WEIR_OK;
}

static weir_status check_versions(const delta_protocol *protocol, const char *where,
                                  weir_error *err) {
  if (protocol->reader > READER_MAX || protocol->writer > WRITER_MAX) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s needs Delta reader version %d and writer version %d, this "
                          "weir knows %d and %d",
                          where, protocol->reader, protocol->writer, READER_MAX,
                          WRITER_MAX);
  }
  /* Section "Table Features": a list is there with its version, and readers' features are writers' too. */
  bool reader_list = protocol->reader_features.present,
       writer_list = protocol->writer_features.present;
  if ((protocol->reader == READER_MAX &&
       (!reader_list || protocol->writer < WRITER_MAX)) ||
      (protocol->writer == WRITER_MAX && !writer_list)) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s has reader version %d and writer version %d without the "
                          "lists of features that belong to them",
                          where, protocol->reader, protocol->writer);
  }
  return WEIR_OK;
}

static bool set_true(const delta_metadata *metadata, const char *key) {
  delta_text value = delta_pairs_get(&metadata->configuration, key);
  return value.p && value.n == 4 && strncasecmp(value.p, "true", 4) == 0;
}

static weir_status check_constraints(const delta_protocol *protocol,
                                     const delta_metadata *metadata, const char *where,
                                     weir_error *err) {
  static const char prefix[] = "delta.constraints.";
  if (!delta_features_writer(protocol, "checkConstraints")) return WEIR_OK;
  for (size_t i = 0; i < metadata->configuration.n; i++) {
    const delta_pair *p = &metadata->configuration.v[i];
    if (p->key.n < strlen(prefix) || memcmp(p->key.p, prefix, strlen(prefix)) != 0)
      continue;
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "%s has the CHECK constraint '%.*s' (feature checkConstraints), "
        "an SQL expression that weir cannot check",
        where, (int)(p->key.n - strlen(prefix)), p->key.p + strlen(prefix));
  }
  return WEIR_OK;
}

/* Section "Column Mapping": the property counts where the protocol supports it. */
static weir_status read_mapping(const delta_protocol *protocol,
                                const delta_metadata *metadata, const char *where,
                                int *out, weir_error *err) {
  delta_text mode = delta_pairs_get(&metadata->configuration, "delta.columnMapping.mode");
  *out = DELTA_MAPPING_NONE;
  if (!mode.p || !delta_features_writer(protocol, "columnMapping")) return WEIR_OK;
  if (delta_text_is(mode, "none")) return WEIR_OK;
  if (delta_text_is(mode, "name")) {
    *out = DELTA_MAPPING_NAME;
  } else if (delta_text_is(mode, "id")) {
    *out = DELTA_MAPPING_ID;
  } else {
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "%s has delta.columnMapping.mode '%.*s', expected none, name or "
        "id",
        where, (int)mode.n, mode.p);
  }
  return WEIR_OK;
}

weir_status delta_features_read(const delta_protocol *protocol,
                                const delta_metadata *metadata, const char *where,
                                delta_features *out, weir_error *err) {
  delta_features f = {0};
  DELTA_TRY(check_versions(protocol, where, err));
  if (protocol->reader == READER_MAX)
    DELTA_TRY(check_list(&protocol->reader_features, "reader", where, err));
  if (protocol->writer == WRITER_MAX)
    DELTA_TRY(check_list(&protocol->writer_features, "writer", where, err));
  if (!delta_text_is(metadata->provider, "parquet")) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s keeps its files as '%.*s', expected parquet", where,
                          (int)metadata->provider.n, metadata->provider.p);
  }
  DELTA_TRY(check_constraints(protocol, metadata, where, err));
  DELTA_TRY(read_mapping(protocol, metadata, where, &f.mapping, err));
  f.timestamp_ntz = delta_features_writer(protocol, "timestampNtz");
  f.v2_checkpoints = delta_features_writer(protocol, "v2Checkpoint");
  f.in_commit_timestamps = delta_features_writer(protocol, "inCommitTimestamp") &&
                           set_true(metadata, "delta.enableInCommitTimestamps");
  f.invariants = delta_features_writer(protocol, "invariants");
  f.generated = delta_features_writer(protocol, "generatedColumns");
  f.identity = delta_features_writer(protocol, "identityColumns");
  f.defaults = delta_features_writer(protocol, "allowColumnDefaults");
  *out = f;
  return WEIR_OK;
}
