/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sink `file`: data files in a folder, exactly once. The numbered steps (F1 to F16, K1 to K6) are those of
 * docs/protocol.md, section "File sink".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <weir/fault.h>
#include <weir/sink.h>

#include "audit.h"
#include "committer.h"
#include "encoder.h"
#include "json.h"
#include "staging.h"

/* Incarnations of epochs asked for and not yet over: the intent of n + 1 is asked for while n commits. */
enum { KEYS = 8 };

extern const weir_sink_ops weir_file_sink_ops;

typedef struct file_sink {
  const weir_host *host;
  const weir_namespace *ns;
  uint64_t participant;
  weir_schema *schema;
  file_place_folders folders; /* of the writer; the committer opens its own */
  file_staging staging;
  int prepared; /* pre_commit was given for the open epoch */
  file_epoch_key keys[KEYS];
  size_t next_key;
  file_committer committer;
  file_cleaner *cleaner;
} file_sink;

static const weir_option sink_options[] = {
    {"path", WEIR_OPT_PATH, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "Folder where files are published; made when it is missing. Staged files lie beside "
     "it, in `.weir`."},
    {"format", WEIR_OPT_ENUM, 0, "parquet", 0, 0, "parquet|arrow|ndjson|csv",
     "Format of the files."},
    {"compression", WEIR_OPT_STRING, 0, "zstd(1)", 0, 0, NULL,
     "Codec of parquet: zstd, zstd(LEVEL), snappy, lz4, gzip, gzip(LEVEL) or none; of "
     "arrow: zstd, "
     "zstd(LEVEL), lz4 or none; ndjson and csv are written plain."},
    {"encodings", WEIR_OPT_ENUM, 0, "compatible", 0, 0, "compatible|newest",
     "Encodings of parquet: what readers of 2022 and later know, or also the newest."},
    {"effort", WEIR_OPT_ENUM, 0, "fast", 0, 0, "fast|small",
     "Effort of parquet: fast to write, or smaller files."},
    {"data_page_version", WEIR_OPT_ENUM, 0, "1", 0, 0, "1|2",
     "Version of parquet's data pages: 1 is known to every reader; 2 stores each page "
     "that "
     "does not shrink as it is."},
    {"column_encoding", WEIR_OPT_MAP, 0, NULL, 0, 0, NULL,
     "Encodings of single columns of parquet, a mapping column: plain, dictionary, "
     "delta_binary_packed, delta_length_byte_array, delta_byte_array or "
     "byte_stream_split; otherwise the data decides. Values of a nested column are named "
     "by their path, as tags.list.element."},
    {"bloom_filter", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL,
     "Columns of parquet that get a Bloom filter in each row group, for queries that "
     "look for single values: 1 % of other values pass, at most 2 MiB each. Integers, "
     "decimals, dates, times, text and bytes, not nested."},
    {"csv.header", WEIR_OPT_BOOL, 0, "true", 0, 0, NULL,
     "Each csv file begins with the columns' names."},
    {"csv.delimiter", WEIR_OPT_STRING, 0, ",", 0, 0, NULL,
     "Character between fields of csv."},
    {"csv.quote", WEIR_OPT_STRING, 0, "\"", 0, 0, NULL,
     "Character around fields of csv that need it; empty for none."},
    {"csv.null", WEIR_OPT_STRING, 0, "", 0, 0, NULL, "Text of null in csv."},
    {"roll.size", WEIR_OPT_SIZE, 0, "512MiB", 0, INT64_MAX, NULL,
     "A file of about this size is ended and the next one begun; 0 = no limit. Each "
     "epoch ends its files."},
    {"roll.rows", WEIR_OPT_INT, 0, "0", 0, INT64_MAX, NULL,
     "Rows of a file at most; 0 = no limit."},
    {"partition_by", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL,
     "Columns that name the folders below `path` in which the rows' files lie: "
     "column=value/column=value, as Hive has them. The files are without these columns."},
    {"commit_interval", WEIR_OPT_DURATION, 0, "0", 0, INT64_MAX, NULL,
     "Checkpoints are gathered that long and published as one commit; 0 = each at once. "
     "The end of a run publishes what was gathered."},
    {"shared", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL,
     "`path` and what is beside it are the same on every machine that may run the "
     "pipeline; wanted where `store` lets another machine take over."},
    {0},
};

/* ---- creation, contract, schema ----------------------------------------------------------------- */

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  file_sink *s = calloc(1, sizeof(*s));
  if (!s) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  s->host = host;
  s->committer.host = host;
  weir_status status = file_cleaner_new(&s->cleaner, err);
  if (status) {
    free(s);
    return status;
  }
  out->state = s;
  if (!out->ops) out->ops = &weir_file_sink_ops;
  return WEIR_OK;
}

static void release(weir_sink *sink) {
  file_sink *s = sink->state;
  sink->ops = NULL;
  sink->state = NULL;
  if (!s) return;
  file_staging_done(&s->staging);
  file_place_folders_done(&s->folders);
  weir_schema_unref(s->schema);
  free(s->committer.configured);
  file_cleaner_ops.unref(s->cleaner);
  free(s);
}

static weir_status bind_runtime_context(weir_sink *sink, const weir_namespace *ns,
                                        uint64_t participant_id, weir_error *err) {
  file_sink *s = sink->state;
  if (!participant_id) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "file sink: participants are numbered from 1");
  }
  s->ns = ns;
  s->participant = participant_id;
  return WEIR_OK;
}

static weir_status contract(weir_sink *sink, const weir_options *options,
                            weir_contract *out, weir_error *err) {
  file_sink *s = sink->state;
  file_encoder_config config = {0};
  const char *path = weir_options_string(options, "path");
  if (strcmp(path, "-") == 0) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: `path` must name a folder; sink type `stdout` writes to standard output",
        weir_options_where(options));
  }
  if (strstr(path, "://")) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: `path` is '%s', expected a folder of the local file system",
        weir_options_where(options), path);
  }
  FILE_TRY(file_encoder_configure(options, &config, err));
  FILE_TRY(file_cleaner_set_path(s->cleaner, path, err));
  out->consistency = WEIR_COMMITTABLE;
  out->topology = WEIR_MULTI_WRITER;
  out->input = WEIR_INPUT_APPEND;
  out->staging =
      weir_options_bool(options, "shared") ? WEIR_STAGING_SHARED : WEIR_STAGING_NODE;
  out->overlap = 1;
  out->cas_commit = 1;
  out->claims = 1;
  out->commit_interval_ns = weir_options_int(options, "commit_interval");
  return WEIR_OK;
}

static weir_status bound(const file_sink *s, const char *what, weir_error *err) {
  if (s->ns) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                        "file sink: %s before bind_runtime_context", what);
}

/* What is known of the target before it is prepared: enough to tell two sinks on one folder. */
static weir_status name_target(const char *path, weir_binding *binding, weir_error *err) {
  char *name = file_place_name(path, err);
  if (!name) return WEIR_E_NOMEM;
  weir_status status = weir_binding_identify(binding, "path", name, err);
  free(name);
  return status;
}

/* Files under two layouts cannot be read together, so the layout is part of what the target is. */
static weir_status name_layout(const file_partitions *partitions, weir_binding *binding,
                               weir_error *err) {
  if (!partitions) return WEIR_OK;
  return weir_binding_identify(binding, "partition_by", file_partitions_names(partitions),
                               err);
}

static weir_status resolve_schema(weir_sink *sink, const weir_call *call,
                                  const weir_options *options, weir_schema *input,
                                  weir_binding *out, weir_error *err) {
  file_sink *s = sink->state;
  weir_status status = WEIR_OK;
  file_encoder_config config = {0};
  file_partitions *partitions = NULL;
  const char *path = weir_options_string(options, "path");
  (void)call;
  FILE_TRY(bound(s, "resolve_schema", err));
  FILE_TRY(file_encoder_configure(options, &config, err));
  FILE_TRY(file_cleaner_set_path(s->cleaner, path, err));
  status = file_partitions_new(options, input, &partitions, err);
  if (!status)
    status = config.format->check(
        &config, partitions ? file_partitions_schema(partitions) : input, err);
  if (!status) status = file_place_check(path, s->ns, err);
  if (status) {
    weir_error_prefix(err, status, "%s", weir_options_where(options));
    goto out;
  }
  FILE_GOTO(status, weir_binding_logical(input, out, err));
  status = name_target(path, out, err);
  if (!status) status = name_layout(partitions, out, err);
  if (status) weir_binding_done(out);
out:
  file_partitions_free(partitions);
  return status;
}

/* The target's identity is the random one of its owner record. Device and inode would change with a
 * remount, a restored backup or a container's restart, the path when a tree is moved, and none of these
 * makes another target of it; a folder without its record is another target. */
static weir_status prepare_schema(weir_sink *sink, const weir_call *call,
                                  const weir_options *options, weir_binding *binding,
                                  weir_error *err) {
  file_sink *s = sink->state;
  uint8_t folder[WEIR_INCARNATION_SIZE];
  char text[2 * WEIR_INCARNATION_SIZE + 1];
  (void)call;
  FILE_TRY(bound(s, "prepare_schema", err));
  FILE_TRY(file_cleaner_set_path(s->cleaner, weir_options_string(options, "path"), err));
  weir_status status = file_place_prepare(weir_options_string(options, "path"), s->ns,
                                          s->host, folder, err);
  if (status) return weir_error_prefix(err, status, "%s", weir_options_where(options));
  weir_hex_encode(folder, sizeof(folder), text);
  free(binding->identity); /* the path, by which resolve_schema named it */
  binding->identity = NULL;
  FILE_TRY(weir_binding_identify(binding, "folder", text, err));
  file_partitions *partitions = NULL;
  FILE_TRY(file_partitions_new(options, binding->schema, &partitions, err));
  status = name_layout(partitions, binding, err);
  file_partitions_free(partitions);
  return status;
}

static weir_status open_sink(weir_sink *sink, const weir_call *call,
                             const weir_options *options, const weir_binding *binding,
                             weir_error *err) {
  file_sink *s = sink->state;
  weir_status status = WEIR_OK;
  file_place p = {0};
  const char *path = weir_options_string(options, "path");
  (void)call;
  FILE_TRY(bound(s, "open", err));
  if (s->schema)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "file sink: opened twice");
  file_staging_done(&s->staging);
  FILE_GOTO(status, file_encoder_configure(options, &s->staging.encoder, err));
  FILE_GOTO(status,
            file_partitions_new(options, binding->schema, &s->staging.partitions, err));
  FILE_GOTO(status, file_cleaner_set_path(s->cleaner, path, err));
  FILE_GOTO(status, file_place_find(path, &p, err));
  FILE_GOTO(status, file_place_folders_open(&p, s->ns, &s->folders, err));
  s->committer.configured = file_disk_format(err, "%s", path);
  if (!s->committer.configured) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  s->schema = weir_schema_ref(binding->schema);
  s->staging.schema =
      s->staging.partitions ? file_partitions_schema(s->staging.partitions) : s->schema;
  s->staging.folder = &s->folders.staged;
  s->staging.roll_rows = (uint64_t)weir_options_int(options, "roll.rows");
  s->staging.roll_bytes = (uint64_t)weir_options_int(options, "roll.size");
out:
  file_place_done(&p);
  return status ? weir_error_prefix(err, status, "%s", weir_options_where(options))
                : WEIR_OK;
}

/* ---- epochs ------------------------------------------------------------------------------------- */

static file_epoch_key *find_key(file_sink *s, uint64_t epoch) {
  for (size_t i = 0; i < KEYS; i++) {
    if (s->keys[i].attempt == epoch) return &s->keys[i];
  }
  return NULL;
}

static weir_status need_open(const file_sink *s, uint64_t epoch, const char *what,
                             weir_error *err) {
  if (s->schema && epoch) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                        "file sink: %s of epoch %" PRIu64 " %s", what, epoch,
                        epoch ? "before open" : "which is no epoch");
}

/* Asked twice, it gives the same incarnation: the store may hold the first answer. */
static weir_status checkpoint_artifact_intent(weir_sink *sink, const weir_call *call,
                                              uint64_t epoch, weir_bytes *out,
                                              weir_error *err) {
  file_sink *s = sink->state;
  (void)call;
  FILE_TRY(need_open(s, epoch, "the intent", err));
  file_epoch_key *known = find_key(s, epoch);
  if (known) return file_intent_write(known, out, err);
  file_epoch_key key = {.attempt = epoch, .participant = s->participant};
  FILE_TRY(s->host->random(s->host->ctx, key.incarnation, sizeof(key.incarnation), err));
  FILE_TRY(file_intent_write(&key, out, err));
  s->keys[s->next_key++ % KEYS] = key;
  return WEIR_OK;
}

static weir_status begin_epoch(weir_sink *sink, const weir_call *call, uint64_t epoch,
                               weir_error *err) {
  file_sink *s = sink->state;
  (void)call;
  FILE_TRY(need_open(s, epoch, "the beginning", err));
  const file_epoch_key *key = find_key(s, epoch);
  if (!key) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "file sink: epoch %" PRIu64
        " begins without an intent, so that its files could not be found again",
        epoch);
  }
  if (s->staging.key.attempt && !s->prepared) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "file sink: epoch %" PRIu64 " begins while epoch %" PRIu64
                          " is open",
                          epoch, s->staging.key.attempt);
  }
  if (WEIR_FAULT("file.begin")) {
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "file sink: cannot begin epoch %" PRIu64, epoch);
  }
  file_staging_begin(&s->staging, key);
  s->prepared = 0;
  return WEIR_OK;
}

static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  file_sink *s = sink->state;
  uint64_t bytes = 0;
  if (!s->staging.key.attempt || s->prepared) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "file sink: a batch outside an epoch");
  }
  FILE_TRY(weir_call_check(call, "write", err));
  FILE_TRY(file_staging_write(&s->staging, batch, &bytes, err));
  out->records = (uint64_t)weir_batch_rows(batch);
  out->bytes = bytes;
  return WEIR_OK;
}

static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  file_sink *s = sink->state;
  FILE_TRY(need_open(s, 1, "the schema", err));
  return weir_schema_export(s->schema, out, err);
}

static weir_status pre_commit(weir_sink *sink, const weir_call *call, uint64_t epoch,
                              weir_bytes *out, weir_error *err) {
  file_sink *s = sink->state;
  (void)call;
  if (!epoch || s->staging.key.attempt != epoch) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "file sink: pre_commit of epoch %" PRIu64 ", but epoch %" PRIu64
                          " is open",
                          epoch, s->staging.key.attempt);
  }
  if (!s->prepared) FILE_TRY(file_staging_prepare(&s->staging, err));
  if (s->staging.done.n) {
    if (WEIR_FAULT("file.prepared")) {
      return weir_error_set(err, WEIR_E_IO, 0,
                            "file sink: cannot describe epoch %" PRIu64, epoch);
    }
    FILE_TRY(file_descriptor_write(&s->staging.key, &s->staging.done, out, err));
  }
  s->prepared = 1;
  return WEIR_OK;
}

/* Removes what this generation staged. An epoch that it does not know was begun by another one, under an
 * incarnation that stands in the store's intent: the cleaner's. */
static weir_status rollback_epoch(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                  weir_error *err) {
  file_sink *s = sink->state;
  (void)call;
  const file_epoch_key *key = epoch ? find_key(s, epoch) : NULL;
  if (!key || !s->schema) return WEIR_OK;
  if (s->staging.key.attempt == epoch) {
    file_staging_end(&s->staging);
    s->prepared = 0;
  }
  if (WEIR_FAULT("file.rollback")) {
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "file sink: cannot roll back epoch %" PRIu64, epoch);
  }
  return file_remove_staged(&s->folders, epoch, s->participant, key->incarnation, err);
}

static uint64_t suggested_write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return 60000;
}

static weir_status close_sink(weir_sink *sink, const weir_call *call, weir_error *err) {
  file_sink *s = sink->state;
  (void)call;
  (void)err;
  file_staging_end(&s->staging);
  s->prepared = 0;
  return WEIR_OK;
}

static weir_committer as_coordinated_committer(weir_sink *sink) {
  file_sink *s = sink->state;
  weir_committer none = {NULL, NULL}, committer = {&file_committer_ops, &s->committer};
  return s->committer.configured ? committer : none;
}

static weir_cleaner coordinated_abort_cleaner(weir_sink *sink) {
  file_sink *s = sink->state;
  file_cleaner_ops.ref(s->cleaner);
  return (weir_cleaner){&file_cleaner_ops, s->cleaner};
}

static weir_status verify(weir_sink *sink, const weir_call *call,
                          const weir_options *options, const weir_verify *ask,
                          weir_verified *out, weir_error *err) {
  (void)sink;
  return file_verify(weir_options_string(options, "path"), call, ask, out, err);
}

static weir_status sweep(weir_sink *sink, const weir_call *call,
                         const weir_options *options, const weir_sweep *ask,
                         weir_swept *out, weir_error *err) {
  (void)sink;
  return file_sweep(weir_options_string(options, "path"), call, ask, out, err);
}

const weir_sink_ops weir_file_sink_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_sink_ops),
    .name = "file",
    .text = "Files in a folder, each published whole, exactly once.",
    .options = sink_options,
    .create = create,
    .release = release,
    .bind_runtime_context = bind_runtime_context,
    .contract = contract,
    .resolve_schema = resolve_schema,
    .prepare_schema = prepare_schema,
    .open = open_sink,
    .write_batch = write_batch,
    .schema = schema,
    .checkpoint_artifact_intent = checkpoint_artifact_intent,
    .begin_epoch = begin_epoch,
    .pre_commit = pre_commit,
    .rollback_epoch = rollback_epoch,
    .suggested_write_timeout_ms = suggested_write_timeout_ms,
    .close = close_sink,
    .as_coordinated_committer = as_coordinated_committer,
    .coordinated_abort_cleaner = coordinated_abort_cleaner,
    .verify = verify,
    .sweep = sweep,
};
