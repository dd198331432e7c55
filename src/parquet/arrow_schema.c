/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "ARROW:schema", as Arrow C++ and arrow-rs write and read it: the encapsulated IPC message of the
 * schema, that is the beginning of a stream, in base64 with padding (RFC 4648, section 4).
 * List views stand there as lists and run-end encoded fields as their values: Polars 2 refuses a whole
 * file for the sake of either, and Arrow C++ gives back the latter as their values anyway.
 */
#include <weir/ipc.h>

#include "parquet.h"

static weir_status collect(void *ctx, const void *data, size_t size, weir_error *err) {
  return base_buf_append(ctx, data, size, err);
}

static weir_status to_base64(const base_buf *from, base_buf *out, weir_error *err) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < from->size; i += 3) {
    size_t n = from->size - i < 3 ? from->size - i : 3;
    uint32_t v = (uint32_t)from->data[i] << 16;
    if (n > 1) v |= (uint32_t)from->data[i + 1] << 8;
    if (n > 2) v |= from->data[i + 2];
    char text[4] = {digits[v >> 18], digits[v >> 12 & 63],
                    n > 1 ? digits[v >> 6 & 63] : '=', n > 2 ? digits[v & 63] : '='};
    BASE_TRY(base_buf_append(out, text, sizeof(text), err));
  }
  return WEIR_OK;
}

/* Puts the values' type in a run-end encoded field's place. */
static int become_values(struct ArrowSchema *field) {
  struct ArrowSchema values;
  ArrowSchemaMove(field->children[1], &values);
  int code = ArrowSchemaSetName(&values, field->name);
  if (code == 0) code = ArrowSchemaSetMetadata(&values, field->metadata);
  values.flags = (values.flags & ~(int64_t)ARROW_FLAG_NULLABLE) |
                 (field->flags & ARROW_FLAG_NULLABLE);
  ArrowSchemaRelease(field);
  ArrowSchemaMove(&values, field);
  return code;
}

/* No deeper than ARROW_MAX_DEPTH, as the schema was made. */
static int simplify(struct ArrowSchema *field) {
  int code = 0;
  while (code == 0 && strcmp(field->format, "+r") == 0) code = become_values(field);
  if (code == 0 && strcmp(field->format, "+vl") == 0)
    code = ArrowSchemaSetFormat(field, "+l");
  if (code == 0 && strcmp(field->format, "+vL") == 0)
    code = ArrowSchemaSetFormat(field, "+L");
  for (int64_t i = 0; code == 0 && i < field->n_children; i++)
    code = simplify(field->children[i]);
  return code;
}

static weir_status simple_schema(const weir_schema *schema, weir_schema **out,
                                 weir_error *err) {
  struct ArrowSchema copy = {0};
  BASE_TRY(weir_schema_export(schema, &copy, err));
  int code = simplify(&copy);
  weir_status status =
      code != 0 ? arrow_errno(err, code, "schema") : weir_schema_new(&copy, out, err);
  if (copy.release != NULL) ArrowSchemaRelease(&copy);
  return status;
}

weir_status parquet_arrow_schema(weir_schema *schema, char **out, weir_error *err) {
  weir_ipc_writer_options options = {.struct_size = sizeof(options)};
  weir_ipc_writer *writer = NULL;
  base_buf message = {0}, text = {0};
  weir_schema *simple = NULL;
  BASE_TRY(simple_schema(schema, &simple, err));
  weir_status status =
      weir_ipc_writer_new(simple, &options, collect, &message, &writer, err);
  weir_schema_unref(simple);
  weir_ipc_writer_free(writer);
  if (status == WEIR_OK) status = to_base64(&message, &text, err);
  if (status == WEIR_OK) {
    *out = base_buf_steal_str(&text, err);
    if (*out == NULL) status = WEIR_E_NOMEM;
  }
  base_buf_done(&message);
  base_buf_done(&text);
  return status;
}

/* What is no digit, as padding, is passed over: a wrong text makes no message. */
static weir_status from_base64(const thrift_binary *from, base_buf *out) {
  uint32_t bits = 0;
  unsigned n = 0;
  BASE_TRY(base_buf_reserve(out, from->size / 4 * 3 + 3, NULL));
  for (size_t i = 0; i < from->size; i++) {
    uint8_t c = from->data[i];
    int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    if (digit < 0) continue;
    bits = bits << 6 | (uint32_t)digit;
    n += 6;
    if (n < 8) continue;
    n -= 8;
    out->data[out->size++] = (uint8_t)(bits >> n);
  }
  return WEIR_OK;
}

void parquet_arrow_schema_read(const thrift_binary *text, weir_schema **out) {
  base_buf message = {0};
  weir_bytes bytes = {0};
  weir_ipc_reader *reader = NULL;
  if (from_base64(text, &message) != WEIR_OK) return;
  base_buf_steal(&message, &bytes);
  if (weir_ipc_reader_open_bytes(&bytes, "ARROW:schema", NULL, &reader, NULL) == WEIR_OK)
    *out = weir_schema_ref(weir_ipc_reader_schema(reader));
  weir_ipc_reader_free(reader);
  weir_bytes_release(&bytes);
}
