/* SPDX-License-Identifier: Apache-2.0 */
/* A session at the target: one connection with its transactions; weir_txn_ops says when each comes. */
#ifndef CONNECTORS_POSTGRES_SESSION_H
#define CONNECTORS_POSTGRES_SESSION_H

#include <weir/txn_sink.h>

#include "conn.h"
#include "encoder.h"
#include "target.h"

enum { PG_APPLICATION = 64 }; /* NAMEDATALEN */

/* What the server shows as name of the sessions of a namespace. */
weir_status pg_application(const weir_namespace *ns, char out[PG_APPLICATION],
                           weir_error *err);

/* The encoder for batches of an annotated schema; of a keyed stream's, rows numbered. */
weir_status pg_encoder_for(const pg_config *config, weir_schema *schema, pg_encoder **out,
                           weir_error *err);

weir_status pg_session_open(void *config, const weir_call *call,
                            const weir_txn_place *place, void **session, weir_error *err);
void pg_session_close(void *session, const weir_call *call);
weir_status pg_session_take_over(void *session, const weir_call *call, weir_error *err);
weir_status pg_session_read_cursor(void *session, const weir_call *call, weir_cursor *out,
                                   weir_error *err);
weir_status pg_session_find_cursors(void *session, const weir_call *call,
                                    weir_cursor_list *out, weir_error *err);
weir_status pg_session_begin(void *session, const weir_call *call, weir_error *err);
weir_status pg_session_apply(void *session, const weir_call *call, weir_batch *batch,
                             weir_error *err);
weir_status pg_session_prepare(void *session, const weir_call *call,
                               const weir_cursor *predecessor, weir_error *err);
weir_status pg_session_commit(void *session, const weir_call *call,
                              const weir_txn_commit *commit, weir_error *err);
weir_status pg_session_abort(void *session, const weir_call *call, weir_error *err);

#endif
