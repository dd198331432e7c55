/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "thrift.h"

/* Structs and lists within what is passed over; parquet.thrift itself nests less than 10 deep. */
enum { SKIP_DEPTH = 32 };

void thrift_arena_clear(thrift_arena *arena) {
  for (size_t i = 0; i < arena->n; i++) free(arena->blocks[i]);
  arena->n = 0;
}

void thrift_arena_done(thrift_arena *arena) {
  thrift_arena_clear(arena);
  free(arena->blocks);
  *arena = (thrift_arena){0};
}

/* A slot for a block of its own; *at is its number. */
static weir_status add_block(thrift_arena *arena, size_t *at, weir_error *err) {
  if (arena->n == arena->room) {
    size_t room = arena->room == 0 ? 16 : 2 * arena->room;
    void **blocks = base_realloc(arena->blocks, room, sizeof(*blocks), err);
    if (blocks == NULL) return WEIR_E_NOMEM;
    arena->blocks = blocks;
    arena->room = room;
  }
  arena->blocks[arena->n] = NULL;
  *at = arena->n++;
  return WEIR_OK;
}

static weir_status corrupt(weir_error *err, const char *what) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "%s", what);
}

static weir_status cut(weir_error *err) {
  return corrupt(err, "the Thrift bytes end too early");
}

static weir_status get_uleb(thrift_input *in, uint64_t *out, weir_error *err) {
  uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (in->at == in->end) return cut(err);
    uint8_t byte = *in->at++;
    if (shift == 63 && byte > 1) break;
    v |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = v;
      return WEIR_OK;
    }
  }
  return corrupt(err, "a Thrift integer is longer than 64 bits");
}

static weir_status get_int(thrift_input *in, int64_t min, int64_t max, int64_t *out,
                           weir_error *err) {
  uint64_t v = 0;
  BASE_TRY(get_uleb(in, &v, err));
  int64_t value = (int64_t)(v >> 1 ^ (0 - (v & 1)));
  if (value < min || value > max) return corrupt(err, "a Thrift integer is too large");
  *out = value;
  return WEIR_OK;
}

static weir_status get_bytes(thrift_input *in, uint64_t size, thrift_binary *out,
                             weir_error *err) {
  if (size > (uint64_t)(in->end - in->at)) return cut(err);
  *out = (thrift_binary){in->at, (size_t)size};
  in->at += size;
  return WEIR_OK;
}

/* Number of elements and their code. An element takes a byte at least. */
static weir_status get_list_head(thrift_input *in, uint8_t *code, size_t *n,
                                 weir_error *err) {
  if (in->at == in->end) return cut(err);
  uint8_t head = *in->at++;
  uint64_t count = head >> 4;
  if (count == 15) BASE_TRY(get_uleb(in, &count, err));
  if (count > (uint64_t)(in->end - in->at)) return cut(err);
  *code = head & 15;
  *n = (size_t)count;
  return WEIR_OK;
}

/* *id: that of the field before, then of this one. *code 0: the end of the struct. */
static weir_status get_head(thrift_input *in, int64_t *id, uint8_t *code,
                            weir_error *err) {
  if (in->at == in->end) return cut(err);
  uint8_t head = *in->at++;
  *code = head & 15;
  if (*code == 0) return WEIR_OK;
  if (head >> 4 == 0) return get_int(in, INT16_MIN, INT16_MAX, id, err);
  *id += head >> 4;
  return WEIR_OK;
}

/* ---- unknown fields --------------------------------------------------------------------------- */

static weir_status skip(thrift_input *in, uint8_t code, bool element, int depth,
                        weir_error *err);

static weir_status skip_struct(thrift_input *in, int depth, weir_error *err) {
  for (int64_t id = 0;;) {
    uint8_t code = 0;
    BASE_TRY(get_head(in, &id, &code, err));
    if (code == 0) return WEIR_OK;
    BASE_TRY(skip(in, code, false, depth, err));
  }
}

static weir_status skip_list(thrift_input *in, int depth, weir_error *err) {
  uint8_t code = 0;
  size_t n = 0;
  BASE_TRY(get_list_head(in, &code, &n, err));
  for (size_t i = 0; i < n; i++) BASE_TRY(skip(in, code, true, depth, err));
  return WEIR_OK;
}

static weir_status skip_map(thrift_input *in, int depth, weir_error *err) {
  uint64_t n = 0;
  BASE_TRY(get_uleb(in, &n, err));
  if (n == 0) return WEIR_OK;
  if (n > (uint64_t)(in->end - in->at)) return cut(err);
  uint8_t codes = *in->at++;
  for (uint64_t i = 0; i < n; i++) {
    BASE_TRY(skip(in, codes >> 4, true, depth, err));
    BASE_TRY(skip(in, codes & 15, true, depth, err));
  }
  return WEIR_OK;
}

static weir_status skip(thrift_input *in, uint8_t code, bool element, int depth,
                        weir_error *err) {
  thrift_binary bytes = {0};
  uint64_t size = 0;
  if (depth == SKIP_DEPTH) return corrupt(err, "the Thrift structs nest too deep");
  switch (code) {
    case THRIFT_CODE_TRUE:
    case THRIFT_CODE_FALSE:
      return element ? get_bytes(in, 1, &bytes, err) : WEIR_OK;
    case THRIFT_CODE_I8:
      return get_bytes(in, 1, &bytes, err);
    case THRIFT_CODE_I16:
    case THRIFT_CODE_I32:
    case THRIFT_CODE_I64:
      return get_uleb(in, &size, err);
    case THRIFT_CODE_DOUBLE:
      return get_bytes(in, 8, &bytes, err);
    case THRIFT_CODE_UUID:
      return get_bytes(in, 16, &bytes, err);
    case THRIFT_CODE_BINARY:
      BASE_TRY(get_uleb(in, &size, err));
      return get_bytes(in, size, &bytes, err);
    case THRIFT_CODE_LIST:
    case THRIFT_CODE_SET:
      return skip_list(in, depth + 1, err);
    case THRIFT_CODE_MAP:
      return skip_map(in, depth + 1, err);
    case THRIFT_CODE_STRUCT:
      return skip_struct(in, depth + 1, err);
    default:
      return corrupt(err, "a Thrift type is not known");
  }
}

/* ---- known fields ----------------------------------------------------------------------------- */

static weir_status get_value(const thrift_field *field, thrift_input *in, uint8_t *at,
                             weir_error *err) {
  static const int64_t low[] = {
      [THRIFT_I16] = INT16_MIN, [THRIFT_I32] = INT32_MIN, [THRIFT_I64] = INT64_MIN};
  static const int64_t high[] = {
      [THRIFT_I16] = INT16_MAX, [THRIFT_I32] = INT32_MAX, [THRIFT_I64] = INT64_MAX};
  thrift_binary bytes = {0};
  int64_t v = 0;
  switch (field->kind) {
    case THRIFT_BOOL:
    case THRIFT_I8:
      BASE_TRY(get_bytes(in, 1, &bytes, err));
      *at =
          field->kind == THRIFT_BOOL ? bytes.data[0] == THRIFT_CODE_TRUE : bytes.data[0];
      return WEIR_OK;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
      BASE_TRY(get_int(in, low[field->kind], high[field->kind], &v, err));
      /* the low bytes come first, as on every machine that weir is built for */
      memcpy(at, &v, thrift_item_size(field));
      return WEIR_OK;
    case THRIFT_STRUCT:
      return thrift_decode(field->type, in, at, err);
    default: {
      uint64_t size = 0;
      BASE_TRY(get_uleb(in, &size, err));
      BASE_TRY(get_bytes(in, size, &bytes, err));
      memcpy(at, &bytes, sizeof(bytes));
      return WEIR_OK;
    }
  }
}

/* Room for twice as many items as before, so that it is the items read that ask for memory and not the
 * number that the head tells. */
static weir_status grow(const thrift_field *field, thrift_arena *arena, size_t block,
                        size_t n, size_t *room, weir_error *err) {
  size_t more = *room == 0 ? 4 : 2 * *room;
  if (more > n) more = n;
  void *items = base_realloc(arena->blocks[block], more, thrift_item_size(field), err);
  if (items == NULL) return WEIR_E_NOMEM;
  arena->blocks[block] = items;
  *room = more;
  return WEIR_OK;
}

static weir_status get_raw(thrift_input *in, size_t n, thrift_binary *out,
                           weir_error *err) {
  const uint8_t *start = in->at;
  for (size_t i = 0; i < n; i++) BASE_TRY(skip_struct(in, 0, err));
  *out = (thrift_binary){start, (size_t)(in->at - start)};
  return WEIR_OK;
}

static weir_status get_items(const thrift_field *field, thrift_input *in, size_t n,
                             size_t block, weir_error *err) {
  thrift_arena *arena = in->arena;
  size_t room = 0;
  if (field->kind == THRIFT_RAW) {
    BASE_TRY(grow(field, arena, block, 1, &room, err));
    return get_raw(in, n, arena->blocks[block], err);
  }
  for (size_t i = 0; i < n; i++) {
    if (i == room) BASE_TRY(grow(field, arena, block, n, &room, err));
    uint8_t *items = arena->blocks[block];
    BASE_TRY(get_value(field, in, items + i * thrift_item_size(field), err));
  }
  return WEIR_OK;
}

static weir_status get_list(const thrift_field *field, thrift_input *in, thrift_list *out,
                            weir_error *err) {
  uint8_t code = 0;
  size_t n = 0, block = 0;
  BASE_TRY(get_list_head(in, &code, &n, err));
  if (field->kind == THRIFT_BOOL && code == THRIFT_CODE_FALSE) code = THRIFT_CODE_TRUE;
  if (n > 0 && code != thrift_codes[field->kind])
    return corrupt(err, "a list has elements of another type");
  if (n > 0) {
    BASE_TRY(add_block(in->arena, &block, err));
    BASE_TRY(get_items(field, in, n, block, err));
  }
  *out = (thrift_list){n > 0 ? in->arena->blocks[block] : NULL, n};
  return WEIR_OK;
}

static bool has_type(const thrift_field *field, uint8_t code) {
  if (field->is_list) return code == THRIFT_CODE_LIST;
  if (field->kind == THRIFT_BOOL)
    return code == THRIFT_CODE_TRUE || code == THRIFT_CODE_FALSE;
  return code == thrift_codes[field->kind];
}

/* Of the field's type. */
static weir_status get_field(const thrift_field *field, uint8_t code, thrift_input *in,
                             uint8_t *at, weir_error *err) {
  if (field->is_list) return get_list(field, in, (thrift_list *)(void *)at, err);
  if (field->kind != THRIFT_BOOL) return get_value(field, in, at, err);
  *at = code == THRIFT_CODE_TRUE;
  return WEIR_OK;
}

static const thrift_field *find_field(const thrift_type *type, int64_t id) {
  const thrift_field *field = type->fields;
  while (field->id != 0 && field->id != id) field++;
  return field->id != 0 ? field : NULL;
}

weir_status thrift_decode(const thrift_type *type, thrift_input *in, void *object,
                          weir_error *err) {
  uint8_t *base = object;
  uint32_t has = 0;
  memset(base, 0, type->size);
  for (int64_t id = 0;;) {
    uint8_t code = 0;
    BASE_TRY(get_head(in, &id, &code, err));
    if (code == 0) break;
    const thrift_field *field = find_field(type, id);
    bool known = field != NULL && has_type(field, code);
    weir_status status = known ? get_field(field, code, in, base + field->offset, err)
                               : skip(in, code, false, 0, err);
    if (field != NULL && !known && (type->needs >> field->id & 1) != 0)
      status = corrupt(err, "it has another type");
    if (status != WEIR_OK)
      return weir_error_prefix(err, status, "%s, field %" PRId64, type->name, id);
    if (known) has |= 1u << field->id;
  }
  if ((has & type->needs) != type->needs) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "%s without field %d", type->name,
                          __builtin_ctz(type->needs & ~has));
  }
  memcpy(base, &has, sizeof(has));
  return WEIR_OK;
}
