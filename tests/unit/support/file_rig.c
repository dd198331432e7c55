/* SPDX-License-Identifier: Apache-2.0 */
#include "support/file_rig.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

void file_rig_folder(char out[256]) {
  const char *base = getenv("TMPDIR");
  /* A killed process keeps its page cache, so memory serves as well as a disk, and syncs cost nothing. */
  if (!base || !*base) base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
  snprintf(out, 256, "%s/weir-file-XXXXXX", base);
  assert_non_null(mkdtemp(out));
}

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *walk) {
  (void)info;
  (void)kind;
  (void)walk;
  return remove(path);
}

void file_rig_cleanup(const char *folder) {
  nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

weir_namespace file_rig_namespace(const char *pipeline, const char *sink,
                                  uint8_t deployment) {
  weir_namespace ns = {.struct_size = sizeof(ns), .pipeline = pipeline, .sink_id = sink};
  assert_int_equal(base_sha256(pipeline, strlen(pipeline), ns.identity, NULL), WEIR_OK);
  memset(ns.deployment, deployment, sizeof(ns.deployment));
  return ns;
}

static weir_status host_random(void *ctx, void *out, size_t size, weir_error *err) {
  (void)ctx;
  return base_random(out, size, err);
}

const weir_host *file_rig_host(void) {
  static const weir_host host = {.abi_version = WEIR_ABI_VERSION,
                                 .struct_size = sizeof(weir_host),
                                 .random = host_random};
  return &host;
}

void file_rig_init(file_rig *rig, const char *path, const char *const *names,
                   const char *const *values, size_t n) {
  const char *all_names[16] = {"path"}, *all_values[16] = {path};
  size_t n_all = 1;
  bool with_format = false;
  struct ArrowSchema schema = {0};
  weir_error err = {0};
  memset(rig, 0, sizeof(*rig));
  snprintf(rig->path, sizeof(rig->path), "%s", path);
  for (size_t i = 0; i < n; i++) {
    with_format = with_format || strcmp(names[i], "format") == 0;
    all_names[n_all] = names[i];
    all_values[n_all++] = values[i];
  }
  if (!with_format) {
    all_names[n_all] = "format";
    all_values[n_all++] = "ndjson";
  }
  if (weir_options_new(weir_file_sink_ops.options, "sink lake", all_names, all_values,
                       n_all, NULL, &rig->options, &err)) {
    fail_msg("%s", err.message);
  }
  assert_int_equal(weir_type_parse("struct<id: int64>", &schema, &err), WEIR_OK);
  assert_int_equal(weir_schema_new(&schema, &rig->schema, &err), WEIR_OK);
  rig->ns = file_rig_namespace("orders", "lake", 0x22);
  rig->participant = 1;
  rig->binding.struct_size = sizeof(rig->binding);
}

weir_status file_rig_start(file_rig *rig, weir_error *err) {
  const weir_sink_ops *ops = &weir_file_sink_ops;
  weir_contract contract = {.struct_size = sizeof(contract)};
  rig->sink.ops = ops;
  BASE_TRY(ops->create(file_rig_host(), &rig->sink, err));
  BASE_TRY(ops->contract(&rig->sink, rig->options, &contract, err));
  BASE_TRY(ops->bind_runtime_context(&rig->sink, &rig->ns, rig->participant, err));
  weir_binding_done(&rig->binding);
  BASE_TRY(ops->resolve_schema(&rig->sink, NULL, rig->options, rig->schema, &rig->binding,
                               err));
  BASE_TRY(ops->prepare_schema(&rig->sink, NULL, rig->options, &rig->binding, err));
  BASE_TRY(ops->open(&rig->sink, NULL, rig->options, &rig->binding, err));
  rig->committer = ops->as_coordinated_committer(&rig->sink);
  return WEIR_OK;
}

void file_rig_started(file_rig *rig) {
  weir_error err = {0};
  if (file_rig_start(rig, &err)) fail_msg("%s", err.message);
  assert_non_null(rig->committer.ops);
}

void file_rig_stop(file_rig *rig) {
  if (!rig->sink.ops) return;
  assert_int_equal(rig->sink.ops->close(&rig->sink, NULL, NULL), WEIR_OK);
  weir_file_sink_ops.release(&rig->sink);
  assert_null(rig->sink.ops);
}

void file_rig_done(file_rig *rig) {
  file_rig_stop(rig);
  weir_binding_done(&rig->binding);
  weir_schema_unref(rig->schema);
  weir_options_free(rig->options);
  memset(rig, 0, sizeof(*rig));
}

void file_rig_begin(file_rig *rig, uint64_t number, file_attempt *out) {
  weir_error err = {0};
  memset(out, 0, sizeof(*out));
  out->number = number;
  if (rig->sink.ops->checkpoint_artifact_intent(&rig->sink, NULL, number, &out->intent,
                                                &err) ||
      rig->sink.ops->begin_epoch(&rig->sink, NULL, number, &err)) {
    fail_msg("%s", err.message);
  }
  assert_true(out->intent.release != NULL && out->intent.size <= WEIR_MAX_INTENT);
}

static void column_release(struct ArrowArray *array) {
  if (array->n_children) {
    struct ArrowArray *child = array->children[0];
    if (child->release) child->release(child);
    free(child);
    free(array->children);
  } else {
    free((void *)(uintptr_t)array->buffers[1]);
  }
  free(array->buffers);
  array->release = NULL;
}

static weir_batch *numbers(file_rig *rig, int64_t first, int64_t n) {
  int64_t *values = calloc((size_t)n + 1, sizeof(*values));
  struct ArrowArray *child = calloc(1, sizeof(*child));
  struct ArrowArray top = {
      .length = n, .n_buffers = 1, .n_children = 1, .release = column_release};
  weir_batch *batch = NULL;
  weir_error err = {0};
  for (int64_t i = 0; i < n; i++) values[i] = first + i;
  *child = (struct ArrowArray){.length = n, .n_buffers = 2, .release = column_release};
  child->buffers = calloc(2, sizeof(void *));
  child->buffers[1] = values;
  top.buffers = calloc(1, sizeof(void *));
  top.children = calloc(1, sizeof(void *));
  top.children[0] = child;
  if (weir_batch_new(rig->schema, &top, &batch, &err)) fail_msg("%s", err.message);
  return batch;
}

weir_status file_rig_write(file_rig *rig, int64_t first, int64_t n, weir_error *err) {
  weir_write_result result = {0};
  weir_batch *batch = numbers(rig, first, n);
  weir_status status = rig->sink.ops->write_batch(&rig->sink, NULL, batch, &result, err);
  if (!status) assert_int_equal(result.records, n);
  weir_batch_unref(batch);
  return status;
}

void file_rig_prepare(file_rig *rig, uint64_t token, file_attempt *attempt) {
  weir_error err = {0};
  if (rig->sink.ops->pre_commit(&rig->sink, NULL, attempt->number, &attempt->descriptor,
                                &err)) {
    fail_msg("%s", err.message);
  }
  attempt->entry.participant_id = rig->participant;
  attempt->entry.present = attempt->descriptor.release != NULL;
  attempt->entry.descriptor = attempt->descriptor.data;
  attempt->entry.size = attempt->descriptor.size;
  attempt->attempt.entries = &attempt->entry;
  attempt->attempt.n_entries = 1;
  attempt->attempt.cursor.checkpoint = attempt->number;
  attempt->attempt.cursor.token = token;
  assert_int_equal(base_sha256(attempt->descriptor.data, attempt->descriptor.size,
                               attempt->attempt.cursor.digest, NULL),
                   WEIR_OK);
}

void file_rig_epoch(file_rig *rig, uint64_t number, uint64_t token, int64_t first,
                    int64_t n, file_attempt *out) {
  weir_error err = {0};
  file_rig_begin(rig, number, out);
  if (n && file_rig_write(rig, first, n, &err)) fail_msg("%s", err.message);
  file_rig_prepare(rig, token, out);
}

void file_attempt_done(file_attempt *attempt) {
  weir_bytes_release(&attempt->intent);
  weir_bytes_release(&attempt->descriptor);
}

weir_status file_rig_commit(file_rig *rig, const weir_cursor *predecessor,
                            file_attempt *const *attempts, size_t n, weir_cursor *out,
                            weir_error *err) {
  weir_commit_attempt list[8];
  weir_commit_batch batch = {.struct_size = sizeof(batch), .ns = &rig->ns};
  assert_true(n <= 8);
  for (size_t i = 0; i < n; i++) list[i] = attempts[i]->attempt;
  if (predecessor) batch.predecessor = *predecessor;
  batch.attempts = list;
  batch.n_attempts = n;
  batch.positions = "{\"orders\":{\"offset\":18446744073709551616123}}";
  return rig->committer.ops->commit_aggregated(rig->committer.state, NULL, &batch, out,
                                               err);
}

weir_status file_rig_clean(file_rig *rig, uint64_t number, const weir_bytes *intent,
                           weir_error *err) {
  weir_abort_entry entry = {.checkpoint = number, .participant_id = rig->participant};
  weir_abort_batch batch = {.struct_size = sizeof(batch), .ns = &rig->ns};
  weir_cleaner cleaner = rig->sink.ops->coordinated_abort_cleaner(&rig->sink);
  if (intent) {
    entry.has_intent = 1;
    entry.intent = intent->data;
    entry.size = intent->size;
  }
  batch.entries = &entry;
  batch.n_entries = 1;
  weir_status status = cleaner.ops->clean(cleaner.state, NULL, &batch, err);
  cleaner.ops->unref(cleaner.state);
  return status;
}

weir_cursor file_rig_cursor(file_rig *rig) {
  weir_cursor out = {0};
  weir_error err = {0};
  if (rig->committer.ops->observe_cursor(rig->committer.state, NULL, &rig->ns, &out,
                                         &err)) {
    fail_msg("%s", err.message);
  }
  return out;
}

static int64_t count_rows(const char *path, uint8_t *seen, int64_t n) {
  char line[64];
  int64_t rows = 0;
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  while (fgets(line, sizeof(line), file)) {
    long long id = -1;
    if (sscanf(line, "{\"id\":%lld}\n", &id) != 1 || id < 0 || id >= n ||
        !strchr(line, '\n')) {
      fail_msg("%s holds the line '%s'", path, line);
    }
    rows++;
    if (seen[id]++) fail_msg("row %lld is there twice, again in %s", id, path);
  }
  fclose(file);
  return rows;
}

/* Counts the rows of all files; a file whose row count is no multiple of `step` fails. */
static uint8_t *read_target(const char *path, int64_t n, int64_t step) {
  uint8_t *seen = calloc((size_t)n + 1, 1);
  DIR *dir = opendir(path);
  const struct dirent *entry;
  while (dir && (entry = readdir(dir))) {
    char file[1024];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (entry->d_name[0] == '.' || !base_ends_with(entry->d_name, ".ndjson")) {
      fail_msg("'%s' does not belong into %s", entry->d_name, path);
    }
    snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
    if (count_rows(file, seen, n) % step) fail_msg("%s is not whole", file);
  }
  if (dir) closedir(dir);
  return seen;
}

void file_rig_expect_rows(const char *path, int64_t n) {
  uint8_t *seen = read_target(path, n, 1);
  for (int64_t i = 0; i < n; i++) {
    if (!seen[i])
      fail_msg("row %lld of %lld is missing in %s", (long long)i, (long long)n, path);
  }
  free(seen);
}

void file_rig_expect_whole(const char *path, int64_t n, int64_t step) {
  free(read_target(path, n, step));
}

size_t file_rig_count(const char *folder) {
  size_t n = 0;
  DIR *dir = opendir(folder);
  const struct dirent *entry;
  if (!dir) return 0;
  while ((entry = readdir(dir))) {
    n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  }
  closedir(dir);
  return n;
}

void file_rig_inner(const file_rig *rig, const char *what, char out[1024]) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  const char *slash = strrchr(rig->path, '/');
  weir_namespace_key(&rig->ns, key);
  snprintf(out, 1024, "%.*s/.weir/%s/%s/%s", (int)(slash - rig->path), rig->path,
           slash + 1, key, what);
}
