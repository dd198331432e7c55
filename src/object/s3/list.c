/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of objects and of unfinished uploads, page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object/s3/s3.h"

enum {
  MAX_PAGE = 16 << 20
}; /* bytes; a thousand entries with the longest keys need half of it */

typedef struct item {
  char *key, *id;
  weir_object_info info;
} item;

typedef struct page {
  item *v;
  size_t n, room;
  item now; /* of the element that is being read */
  bool in_item, encoded, more;
  char *next, *next_id;
} page;

static void item_done(item *one) {
  free(one->key);
  free(one->id);
  *one = (item){0};
}

static void page_clear(page *p) {
  for (size_t i = 0; i < p->n; i++) item_done(&p->v[i]);
  item_done(&p->now);
  free(p->next);
  free(p->next_id);
  p->next = p->next_id = NULL;
  p->n = 0;
  p->in_item = p->encoded = p->more = false;
}

static weir_status keep(char **out, const char *text, weir_error *err) {
  char *copy = base_strdup(text, err);
  if (!copy) return WEIR_E_NOMEM;
  free(*out);
  *out = copy;
  return WEIR_OK;
}

static bool is_item(const char *name) {
  return strcmp(name, "Contents") == 0 || strcmp(name, "CommonPrefixes") == 0 ||
         strcmp(name, "Upload") == 0;
}

static void page_begin(void *ctx, const char *name) {
  page *p = ctx;
  if (is_item(name)) p->in_item = true;
}

static weir_status page_add(page *p, weir_error *err) {
  p->in_item = false;
  if (!p->now.key) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "the object store's list has an entry without a key");
  }
  if (p->n == p->room) {
    size_t room = p->room ? 2 * p->room : 64;
    item *v = base_realloc(p->v, room, sizeof(*v), err);
    if (!v) return WEIR_E_NOMEM;
    p->v = v;
    p->room = room;
  }
  p->v[p->n++] = p->now;
  p->now = (item){0};
  return WEIR_OK;
}

static weir_status page_end(void *ctx, const char *name, const char *text,
                            weir_error *err) {
  page *p = ctx;
  if (is_item(name)) return page_add(p, err);
  if (p->in_item) {
    weir_object_info *info = &p->now.info;
    if (strcmp(name, "Key") == 0 || strcmp(name, "Prefix") == 0) {
      return keep(&p->now.key, text, err);
    }
    if (strcmp(name, "UploadId") == 0) return keep(&p->now.id, text, err);
    if (strcmp(name, "Size") == 0) info->size = strtoull(text, NULL, 10);
    if (strcmp(name, "LastModified") == 0 || strcmp(name, "Initiated") == 0) {
      info->modified_ns = s3_time_parse(text);
    }
    if (strcmp(name, "ETag") == 0 && strlen(text) < sizeof(info->etag)) {
      snprintf(info->etag, sizeof(info->etag), "%s", text);
    }
    return WEIR_OK;
  }
  if (strcmp(name, "IsTruncated") == 0) p->more = strcmp(text, "true") == 0;
  if (strcmp(name, "EncodingType") == 0) p->encoded = strcmp(text, "url") == 0;
  if (strcmp(name, "NextContinuationToken") == 0 || strcmp(name, "NextKeyMarker") == 0) {
    return keep(&p->next, text, err);
  }
  if (strcmp(name, "NextUploadIdMarker") == 0) return keep(&p->next_id, text, err);
  return WEIR_OK;
}

/* In place: %XX, and '+' for a space, as S3's encoding type 'url' has it. */
static void decode(char *text) {
  char *out = text;
  for (const char *p = text; *p; p++) {
    uint8_t byte = 0;
    char pair[3] = {p[0] == '%' ? p[1] : 0, p[0] == '%' && p[1] ? p[2] : 0, 0};
    if (pair[0] && weir_hex_decode(pair, &byte, 1) && byte) {
      *out++ = (char)byte;
      p += 2;
    } else {
      *out++ = *p == '+' ? ' ' : *p;
    }
  }
  *out = 0;
}

static int by_key(const void *left, const void *right) {
  return strcmp(((const item *)left)->key, ((const item *)right)->key);
}

static weir_status read_page(s3_store *store, const weir_call *call, const s3_ask *ask,
                             page *p, weir_error *err) {
  s3_answer answer = {0};
  s3_xml reader = {.begin = page_begin, .end = page_end, .ctx = p};
  weir_status status = s3_send(store, call, ask, &answer, err);
  if (!status && answer.status != 200) status = s3_fail(store, ask, &answer, err);
  if (!status) {
    status = s3_xml_read(&reader, answer.body.data, answer.body.size, err);
    if (status) weir_error_prefix(err, status, "%s: %s", store->name, ask->verb);
  }
  s3_answer_done(&answer);
  if (status) return status;
  for (size_t i = 0; i < p->n && p->encoded; i++) decode(p->v[i].key);
  if (p->encoded && p->next && p->next_id) decode(p->next);
  if (p->n) qsort(p->v, p->n, sizeof(*p->v), by_key);
  if (!p->more || p->next) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "%s: %s: the answer says that there is more, but not where",
                        store->name, ask->verb);
}

/* The key as the caller knows it; one that the store's prefix does not begin was not asked for. */
static const char *below(const s3_store *store, const item *one) {
  size_t size = strlen(store->prefix);
  return strncmp(one->key, store->prefix, size) == 0 && one->key[size] ? one->key + size
                                                                       : NULL;
}

weir_status s3_list(void *state, const weir_call *call, const char *prefix,
                    const char *after, uint32_t flags, weir_object_list_fn fn, void *ctx,
                    weir_error *err) {
  s3_store *store = state;
  page p = {0};
  weir_status status = WEIR_OK;
  char *whole = base_format(err, "%s%s", store->prefix, prefix);
  char *start = base_format(err, "%s%s", store->prefix, after);
  char *next = NULL;
  if (!whole || !start) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  do {
    s3_ask ask = {
        .verb = "list",
        .method = "GET",
        .query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", whole}},
        .n_query = 3,
        .max = MAX_PAGE};
    if (flags & WEIR_OBJECT_SHALLOW)
      ask.query[ask.n_query++] = (s3_pair){"delimiter", "/"};
    if (*after) ask.query[ask.n_query++] = (s3_pair){"start-after", start};
    if (next) ask.query[ask.n_query++] = (s3_pair){"continuation-token", next};
    page_clear(&p);
    BASE_GOTO(status, read_page(store, call, &ask, &p, err));
    for (size_t i = 0; i < p.n; i++) {
      const char *key = below(store, &p.v[i]);
      if (!key || strcmp(key, after) <= 0) continue;
      BASE_GOTO(status, fn(ctx, key, &p.v[i].info, err));
    }
    free(next);
    next = p.more ? p.next : NULL;
    if (next) p.next = NULL;
  } while (next);
out:
  page_clear(&p);
  free(p.v);
  free(next);
  free(whole);
  free(start);
  return status;
}

weir_status s3_uploads_list(void *state, const weir_call *call, const char *prefix,
                            weir_object_uploads_fn fn, void *ctx, weir_error *err) {
  s3_store *store = state;
  page p = {0};
  weir_status status = WEIR_OK;
  char *next = NULL, *next_id = NULL;
  char *whole = base_format(err, "%s%s", store->prefix, prefix);
  if (!whole) return WEIR_E_NOMEM;
  do {
    s3_ask ask = {.verb = "list of uploads",
                  .method = "GET",
                  .query = {{"uploads", ""}, {"encoding-type", "url"}, {"prefix", whole}},
                  .n_query = 3,
                  .max = MAX_PAGE};
    if (next) ask.query[ask.n_query++] = (s3_pair){"key-marker", next};
    if (next_id) ask.query[ask.n_query++] = (s3_pair){"upload-id-marker", next_id};
    page_clear(&p);
    BASE_GOTO(status, read_page(store, call, &ask, &p, err));
    for (size_t i = 0; i < p.n; i++) {
      const char *key = below(store, &p.v[i]);
      if (!key || !p.v[i].id) continue;
      BASE_GOTO(status, fn(ctx, key, p.v[i].id, p.v[i].info.modified_ns, err));
    }
    free(next);
    free(next_id);
    next = p.more ? p.next : NULL;
    next_id = p.more ? p.next_id : NULL;
    if (p.more) p.next = p.next_id = NULL;
  } while (next);
out:
  page_clear(&p);
  free(p.v);
  free(next);
  free(next_id);
  free(whole);
  return status;
}
