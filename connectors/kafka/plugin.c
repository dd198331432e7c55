/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka.h"

extern const weir_sink_ops weir_kafka_sink_ops;

static const weir_sink_ops *const sinks[] = {&weir_kafka_sink_ops};
static const weir_source_ops *const sources[] = {&weir_kafka_source_ops};

weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host, weir_plugin *out,
                             weir_error *err) {
  (void)host;
  if (host_abi < 1)
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0, "needs ABI 1 of weir");
  out->sinks = sinks;
  out->n_sinks = 1;
  out->sources = sources;
  out->n_sources = 1;
  return WEIR_OK;
}
