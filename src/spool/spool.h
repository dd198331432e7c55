/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable staging of batches (<weir/spool.h>) and the adapter that makes a committable sink of a target with
 * transactions (<weir/txn_sink.h>). All that other rooms need is in these two headers.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include <weir/spool.h>
#include <weir/txn_sink.h>

#include "base/base.h"

#endif
