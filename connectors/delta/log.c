/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#define FOLDER "_delta_log/"

enum { DIGITS = 20, PART_DIGITS = 10, PARTS_MAX = 100000, HINT_MAX = 64 << 20 };

void delta_log_entry_key(int64_t version, char out[DELTA_KEY_SIZE]) {
  snprintf(out, DELTA_KEY_SIZE, FOLDER "%0*" PRId64 ".json", DIGITS, version);
}

/* ---- names -------------------------------------------------------------------------------------- */

/* Exactly `digits` of them; -1: not a number that fits. */
static int64_t parse_number(const char *text, int digits) {
  int64_t number = 0;
  for (int i = 0; i < digits; i++) {
    if (text[i] < '0' || text[i] > '9') return -1;
    if (number > (INT64_MAX - (text[i] - '0')) / 10) return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number;
}

enum { NAME_OTHER, NAME_ENTRY, NAME_CHECKPOINT, NAME_PART };

/* Section "Checkpoint Naming Scheme". `rest` is what follows the version. */
static int parse_rest(const char *rest, int64_t *part, int64_t *parts) {
  static const char checkpoint[] = ".checkpoint.";
  if (strcmp(rest, ".json") == 0) return NAME_ENTRY;
  if (strncmp(rest, checkpoint, strlen(checkpoint)) != 0) return NAME_OTHER;
  rest += strlen(checkpoint);
  size_t n = strlen(rest);
  if (strcmp(rest, "parquet") == 0) return NAME_CHECKPOINT;
  if (n == 2 * PART_DIGITS + 9 && rest[PART_DIGITS] == '.' &&
      strcmp(rest + 2 * PART_DIGITS + 1, ".parquet") == 0) {
    *part = parse_number(rest, PART_DIGITS);
    *parts = parse_number(rest + PART_DIGITS + 1, PART_DIGITS);
    return *part >= 1 && *parts >= *part && *parts <= PARTS_MAX ? NAME_PART : NAME_OTHER;
  }
  const char *end = strchr(rest, '.');
  bool uuid = end && end - rest == 36;
  return uuid && (strcmp(end, ".parquet") == 0 || strcmp(end, ".json") == 0)
             ? NAME_CHECKPOINT
             : NAME_OTHER;
}

/* ---- the segment -------------------------------------------------------------------------------- */

/* A checkpoint found: whole when all its parts were seen. */
typedef struct candidate {
  int64_t version, parts;
  delta_segment files;
} candidate;

typedef struct finding {
  candidate *v;
  size_t n;
  int64_t first, last; /* entries; -1: none */
} finding;

void delta_segment_done(delta_segment *segment) {
  for (size_t i = 0; i < segment->n_keys; i++) free(segment->keys[i]);
  free(segment->keys);
  memset(segment, 0, sizeof(*segment));
}

static void finding_done(finding *f) {
  for (size_t i = 0; i < f->n; i++) delta_segment_done(&f->v[i].files);
  free(f->v);
  memset(f, 0, sizeof(*f));
}

static weir_status add_key(candidate *c, const char *key, weir_error *err) {
  char **keys = realloc(c->files.keys, (c->files.n_keys + 1) * sizeof(*keys));
  if (!keys) return delta_no_memory(err);
  c->files.keys = keys;
  keys[c->files.n_keys] = strdup(key);
  if (!keys[c->files.n_keys]) return delta_no_memory(err);
  c->files.n_keys++;
  return WEIR_OK;
}

/* The listing is in order, so the parts of one checkpoint come by their number. */
static weir_status add_candidate(finding *f, const char *key, int64_t version,
                                 int64_t part, int64_t parts, weir_error *err) {
  for (size_t i = f->n; part > 1 && i-- > 0 && f->v[i].version == version;) {
    candidate *c = &f->v[i];
    if (c->parts == parts && c->files.n_keys == (size_t)part - 1)
      return add_key(c, key, err);
  }
  if (part > 1) return WEIR_OK; /* the one before it is missing */
  candidate *v = realloc(f->v, (f->n + 1) * sizeof(*v));
  if (!v) return delta_no_memory(err);
  f->v = v;
  v[f->n] = (candidate){.version = version, .parts = parts};
  return add_key(&v[f->n++], key, err);
}

static weir_status look_at(void *ctx, const char *key, const weir_object_info *info,
                           weir_error *err) {
  finding *f = ctx;
  const char *name = key + strlen(FOLDER);
  int64_t part = 1, parts = 1;
  (void)info;
  if (strlen(name) < DIGITS) return WEIR_OK;
  int64_t version = parse_number(name, DIGITS);
  if (version < 0) return WEIR_OK;
  int kind = parse_rest(name + DIGITS, &part, &parts);
  if (kind == NAME_ENTRY) {
    if (f->first < 0) f->first = version;
    f->last = version;
    return WEIR_OK;
  }
  return kind == NAME_OTHER ? WEIR_OK : add_candidate(f, key, version, part, parts, err);
}

/* From `version` on. A checkpoint of a version is listed before its entry, so `after` must not hide it. */
static weir_status look(weir_object_store *store, const weir_call *call, int64_t version,
                        finding *out, weir_error *err) {
  char after[DELTA_KEY_SIZE];
  snprintf(after, sizeof(after), FOLDER "%0*" PRId64, DIGITS, version);
  out->first = out->last = -1;
  return weir_object_list(store, call, FOLDER, version ? after : NULL,
                          WEIR_OBJECT_SHALLOW, look_at, out, err);
}

static candidate *newest(finding *f) {
  candidate *best = NULL;
  for (size_t i = 0; i < f->n; i++) {
    candidate *c = &f->v[i];
    if (c->files.n_keys == (size_t)c->parts && (!best || c->version >= best->version))
      best = c;
  }
  return best;
}

/* Only a hint: whatever is wrong with it, the whole log is listed. 0: there is none. */
static weir_status read_hint(weir_object_store *store, const weir_call *call,
                             int64_t *out, weir_error *err) {
  weir_bytes text = {0};
  weir_error local = {0};
  *out = 0;
  weir_status status = weir_object_get(store, call, FOLDER "_last_checkpoint", 0,
                                       HINT_MAX, &text, NULL, &local);
  if (status == WEIR_E_NOT_FOUND) return WEIR_OK;
  if (status) {
    if (err) *err = local;
    return status;
  }
  yyjson_doc *doc = yyjson_read((const char *)text.data, text.size, 0);
  yyjson_val *version = yyjson_obj_get(yyjson_doc_get_root(doc), "version");
  if (yyjson_is_uint(version) && yyjson_get_uint(version) <= INT64_MAX)
    *out = yyjson_get_sint(version);
  yyjson_doc_free(doc);
  weir_bytes_release(&text);
  return WEIR_OK;
}

weir_status delta_log_find(weir_object_store *store, const weir_call *call,
                           delta_segment *out, weir_error *err) {
  finding f = {0};
  int64_t hint = 0;
  memset(out, 0, sizeof(*out));
  DELTA_TRY(read_hint(store, call, &hint, err));
  weir_status status = look(store, call, hint, &f, err);
  if (!status && hint && !newest(&f)) {
    finding_done(&f);
    status = look(store, call, 0, &f, err);
  }
  candidate *best = status ? NULL : newest(&f);
  if (!status && !best && f.first > 0) {
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the log of the table at '%s' begins with version %" PRId64
                            ", and there is no whole checkpoint to begin from",
                            weir_object_store_location(store), f.first);
  }
  if (!status) {
    out->checkpoint = -1;
    out->last = f.last;
  }
  if (best) {
    *out = best->files;
    memset(&best->files, 0, sizeof(best->files));
    out->checkpoint = best->version;
    out->last = f.last > best->version ? f.last : best->version;
  }
  finding_done(&f);
  return status;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static weir_status read_json(weir_object_store *store, const weir_call *call,
                             const char *key, delta_each each, void *ctx,
                             weir_error *err) {
  weir_bytes text = {0};
  char where[DELTA_KEY_SIZE + 64];
  DELTA_TRY(weir_object_get(store, call, key, 0, DELTA_ENTRY_MAX, &text, NULL, err));
  snprintf(where, sizeof(where), "log entry '%s'", key);
  weir_status status =
      text.size == DELTA_ENTRY_MAX
          ? weir_error_set(err, WEIR_E_CORRUPT, 0, "%s is larger than %u bytes", where,
                           DELTA_ENTRY_MAX)
          : delta_entry_read((const char *)text.data, text.size, where, each, ctx, err);
  weir_bytes_release(&text);
  return status;
}

weir_status delta_log_read_entry(weir_object_store *store, const weir_call *call,
                                 int64_t version, delta_each each, void *ctx,
                                 weir_error *err) {
  char key[DELTA_KEY_SIZE];
  delta_log_entry_key(version, key);
  return read_json(store, call, key, each, ctx, err);
}

/* Passes actions on, and reads the sidecars that it meets: those hold the files. */
typedef struct passing {
  weir_object_store *store;
  const weir_call *call;
  uint32_t flags;
  delta_each each;
  void *ctx;
} passing;

static int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Section "Sidecar File Information": a URI, relative to _sidecars, whatever folders it names. */
static weir_status sidecar_key(delta_text path, char *out, size_t size, weir_error *err) {
  size_t n = (size_t)snprintf(out, size, FOLDER "_sidecars/"), from = 0;
  for (size_t i = 0; i < path.n; i++) {
    if (path.p[i] == '/') from = i + 1;
  }
  for (size_t i = from; i < path.n && n + 1 < size; i++) {
    bool escape = path.p[i] == '%' && path.n - i > 2 && hex(path.p[i + 1]) >= 0 &&
                  hex(path.p[i + 2]) >= 0;
    out[n++] = escape ? (char)(hex(path.p[i + 1]) << 4 | hex(path.p[i + 2])) : path.p[i];
    if (escape) i += 2;
  }
  if (n + 1 >= size || from == path.n || memchr(out, 0, n))
    return weir_error_set(
        err, WEIR_E_CORRUPT, 0,
        "the checkpoint names the sidecar '%.*s', which is no file's name",
        (int)(path.n > 200 ? 200 : path.n), path.p);
  out[n] = 0;
  return WEIR_OK;
}

static weir_status pass_on(void *ctx, const delta_action *action, weir_error *err) {
  const passing *p = ctx;
  bool file = action->kind == DELTA_ADD || action->kind == DELTA_REMOVE;
  if (file && !(p->flags & DELTA_CHECKPOINT_FILES)) return WEIR_OK;
  if (action->kind != DELTA_SIDECAR) return p->each(p->ctx, action, err);
  if (!(p->flags & DELTA_CHECKPOINT_FILES)) return WEIR_OK;
  char key[512];
  DELTA_TRY(sidecar_key(action->u.sidecar, key, sizeof(key), err));
  return delta_checkpoint_read(p->store, p->call, key, p->flags, p->each, p->ctx, err);
}

weir_status delta_log_read_checkpoint(weir_object_store *store, const weir_call *call,
                                      const delta_segment *segment, uint32_t flags,
                                      delta_each each, void *ctx, weir_error *err) {
  passing p = {store, call, flags, each, ctx};
  for (size_t i = 0; i < segment->n_keys; i++) {
    const char *key = segment->keys[i];
    bool json = strcmp(key + strlen(key) - 5, ".json") == 0;
    DELTA_TRY(json ? read_json(store, call, key, pass_on, &p, err)
                   : delta_checkpoint_read(store, call, key, flags, pass_on, &p, err));
  }
  return WEIR_OK;
}
