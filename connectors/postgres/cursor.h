/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table weir_cursor in the target's schema: a row for each deployment, which is its claim and its cursor. Rows
 * are never removed; of those of one pipeline and sink the one with the highest claim owns the target.
 */
#ifndef CONNECTORS_POSTGRES_CURSOR_H
#define CONNECTORS_POSTGRES_CURSOR_H

#include <weir/cursor.h>

#include "conn.h"
#include "target.h"

/* One after the other with whoever else prepares in this database, until the transaction ends. */
weir_status pg_cursor_alone(pg_conn *c, const weir_call *call, weir_error *err);

/* WEIR_E_NOT_FOUND: there is no such table; the message has the DDL to make it. */
weir_status pg_cursor_table(pg_conn *c, const weir_call *call, const pg_config *config,
                            weir_error *err);
weir_status pg_cursor_create(pg_conn *c, const weir_call *call, const pg_config *config,
                             weir_error *err);

/* Asks weir_claim_start; `append`: with its row made, in the open transaction. */
weir_status pg_cursor_claim(pg_conn *c, const weir_call *call, const pg_config *config,
                            const weir_namespace *ns, bool append, weir_error *err);
weir_status pg_cursor_check_claim(pg_conn *c, const weir_call *call,
                                  const pg_config *config, const weir_namespace *ns,
                                  weir_error *err);

/* `lock`: once whoever has the row locked is done. Checkpoint 0: none. */
weir_status pg_cursor_read(pg_conn *c, const weir_call *call, const pg_config *config,
                           const weir_namespace *ns, bool lock, weir_cursor *out,
                           weir_error *err);
weir_status pg_cursor_find(pg_conn *c, const weir_call *call, const pg_config *config,
                           const weir_namespace *ns, weir_cursor_list *out,
                           weir_error *err);

/* Locks and writes the row, so that nothing is left that could keep the commit from doing so, compares the
 * target's columns with `target`, and has deferred constraints checked. */
weir_status pg_cursor_prepare(pg_conn *c, const weir_call *call, const pg_config *config,
                              const weir_namespace *ns, const pg_target *target,
                              const weir_cursor *predecessor, weir_error *err);

/* Moves the cursor and commits, in one round trip, or does neither. */
weir_status pg_cursor_commit(pg_conn *c, const weir_call *call, const pg_config *config,
                             const weir_namespace *ns, const weir_cursor *predecessor,
                             const weir_cursor *cursor, const char *positions,
                             weir_error *err);

#endif
