/* SPDX-License-Identifier: Apache-2.0 */
#include "thrift.h"

const uint8_t thrift_codes[] = {
    [THRIFT_BOOL] = THRIFT_CODE_TRUE,     [THRIFT_I8] = THRIFT_CODE_I8,
    [THRIFT_I16] = THRIFT_CODE_I16,       [THRIFT_I32] = THRIFT_CODE_I32,
    [THRIFT_I64] = THRIFT_CODE_I64,       [THRIFT_BINARY] = THRIFT_CODE_BINARY,
    [THRIFT_STRUCT] = THRIFT_CODE_STRUCT, [THRIFT_RAW] = THRIFT_CODE_STRUCT,
};

size_t thrift_item_size(const thrift_field *field) {
  switch (field->kind) {
    case THRIFT_BOOL:
    case THRIFT_I8:
      return 1;
    case THRIFT_I16:
      return 2;
    case THRIFT_I32:
      return 4;
    case THRIFT_I64:
      return 8;
    case THRIFT_STRUCT:
      return field->type->size;
    default:
      return sizeof(thrift_binary);
  }
}

static weir_status put_bytes(base_buf *out, const void *data, size_t size,
                             weir_error *err) {
  return base_buf_append(out, data, size, err);
}

static weir_status put_uleb(base_buf *out, uint64_t value, weir_error *err) {
  uint8_t bytes[10];
  return put_bytes(out, bytes, (size_t)(parquet_store_uleb(bytes, value) - bytes), err);
}

static weir_status put_value(const thrift_field *field, const uint8_t *at, base_buf *out,
                             weir_error *err) {
  switch (field->kind) {
    case THRIFT_BOOL: {
      uint8_t code = *at ? THRIFT_CODE_TRUE : THRIFT_CODE_FALSE;
      return put_bytes(out, &code, 1, err);
    }
    case THRIFT_I8:
      return put_bytes(out, at, 1, err);
    case THRIFT_I16: {
      int16_t v;
      memcpy(&v, at, sizeof(v));
      return put_uleb(out, parquet_zigzag(v), err);
    }
    case THRIFT_I32: {
      int32_t v;
      memcpy(&v, at, sizeof(v));
      return put_uleb(out, parquet_zigzag(v), err);
    }
    case THRIFT_I64: {
      int64_t v;
      memcpy(&v, at, sizeof(v));
      return put_uleb(out, parquet_zigzag(v), err);
    }
    case THRIFT_STRUCT:
      return thrift_encode(field->type, at, out, err);
    default: {
      const thrift_binary *bytes = (const thrift_binary *)(const void *)at;
      if (field->kind == THRIFT_BINARY) {
        weir_status status = put_uleb(out, bytes->size, err);
        if (status != WEIR_OK) return status;
      }
      return put_bytes(out, bytes->data, bytes->size, err);
    }
  }
}

static weir_status put_list(const thrift_field *field, const thrift_list *list,
                            base_buf *out, weir_error *err) {
  uint8_t head =
      (uint8_t)(((list->n < 15 ? list->n : 15) << 4) | thrift_codes[field->kind]);
  weir_status status = put_bytes(out, &head, 1, err);
  if (status == WEIR_OK && list->n >= 15) status = put_uleb(out, list->n, err);
  size_t n = field->kind == THRIFT_RAW ? (list->n > 0) : list->n;
  const uint8_t *at = list->items;
  for (size_t i = 0; status == WEIR_OK && i < n; i++, at += thrift_item_size(field)) {
    status = put_value(field, at, out, err);
  }
  return status;
}

/* Field ids are written as the distance from the one before, 1..15 in the upper half of the header
 * byte; larger distances follow it as a zigzag integer. */
static weir_status put_head(uint8_t last, uint8_t id, uint8_t code, base_buf *out,
                            weir_error *err) {
  uint8_t delta = (uint8_t)(id - last);
  uint8_t head = (uint8_t)((delta <= 15 ? delta << 4 : 0) | code);
  weir_status status = put_bytes(out, &head, 1, err);
  if (status == WEIR_OK && delta > 15) status = put_uleb(out, parquet_zigzag(id), err);
  return status;
}

weir_status thrift_encode(const thrift_type *type, const void *object, base_buf *out,
                          weir_error *err) {
  const uint8_t *base = object;
  uint32_t has;
  memcpy(&has, base, sizeof(has));
  uint8_t last = 0;
  weir_status status = WEIR_OK;
  for (const thrift_field *field = type->fields; field->id != 0; field++) {
    if ((has >> field->id & 1) == 0) continue;
    const uint8_t *at = base + field->offset;
    uint8_t code = thrift_codes[field->kind];
    if (field->is_list) {
      code = THRIFT_CODE_LIST;
    } else if (field->kind == THRIFT_BOOL) {
      code = *at ? THRIFT_CODE_TRUE : THRIFT_CODE_FALSE;
    }
    status = put_head(last, field->id, code, out, err);
    if (status != WEIR_OK) return status;
    if (field->is_list) {
      status = put_list(field, (const thrift_list *)(const void *)at, out, err);
    } else if (field->kind != THRIFT_BOOL) {
      status = put_value(field, at, out, err);
    }
    if (status != WEIR_OK) return status;
    last = field->id;
  }
  static const uint8_t stop = 0;
  return put_bytes(out, &stop, 1, err);
}
