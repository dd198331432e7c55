/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `push` source: batches come from an embedding program through weir_input_push. The pipeline drives
 * its lanes itself, so the table only says what there is; the host replays from the position it is told.
 */
#include <stdlib.h>
#include <weir/source.h>

extern const weir_source_ops weir_push_source_ops;

static const weir_option options[] = {
    {"schema", WEIR_OPT_MAP, 0, NULL, 0, 0, NULL,
     "Columns and their types; without it the program gives the schema with its first "
     "input."},
    {"lanes", WEIR_OPT_INT, 0, "1", 1, 256, NULL,
     "Inputs of this source, one per pushing thread; order is kept within each."},
    {0}};

static weir_status push_create(const weir_host *host, weir_source *out, weir_error *err) {
  (void)host;
  (void)err;
  out->ops = &weir_push_source_ops;
  return WEIR_OK;
}

static void push_release(weir_source *source) {
  source->ops = NULL;
}

static weir_status push_contract(weir_source *source, const weir_options *opts,
                                 weir_source_contract *out, weir_error *err) {
  (void)source;
  (void)opts;
  (void)err;
  out->replay = WEIR_SOURCE_REPLAYABLE;
  return WEIR_OK;
}

static weir_status schema_of(const weir_options *opts, weir_schema **out,
                             weir_error *err) {
  size_t n = weir_options_count(opts, "schema");
  const char **names = calloc(2 * n, sizeof(*names));
  if (!names) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a schema");
  const char **types = names + n;
  for (size_t i = 0; i < n; i++) {
    names[i] = weir_options_key(opts, "schema", i);
    types[i] = weir_options_item(opts, "schema", i);
  }
  weir_status status = weir_schema_from_types(names, types, n, out, err);
  free(names);
  return status ? weir_error_prefix(err, status, "%s: schema", weir_options_where(opts))
                : WEIR_OK;
}

static weir_status push_resolve(weir_source *source, const weir_call *call,
                                const weir_options *opts, weir_schema **out,
                                weir_error *err) {
  (void)source;
  (void)call;
  if (!weir_options_count(opts, "schema"))
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: no schema; set the option `schema`, or give one with "
                          "weir_pipeline_input",
                          weir_options_where(opts));
  return schema_of(opts, out, err);
}

static weir_status host_drives(const char *what, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_INVALID_STATE, 0,
      "push source: %s: its batches come from the program that embeds weir; use "
      "another source type with the command",
      what);
}

static weir_status push_open(weir_source *source, const weir_call *call,
                             const weir_options *opts, const weir_bytes *position,
                             weir_error *err) {
  (void)source;
  (void)call;
  (void)opts;
  (void)position;
  return host_drives("open", err);
}

static weir_status push_read(weir_source *source, const weir_call *call, int32_t *what,
                             weir_batch **out, weir_error *err) {
  (void)source;
  (void)call;
  (void)what;
  (void)out;
  return host_drives("read", err);
}

static weir_status push_position(weir_source *source, weir_bytes *out, weir_error *err) {
  (void)source;
  (void)out;
  return host_drives("position", err);
}

static weir_status push_seek(weir_source *source, const weir_call *call,
                             const weir_bytes *position, weir_error *err) {
  (void)source;
  (void)call;
  (void)position;
  return host_drives("seek", err);
}

static weir_status push_close(weir_source *source, const weir_call *call,
                              weir_error *err) {
  (void)source;
  (void)call;
  (void)err;
  return WEIR_OK;
}

const weir_source_ops weir_push_source_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_source_ops),
    .name = "push",
    .text =
        "Batches that an embedding program pushes (weir_input_push); the program "
        "replays.",
    .options = options,
    .create = push_create,
    .release = push_release,
    .contract = push_contract,
    .resolve_schema = push_resolve,
    .open = push_open,
    .read = push_read,
    .position = push_position,
    .seek = push_seek,
    .close = push_close,
};
