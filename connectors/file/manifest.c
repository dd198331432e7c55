/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "partition.h"

/* ---- names and lists of data files -------------------------------------------------------------- */

void file_data_name_format(const file_data_name *name, char out[DATA_NAME_SIZE]) {
  char hex[2 * WEIR_INCARNATION_SIZE + 1];
  weir_hex_encode(name->incarnation, WEIR_INCARNATION_SIZE, hex);
  snprintf(out, DATA_NAME_SIZE, "%012" PRIu64 "-%04" PRIu64 "-%05" PRIu64 "-%s.%s",
           name->attempt, name->participant, name->index, hex, name->extension);
}

/* Digits up to `end`, which is skipped. */
static bool take_number(const char **at, char end, uint64_t *out) {
  uint64_t value = 0;
  const char *p = *at;
  for (; *p >= '0' && *p <= '9'; p++) {
    if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value)) {
      return false;
    }
  }
  if (p == *at || *p != end) return false;
  *at = p + 1;
  *out = value;
  return true;
}

bool file_data_name_parse(const char *text, file_data_name *out) {
  file_data_name name = {0};
  char again[DATA_NAME_SIZE];
  const char *at = text;
  if (strlen(text) >= DATA_NAME_SIZE) return false;
  if (!take_number(&at, '-', &name.attempt) ||
      !take_number(&at, '-', &name.participant) || !take_number(&at, '-', &name.index)) {
    return false;
  }
  const char *dot = strchr(at, '.');
  if (!dot || !file_json_hex_parse(at, (size_t)(dot - at), name.incarnation,
                                   WEIR_INCARNATION_SIZE)) {
    return false;
  }
  size_t length = strlen(dot + 1);
  if (!length || length > DATA_EXTENSION_MAX || strchr(dot, '/')) return false;
  memcpy(name.extension, dot + 1, length);
  /* One spelling only: no missing or extra zeros. */
  file_data_name_format(&name, again);
  if (strcmp(text, again) != 0) return false;
  *out = name;
  return true;
}

weir_status file_data_files_add(file_data_files *files, const file_data_file *file,
                                weir_error *err) {
  if (files->n == files->capacity) {
    size_t capacity = files->capacity ? 2 * files->capacity : 8;
    file_data_file *v = capacity < SIZE_MAX / sizeof(*v)
                            ? realloc(files->v, capacity * sizeof(*v))
                            : NULL;
    if (!v) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    files->v = v;
    files->capacity = capacity;
  }
  files->v[files->n++] = *file;
  return WEIR_OK;
}

bool file_data_files_have(const file_data_files *files, const char *name) {
  for (size_t i = 0; i < files->n; i++) {
    if (strcmp(files->v[i].name, name) == 0) return true;
  }
  return false;
}

/* As put_files writes it: a number has 20 digits at most, and no byte of a name needs an escape. */
size_t file_descriptor_bytes(const char *folder) {
  static const char rest[] = "{\"name\":\"/\",\"rows\":,\"bytes\":,\"sha256\":\"\"},";
  return sizeof(rest) + DATA_NAME_SIZE + 2 * DISK_SHA256_SIZE + 40 +
         (folder ? strlen(folder) : 0);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const file_data_file *)a)->name, ((const file_data_file *)b)->name);
}

void file_data_files_sort(file_data_files *files) {
  if (files->n) qsort(files->v, files->n, sizeof(*files->v), by_name);
}

/* Drops those from `n` on. */
static void cut_files(file_data_files *files, size_t n) {
  while (files->n > n) free(files->v[--files->n].folder);
}

void file_data_files_done(file_data_files *files) {
  cut_files(files, 0);
  free(files->v);
  memset(files, 0, sizeof(*files));
}

static bool put_name(yyjson_mut_doc *doc, yyjson_mut_val *object,
                     const file_data_file *file) {
  char text[PARTITION_FOLDER_MAX + DATA_NAME_SIZE + 1];
  snprintf(text, sizeof(text), "%s%s%s", file->folder ? file->folder : "",
           file->folder ? "/" : "", file->name);
  return yyjson_mut_obj_add_strcpy(doc, object, "name", text);
}

static bool put_files(yyjson_mut_doc *doc, yyjson_mut_val *object,
                      const file_data_file *v, size_t n, bool with_participant) {
  yyjson_mut_val *array = yyjson_mut_obj_add_arr(doc, object, "files");
  if (!array) return false;
  for (size_t i = 0; i < n; i++) {
    yyjson_mut_val *file = yyjson_mut_arr_add_obj(doc, array);
    if (!file || !put_name(doc, file, &v[i])) return false;
    if (with_participant &&
        !yyjson_mut_obj_add_uint(doc, file, "participant", v[i].participant)) {
      return false;
    }
    if (!yyjson_mut_obj_add_uint(doc, file, "rows", v[i].rows) ||
        !yyjson_mut_obj_add_uint(doc, file, "bytes", v[i].bytes) ||
        !file_json_put_hex(doc, file, "sha256", v[i].sha256, DISK_SHA256_SIZE)) {
      return false;
    }
  }
  return true;
}

/* Names must be data file names of that attempt, in `path` or in folders of partition_by below it; so no
 * record can name a path elsewhere. The caller frees out->folder. */
static weir_status get_file(const file_json_reader *r, yyjson_val *object,
                            uint64_t attempt, file_data_file *out, file_data_name *name,
                            weir_error *err) {
  const char *text = NULL;
  file_data_file file = {0};
  FILE_TRY(file_json_text(r, object, "name", PARTITION_FOLDER_MAX + DATA_NAME_SIZE, &text,
                          err));
  const char *slash = strrchr(text, '/'), *base = slash ? slash + 1 : text;
  if (!file_data_name_parse(base, name) || name->attempt != attempt ||
      (slash && !file_partition_folder_valid(text, (size_t)(slash - text)))) {
    return file_json_corrupt(r, "name", err);
  }
  memcpy(file.name, base, strlen(base) + 1);
  file.participant = name->participant;
  FILE_TRY(file_json_u64(r, object, "rows", &file.rows, err));
  FILE_TRY(file_json_u64(r, object, "bytes", &file.bytes, err));
  FILE_TRY(file_json_hex(r, object, "sha256", file.sha256, DISK_SHA256_SIZE, err));
  if (slash) {
    file.folder = file_disk_format(err, "%.*s", (int)(slash - text), text);
    if (!file.folder) return WEIR_E_NOMEM;
  }
  *out = file;
  return WEIR_OK;
}

/* Reads one and adds it. */
static weir_status add_file(const file_json_reader *r, yyjson_val *object,
                            uint64_t attempt, file_data_files *files,
                            file_data_name *name, weir_error *err) {
  file_data_file file = {0};
  FILE_TRY(get_file(r, object, attempt, &file, name, err));
  weir_status status = file_data_files_add(files, &file, err);
  if (status) free(file.folder);
  return status;
}

/* ---- intents and descriptors -------------------------------------------------------------------- */

static bool put_key(yyjson_mut_doc *doc, yyjson_mut_val *root,
                    const file_epoch_key *key) {
  return yyjson_mut_obj_add_uint(doc, root, "attempt", key->attempt) &&
         yyjson_mut_obj_add_uint(doc, root, "participant", key->participant) &&
         file_json_put_hex(doc, root, "incarnation", key->incarnation,
                           WEIR_INCARNATION_SIZE);
}

static weir_status get_key(const file_json_reader *r, yyjson_val *root,
                           file_epoch_key *out, weir_error *err) {
  FILE_TRY(file_json_u64(r, root, "attempt", &out->attempt, err));
  FILE_TRY(file_json_u64(r, root, "participant", &out->participant, err));
  return file_json_hex(r, root, "incarnation", out->incarnation, WEIR_INCARNATION_SIZE,
                       err);
}

static weir_status finish_bytes(yyjson_mut_doc *doc, bool ok, weir_bytes *out,
                                weir_error *err) {
  char *text = NULL;
  size_t size = 0;
  weir_status status = file_json_finish(doc, ok, false, &text, &size, err);
  if (!status) status = weir_bytes_copy(out, text, size, err);
  free(text);
  return status;
}

weir_status file_intent_write(const file_epoch_key *key, weir_bytes *out,
                              weir_error *err) {
  yyjson_mut_val *root = NULL;
  yyjson_mut_doc *doc = file_json_begin("file-intent", MANIFEST_VERSION, &root);
  return finish_bytes(doc, doc && put_key(doc, root, key), out, err);
}

weir_status file_intent_read(const void *data, size_t size, file_epoch_key *out,
                             weir_error *err) {
  file_json_reader r = {0};
  yyjson_val *root = NULL;
  file_epoch_key key = {0};
  FILE_TRY(file_json_open(data, size, "file-intent", MANIFEST_VERSION,
                          "the artifact intent", &r, &root, err));
  weir_status status = get_key(&r, root, &key, err);
  file_json_close(&r);
  if (!status) *out = key;
  return status;
}

weir_status file_descriptor_write(const file_epoch_key *key, const file_data_files *files,
                                  weir_bytes *out, weir_error *err) {
  yyjson_mut_val *root = NULL;
  yyjson_mut_doc *doc = file_json_begin("file-descriptor", MANIFEST_VERSION, &root);
  bool ok =
      doc && put_key(doc, root, key) && put_files(doc, root, files->v, files->n, false);
  return finish_bytes(doc, ok, out, err);
}

weir_status file_descriptor_read(const void *data, size_t size, uint64_t attempt,
                                 uint64_t participant, file_data_files *files,
                                 weir_error *err) {
  weir_status status = WEIR_OK;
  file_json_reader r = {0};
  yyjson_val *root = NULL, *array = NULL, *item;
  file_epoch_key key = {0};
  size_t before = files->n, i, n;
  uint64_t before_it = 0; /* the index of the file before */
  FILE_TRY(file_json_open(data, size, "file-descriptor", MANIFEST_VERSION,
                          "the descriptor", &r, &root, err));
  FILE_GOTO(status, get_key(&r, root, &key, err));
  if (key.attempt != attempt || key.participant != participant) {
    status =
        weir_error_set(err, WEIR_E_CORRUPT, 0,
                       "the descriptor of attempt %" PRIu64 ", participant %" PRIu64
                       " says that it is of attempt %" PRIu64 ", participant %" PRIu64,
                       attempt, participant, key.attempt, key.participant);
    goto out;
  }
  FILE_GOTO(status, file_json_array(&r, root, "files", &array, err));
  yyjson_arr_foreach(array, i, n, item) {
    file_data_name name = {0};
    FILE_GOTO(status, add_file(&r, item, attempt, files, &name, err));
    /* One after the other: no file twice, none of someone else. */
    if (name.participant != participant || name.index <= before_it ||
        memcmp(name.incarnation, key.incarnation, sizeof(key.incarnation)) != 0) {
      status = file_json_corrupt(&r, "name", err);
      goto out;
    }
    before_it = name.index;
  }
out:
  file_json_close(&r);
  if (status) cut_files(files, before);
  return status;
}

/* ---- manifests ---------------------------------------------------------------------------------- */

void file_manifest_done(file_manifest *m) {
  file_data_files_done(&m->files);
  free(m->attempts);
  free(m->positions);
  memset(m, 0, sizeof(*m));
}

const weir_cursor *file_manifest_cursor(const file_manifest *m) {
  static const weir_cursor none;
  return m->n_attempts ? &m->attempts[m->n_attempts - 1].cursor : &none;
}

bool file_manifest_has_attempt(const file_manifest *m, uint64_t checkpoint) {
  for (size_t i = 0; i < m->n_attempts; i++) {
    if (m->attempts[i].cursor.checkpoint == checkpoint) return true;
  }
  return false;
}

weir_status file_manifest_build(const weir_commit_batch *batch, size_t first,
                                uint64_t sequence, uint64_t floor,
                                const weir_cursor *predecessor, file_manifest *out,
                                weir_error *err) {
  weir_status status = WEIR_OK;
  file_manifest m = {.sequence = sequence, .floor = floor, .predecessor = *predecessor};
  m.n_attempts = batch->n_attempts - first;
  m.attempts = calloc(m.n_attempts, sizeof(*m.attempts));
  if (batch->positions) m.positions = file_disk_format(err, "%s", batch->positions);
  if (!m.attempts || (batch->positions && !m.positions)) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  for (size_t i = 0; i < m.n_attempts; i++) {
    const weir_commit_attempt *attempt = &batch->attempts[first + i];
    m.attempts[i].cursor = attempt->cursor;
    m.attempts[i].first_file = m.files.n;
    for (size_t k = 0; k < attempt->n_entries; k++) {
      const weir_commit_entry *entry = &attempt->entries[k];
      if (!entry->present) continue;
      FILE_GOTO(status, file_descriptor_read(entry->descriptor, entry->size,
                                             attempt->cursor.checkpoint,
                                             entry->participant_id, &m.files, err));
    }
    m.attempts[i].n_files = m.files.n - m.attempts[i].first_file;
  }
  *out = m;
  memset(&m, 0, sizeof(m));
out:
  file_manifest_done(&m);
  return status;
}

/* The positions as a JSON value in the document, so that people can read them. */
static weir_status put_positions(yyjson_mut_doc *doc, yyjson_mut_val *root,
                                 const char *text, weir_error *err) {
  yyjson_read_err why = {0};
  yyjson_doc *positions = yyjson_read_opts((char *)(uintptr_t)text, strlen(text),
                                           YYJSON_READ_NUMBER_AS_RAW, NULL, &why);
  if (!positions) {
    bool memory = why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION;
    return weir_error_set(err, memory ? WEIR_E_NOMEM : WEIR_E_INTERNAL, 0,
                          "the source positions are not JSON: %s", why.msg);
  }
  yyjson_mut_val *copy = yyjson_val_mut_copy(doc, yyjson_doc_get_root(positions));
  yyjson_doc_free(positions);
  if (copy && yyjson_mut_obj_add_val(doc, root, "positions", copy)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

static bool put_attempts(yyjson_mut_doc *doc, yyjson_mut_val *root,
                         const file_manifest *m) {
  yyjson_mut_val *attempts = yyjson_mut_obj_add_arr(doc, root, "attempts");
  bool ok = attempts != NULL;
  for (size_t i = 0; ok && i < m->n_attempts; i++) {
    const file_manifest_attempt *attempt = &m->attempts[i];
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, attempts);
    ok = object && file_json_put_cursor(doc, object, &attempt->cursor) &&
         put_files(doc, object, m->files.v + attempt->first_file, attempt->n_files, true);
  }
  return ok;
}

weir_status file_manifest_write(const file_manifest *m, const weir_namespace *ns,
                                char **out, size_t *size, weir_error *err) {
  yyjson_mut_val *root = NULL;
  yyjson_mut_doc *doc = file_json_begin("file-manifest", MANIFEST_VERSION, &root);
  bool ok = doc && yyjson_mut_obj_add_strcpy(doc, root, "pipeline", ns->pipeline) &&
            yyjson_mut_obj_add_strcpy(doc, root, "sink", ns->sink_id) &&
            file_json_put_uuid(doc, root, "deployment", ns->deployment) &&
            yyjson_mut_obj_add_uint(doc, root, "sequence", m->sequence) &&
            yyjson_mut_obj_add_uint(doc, root, "floor", m->floor);
  yyjson_mut_val *predecessor =
      ok ? yyjson_mut_obj_add_obj(doc, root, "predecessor") : NULL;
  ok = predecessor && file_json_put_cursor(doc, predecessor, &m->predecessor) &&
       put_attempts(doc, root, m);
  if (ok && m->positions) {
    weir_status status = put_positions(doc, root, m->positions, err);
    if (status) {
      yyjson_mut_doc_free(doc);
      return status;
    }
  }
  return file_json_finish(doc, ok, true, out, size, err);
}

static weir_status get_attempt(const file_json_reader *r, yyjson_val *object,
                               uint64_t after, file_manifest *m, weir_error *err) {
  file_manifest_attempt *attempt = &m->attempts[m->n_attempts];
  yyjson_val *array = NULL, *item;
  size_t i, n;
  FILE_TRY(file_json_cursor(r, object, &attempt->cursor, err));
  if (attempt->cursor.checkpoint <= after) return file_json_corrupt(r, "checkpoint", err);
  FILE_TRY(file_json_array(r, object, "files", &array, err));
  attempt->first_file = m->files.n;
  yyjson_arr_foreach(array, i, n, item) {
    file_data_name name = {0};
    FILE_TRY(add_file(r, item, attempt->cursor.checkpoint, &m->files, &name, err));
  }
  attempt->n_files = m->files.n - attempt->first_file;
  m->n_attempts++;
  return WEIR_OK;
}

static weir_status get_manifest(const file_json_reader *r, yyjson_val *root,
                                file_manifest *m, weir_error *err) {
  yyjson_val *object = NULL, *array = NULL, *item;
  size_t i, n;
  FILE_TRY(file_json_u64(r, root, "sequence", &m->sequence, err));
  FILE_TRY(file_json_u64(r, root, "floor", &m->floor, err));
  if (m->floor < 1 || m->floor > m->sequence) return file_json_corrupt(r, "floor", err);
  FILE_TRY(file_json_object(r, root, "predecessor", &object, err));
  FILE_TRY(file_json_cursor(r, object, &m->predecessor, err));
  FILE_TRY(file_json_array(r, root, "attempts", &array, err));
  if (!yyjson_arr_size(array)) return file_json_corrupt(r, "attempts", err);
  m->attempts = calloc(yyjson_arr_size(array), sizeof(*m->attempts));
  if (!m->attempts) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  yyjson_arr_foreach(array, i, n, item) {
    FILE_TRY(get_attempt(
        r, item, i ? file_manifest_cursor(m)->checkpoint : m->predecessor.checkpoint, m,
        err));
  }
  object = yyjson_obj_get(root, "positions");
  if (object) {
    m->positions = yyjson_val_write(object, 0, NULL);
    if (!m->positions) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  }
  return WEIR_OK;
}

weir_status file_manifest_read(const char *data, size_t size, uint64_t sequence,
                               const char *where, file_manifest *out, weir_error *err) {
  file_json_reader r = {0};
  yyjson_val *root = NULL;
  file_manifest m = {0};
  FILE_TRY(file_json_open(data, size, "file-manifest", MANIFEST_VERSION, where, &r, &root,
                          err));
  weir_status status = get_manifest(&r, root, &m, err);
  if (!status && m.sequence != sequence) status = file_json_corrupt(&r, "sequence", err);
  file_json_close(&r);
  if (status) {
    file_manifest_done(&m);
    return status;
  }
  *out = m;
  return WEIR_OK;
}

/* ---- owner, namespace and claim records ---------------------------------------------------------------- */

static const char *file_record_kind(int kind) {
  return kind == RECORD_OWNER   ? "file-owner"
         : kind == RECORD_CLAIM ? "file-deployment"
                                : "file-namespace";
}

weir_status file_record_write(int kind, const weir_namespace *ns,
                              const uint8_t folder[WEIR_INCARNATION_SIZE], char **out,
                              size_t *size, weir_error *err) {
  yyjson_mut_val *root = NULL;
  yyjson_mut_doc *doc = file_json_begin(file_record_kind(kind), MANIFEST_VERSION, &root);
  bool ok = doc && yyjson_mut_obj_add_strcpy(doc, root, "pipeline", ns->pipeline) &&
            yyjson_mut_obj_add_strcpy(doc, root, "sink", ns->sink_id) &&
            file_json_put_hex(doc, root, "identity", ns->identity, WEIR_DIGEST_SIZE);
  if (ok && kind == RECORD_OWNER) {
    ok = file_json_put_hex(doc, root, "folder", folder, WEIR_INCARNATION_SIZE);
  } else if (ok) {
    ok = file_json_put_uuid(doc, root, "deployment", ns->deployment);
  }
  return file_json_finish(doc, ok, true, out, size, err);
}

static weir_status get_record(int kind, const file_json_reader *r, yyjson_val *root,
                              file_owner_record *out, weir_error *err) {
  const char *pipeline = NULL, *sink_id = NULL, *deployment = NULL;
  FILE_TRY(file_json_text(r, root, "pipeline", 4096, &pipeline, err));
  FILE_TRY(file_json_text(r, root, "sink", 4096, &sink_id, err));
  FILE_TRY(file_json_hex(r, root, "identity", out->identity, WEIR_DIGEST_SIZE, err));
  if (kind == RECORD_OWNER) {
    FILE_TRY(file_json_hex(r, root, "folder", out->folder, WEIR_INCARNATION_SIZE, err));
  } else {
    FILE_TRY(file_json_text(r, root, "deployment", 36, &deployment, err));
    if (!file_json_uuid_parse(deployment, out->deployment))
      return file_json_corrupt(r, "deployment", err);
  }
  out->pipeline = file_disk_format(err, "%s", pipeline);
  out->sink_id = file_disk_format(err, "%s", sink_id);
  return out->pipeline && out->sink_id ? WEIR_OK : WEIR_E_NOMEM;
}

weir_status file_record_read(int kind, const char *data, size_t size, const char *where,
                             file_owner_record *out, weir_error *err) {
  file_json_reader r = {0};
  yyjson_val *root = NULL;
  file_owner_record record = {0};
  FILE_TRY(file_json_open(data, size, file_record_kind(kind), MANIFEST_VERSION, where, &r,
                          &root, err));
  weir_status status = get_record(kind, &r, root, &record, err);
  file_json_close(&r);
  if (status) {
    file_record_done(&record);
    return status;
  }
  *out = record;
  return WEIR_OK;
}

void file_record_done(file_owner_record *record) {
  free(record->pipeline);
  free(record->sink_id);
  record->pipeline = record->sink_id = NULL;
}
