/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object stores (<weir/object.h>): the checks before every verb, and the store in a local folder. The S3 store is
 * a shared object of its own, src/object/s3; the room connector finds it.
 */
#ifndef OBJECT_OBJECT_H
#define OBJECT_OBJECT_H

#include <weir/object.h>

#include "base/base.h"

/* The store in a folder, which need not be there. */
extern const weir_object_ops object_local_ops;

/* Opens a store of that table; `rest` is the location without its scheme. */
weir_status object_store_new(const weir_object_ops *ops, const char *location,
                             const char *rest, const weir_options *options,
                             weir_object_store **out, weir_error *err);

/* Refuses a table that lacks an entry, by its name; `where` is who gave it. */
weir_status object_ops_check(const weir_object_ops *ops, const char *where,
                             weir_error *err);

#endif
