/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "connector/inside.h"

static weir_status spec_new(const weir_sink_ops *sink, const weir_source_ops *source,
                            connector_host *host, weir_options *options,
                            connector_spec **out, weir_error *err) {
  connector_spec *spec = base_calloc(1, sizeof(*spec), err);
  if (!spec) return WEIR_E_NOMEM;
  atomic_init(&spec->refs, 1);
  spec->sink = sink;
  spec->source = source;
  spec->host = connector_host_ref(host);
  spec->options = options;
  *out = spec;
  return WEIR_OK;
}

weir_status connector_spec_new_sink(const weir_sink_ops *ops, connector_host *host,
                                    weir_options *options, connector_spec **out,
                                    weir_error *err) {
  return spec_new(ops, NULL, host, options, out, err);
}

weir_status connector_spec_new_source(const weir_source_ops *ops, connector_host *host,
                                      weir_options *options, connector_spec **out,
                                      weir_error *err) {
  return spec_new(NULL, ops, host, options, out, err);
}

connector_spec *connector_spec_ref(connector_spec *spec) {
  atomic_fetch_add(&spec->refs, 1);
  return spec;
}

void connector_spec_unref(connector_spec *spec) {
  if (!spec || atomic_fetch_sub(&spec->refs, 1) != 1) return;
  weir_options_free(spec->options);
  connector_host_unref(spec->host);
  free(spec);
}

const weir_options *connector_spec_options(const connector_spec *spec) {
  return spec->options;
}

const char *connector_spec_where(const connector_spec *spec) {
  return weir_options_where(spec->options);
}

const char *connector_spec_type(const connector_spec *spec) {
  return spec->sink ? spec->sink->name : spec->source->name;
}

const weir_source_ops *connector_spec_source(const connector_spec *spec) {
  return spec->source;
}

weir_status connector_namespace_init(connector_namespace *out, const weir_namespace *ns,
                                     weir_error *err) {
  connector_namespace copy = {.ns = *ns};
  copy.pipeline = base_strdup(ns->pipeline, err);
  copy.sink_id = copy.pipeline ? base_strdup(ns->sink_id, err) : NULL;
  if (!copy.sink_id) {
    free(copy.pipeline);
    return WEIR_E_NOMEM;
  }
  copy.ns.struct_size = sizeof(copy.ns);
  copy.ns.pipeline = copy.pipeline;
  copy.ns.sink_id = copy.sink_id;
  *out = copy;
  return WEIR_OK;
}

void connector_namespace_done(connector_namespace *ns) {
  free(ns->pipeline);
  free(ns->sink_id);
  memset(ns, 0, sizeof(*ns));
}
