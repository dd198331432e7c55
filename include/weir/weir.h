/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of the stable public interface. */
#ifndef WEIR_H
#define WEIR_H

#include <weir/arrow.h>
#include <weir/batch.h>
#include <weir/binding.h>
#include <weir/bytes.h>
#include <weir/call.h>
#include <weir/config.h>
#include <weir/connectors.h>
#include <weir/contract.h>
#include <weir/cursor.h>
#include <weir/error.h>
#include <weir/export.h>
#include <weir/options.h>
#include <weir/pipeline.h>
#include <weir/plugin.h>
#include <weir/sink.h>
#include <weir/source.h>
#include <weir/store.h>
#include <weir/tracker.h>

#endif
