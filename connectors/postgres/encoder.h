/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to COPY's binary format (PostgreSQL's manual, COPY, "Binary Format"), in pieces. */
#ifndef CONNECTORS_POSTGRES_ENCODER_H
#define CONNECTORS_POSTGRES_ENCODER_H

#include <weir/batch.h>

#include "types.h"

typedef struct pg_encoder pg_encoder;

/* For batches of `schema`, whose i-th column is written as types[i]. `numbered`: behind them comes a bigint that
 * counts the rows of all batches. Keeps a reference to `schema`. WEIR_E_SCHEMA names a column that cannot go into
 * its type. */
weir_status pg_encoder_new(weir_schema *schema, const pg_type *types, bool numbered,
                           pg_encoder **out, weir_error *err);
void pg_encoder_free(pg_encoder *encoder); /* NULL is a no-op */

/* Takes a batch on, borrowed until it is over. A value that cannot be put is bad data with row and column,
 * found before anything is written. */
weir_status pg_encoder_start(pg_encoder *encoder, weir_batch *batch, weir_error *err);

/* The next piece, valid until the next call; size 0: the batch is over. */
weir_status pg_encoder_next(pg_encoder *encoder, const uint8_t **data, size_t *size,
                            weir_error *err);

/* What stands before the first row of a stream and behind the last. */
extern const uint8_t pg_copy_head[19], pg_copy_tail[2];

#endif
