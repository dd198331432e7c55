/* SPDX-License-Identifier: Apache-2.0 */
/* The target before the first session: looked at, made where the configuration asks for it, claimed. */
#ifndef CONNECTORS_POSTGRES_PREPARE_H
#define CONNECTORS_POSTGRES_PREPARE_H

#include <weir/txn_sink.h>

/* Name of connections that pass by; not that of sessions, which a take-over ends. */
#define PG_PASSING "weir"

weir_status pg_resolve(void *config, const weir_call *call, const weir_namespace *ns,
                       weir_schema *input, weir_binding *out, weir_error *err);
weir_status pg_prepare(void *config, const weir_call *call, const weir_namespace *ns,
                       weir_binding *binding, weir_error *err);

#endif
