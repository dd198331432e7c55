/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a table asks of those who append to it: protocol versions and table features (PROTOCOL.md, sections "Table
 * Features", "Requirements for Writers", "Valid Feature Names in Table Features"). Whatever is not known to be kept is
 * refused by name.
 */
#ifndef CONNECTORS_DELTA_FEATURES_H
#define CONNECTORS_DELTA_FEATURES_H

#include "action.h"

enum { DELTA_MAPPING_NONE = 0, DELTA_MAPPING_NAME = 1, DELTA_MAPPING_ID = 2 };

typedef struct delta_features {
  int mapping;               /* DELTA_MAPPING_*: how files name the columns */
  bool timestamp_ntz;        /* such columns may be there */
  bool in_commit_timestamps; /* each commit must carry one */
  bool v2_checkpoints;       /* multi-part checkpoints are forbidden */
  /* these may stand in a column's metadata, and then bind writers; schema.h refuses such columns */
  bool invariants, generated, identity, defaults;
} delta_features;

/* WEIR_E_NOT_IMPLEMENTED names the version or the feature that keeps weir from appending; WEIR_E_CORRUPT a property
 * that makes no sense. `where` names the table. */
weir_status delta_features_read(const delta_protocol *protocol,
                                const delta_metadata *metadata, const char *where,
                                delta_features *out, weir_error *err);

/* Whether the protocol has the writer feature, by its list or by a version that implies it. */
bool delta_features_writer(const delta_protocol *protocol, const char *name);

#endif
