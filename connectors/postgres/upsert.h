/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes by key: batches go into a temporary table of the session, and from there, the last one of each key
 * alone, into the target, all in the transaction that moves the cursor.
 */
#ifndef CONNECTORS_POSTGRES_UPSERT_H
#define CONNECTORS_POSTGRES_UPSERT_H

#include "conn.h"
#include "target.h"

#define PG_STAGE "pg_temp.weir_rows"

typedef struct pg_upsert pg_upsert;

/* Makes the temporary table. fields[i]: the target's field for column i of `schema`, -1 for _op. */
weir_status pg_upsert_new(pg_conn *c, const weir_call *call, const pg_config *config,
                          const pg_target *target, const int *fields, weir_schema *schema,
                          pg_upsert **out, weir_error *err);
void pg_upsert_free(pg_upsert *upsert); /* NULL is a no-op */

/* The rows of this batch are in the temporary table. */
void pg_upsert_note(pg_upsert *upsert, weir_batch *batch);

/* Brings those that came since the last time into the target. */
weir_status pg_upsert_merge(pg_upsert *upsert, pg_conn *c, const weir_call *call,
                            weir_error *err);

/* Whether the key is one that ON CONFLICT can find: a unique index on exactly these columns. */
weir_status pg_upsert_check_key(pg_conn *c, const weir_call *call,
                                const pg_config *config, const pg_target *target,
                                weir_error *err);

#endif
