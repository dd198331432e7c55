/* SPDX-License-Identifier: Apache-2.0 */
/* Values that a column must carry: the ends of its type's range and what is easily lost on the way. They are written as
 * JSON, as is what comes back, so that one comparison does for every pair of types. */
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include "adbc.h"

enum { SAMPLES = 4, DEEPEST = 16 };

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

static void put_base64(FILE *to, int64_t size) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  fputc('"', to);
  for (int64_t i = 0; i < size; i += 3) {
    uint32_t bits = 0;
    for (int64_t k = 0; k < 3; k++)
      bits = bits << 8 | (i + k < size ? (uint32_t)((i + k) * 37) & 0xff : 0);
    for (int64_t k = 0; k < 4; k++)
      fputc(k <= size - i ? digits[bits >> (18 - 6 * k) & 63] : '=', to);
  }
  fputc('"', to);
}

static void put_decimal(FILE *to, const struct ArrowSchemaView *view, int k) {
  int32_t whole = view->decimal_precision - view->decimal_scale;
  fputc('"', to);
  if (k == 1) fputc('-', to);
  if (whole <= 0) fputc('0', to);
  for (int32_t i = 0; i < whole; i++) fputc(k < 2 ? '9' : i == whole - 1 ? '1' : '0', to);
  if (view->decimal_scale > 0) fputc('.', to);
  for (int32_t i = 0; i < view->decimal_scale; i++) fputc(k < 2 ? '9' : '5', to);
  fputc('"', to);
}

static void put_time(FILE *to, const struct ArrowSchemaView *view, int k,
                     const char *zone) {
  static const char *const fractions[] = {"", ".999", ".999999", ".999999999"};
  const char *date = k % 2 ? "2024-02-29T" : "1969-12-31T";
  int day = view->type == NANOARROW_TYPE_TIMESTAMP;
  fprintf(to, "\"%s%s%s%s\"", day ? date : "", k < 2 ? "23:59:59" : "00:00:01",
          fractions[view->time_unit], zone);
}

static void put_number(FILE *to, enum ArrowType type, int k) {
  static const struct {
    enum ArrowType type;
    const char *v[SAMPLES];
  } numbers[] = {
      {NANOARROW_TYPE_INT8, {"0", "-128", "127", "-1"}},
      {NANOARROW_TYPE_INT16, {"0", "-32768", "32767", "-1"}},
      {NANOARROW_TYPE_INT32, {"0", "-2147483648", "2147483647", "-1"}},
      {NANOARROW_TYPE_INT64, {"0", "-9223372036854775808", "9223372036854775807", "-1"}},
      {NANOARROW_TYPE_UINT8, {"0", "255", "128", "1"}},
      {NANOARROW_TYPE_UINT16, {"0", "65535", "32768", "1"}},
      {NANOARROW_TYPE_UINT32, {"0", "4294967295", "2147483648", "1"}},
      {NANOARROW_TYPE_UINT64, {"0", "18446744073709551615", "9223372036854775808", "1"}},
      {NANOARROW_TYPE_HALF_FLOAT, {"0.5", "-65504", "0", "0.25"}},
      {NANOARROW_TYPE_FLOAT, {"0.5", "-3.4028235e38", "0.1", "1e-45"}},
      {NANOARROW_TYPE_DOUBLE, {"0.1", "-1.7976931348623157e308", "0.5", "5e-324"}},
      {NANOARROW_TYPE_DURATION, {"0", "-1", "1", "86400"}}};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
    if (numbers[i].type == type) {
      fputs(numbers[i].v[k], to);
      return;
    }
  fputs("null", to);
}

/* Sample k of a field. */
static void put_sample(FILE *to, const struct ArrowSchema *field, int k, int depth) {
  static const char *const texts[] = {"\"\"", "\"it's \\\"so\\\" \\\\\"",
                                      "\"\xc3\xa4 \xe2\x82\xac \xf0\x9d\x84\x9e\"",
                                      "\" 1 \""};
  static const char *const dates[] = {"1970-01-01", "2024-02-29", "1899-12-31",
                                      "9999-12-31"};
  struct ArrowSchemaView view;
  if (depth > DEEPEST || ArrowSchemaViewInit(&view, field, NULL) != NANOARROW_OK) {
    fputs("null", to);
    return;
  }
  switch (view.type) {
    case NANOARROW_TYPE_BOOL:
      fputs(k % 2 ? "true" : "false", to);
      break;
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_STRING_VIEW:
      fputs(texts[k], to);
      break;
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
    case NANOARROW_TYPE_BINARY_VIEW:
      put_base64(to, k * 5);
      break;
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      put_base64(to, view.fixed_size);
      break;
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      put_decimal(to, &view, k);
      break;
    case NANOARROW_TYPE_DATE32:
    case NANOARROW_TYPE_DATE64:
      fprintf(to, "\"%s\"", dates[k]);
      break;
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64:
      put_time(to, &view, k, "");
      break;
    case NANOARROW_TYPE_TIMESTAMP:
      put_time(to, &view, k, view.timezone && *view.timezone ? "Z" : "");
      break;
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_LIST_VIEW:
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      fputc('[', to);
      for (int64_t i = 0, n = view.fixed_size ? view.fixed_size : k; i < n; i++) {
        if (i) fputc(',', to);
        put_sample(to, field->children[0], (int)(i % SAMPLES), depth + 1);
      }
      fputc(']', to);
      break;
    case NANOARROW_TYPE_STRUCT:
      fputc('{', to);
      for (int64_t i = 0; i < field->n_children; i++) {
        fprintf(to, "%s\"%s\":", i ? "," : "", field->children[i]->name);
        put_sample(to, field->children[i], k, depth + 1);
      }
      fputc('}', to);
      break;
    case NANOARROW_TYPE_MAP:
      fputs("[]", to);
      break;
    default:
      put_number(to, view.type, k);
  }
}

static void put_string(FILE *to, const char *text) {
  fputc('"', to);
  for (; *text; text++)
    if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20) {
      fprintf(to, "\\u%04x", (unsigned)(unsigned char)*text);
    } else {
      fputc(*text, to);
    }
  fputc('"', to);
}

static int is_float(const struct ArrowSchema *field) {
  return strlen(field->format) == 1 && strchr("efg", *field->format);
}

/* The last row is null where that is allowed; of `nan` it is the only one, with NaN in its place. */
static void put_rows(FILE *to, const struct ArrowSchema *schema, int nan) {
  for (int k = nan ? SAMPLES : 0; k <= SAMPLES; k++) {
    for (int64_t i = 0; i < schema->n_children; i++) {
      const struct ArrowSchema *field = schema->children[i];
      fputc(i ? ',' : '{', to);
      put_string(to, field->name);
      fputc(':', to);
      if (nan && is_float(field)) {
        fputs("\"NaN\"", to);
      } else if (k == SAMPLES && field->flags & ARROW_FLAG_NULLABLE) {
        fputs("null", to);
      } else {
        put_sample(to, field, k % SAMPLES, 0);
      }
    }
    fputs("}\n", to);
  }
}

weir_status adbc_samples(weir_schema *schema, int nan, weir_batch **out,
                         weir_error *err) {
  char *text = NULL;
  size_t size = 0, used = 0;
  weir_ndjson_decoder *decoder = NULL;
  FILE *to = open_memstream(&text, &size);
  if (!to) return no_memory(err);
  put_rows(to, weir_schema_arrow(schema), nan);
  weir_status status = fclose(to) ? no_memory(err) : WEIR_OK;
  if (!status) status = weir_ndjson_decoder_new(schema, NULL, &decoder, err);
  if (!status) status = weir_ndjson_decoder_feed(decoder, text, size, 1, &used, out, err);
  if (!status && !*out) status = weir_ndjson_decoder_flush(decoder, out, err);
  weir_ndjson_decoder_free(decoder);
  free(text);
  return status;
}

/* ---- what came back -------------------------------------------------------------------------------------- */

static const char *text_of(yyjson_val *value) {
  return yyjson_is_raw(value) ? yyjson_get_raw(value) : yyjson_get_str(value);
}

/* A time as ISO 8601 writes it, without what may be left out: T, zone, zeros behind the point. */
static void plain_time(const char *text, char *out, size_t size) {
  snprintf(out, size, "%s", text);
  size_t n = strlen(out);
  for (char *space = strchr(out, ' '); space; space = NULL) *space = 'T';
  if (n && out[n - 1] == 'Z') out[--n] = 0;
  if (n > 6 && strcmp(out + n - 6, "+00:00") == 0) out[n -= 6] = 0;
  if (!strchr(out, '.')) return;
  while (out[n - 1] == '0') out[--n] = 0;
  if (out[n - 1] == '.') out[--n] = 0;
}

static int same_time(yyjson_val *sent, yyjson_val *got) {
  char a[64], b[64];
  if (!yyjson_is_str(sent) || !yyjson_is_str(got)) return 0;
  plain_time(yyjson_get_str(sent), a, sizeof(a));
  plain_time(yyjson_get_str(got), b, sizeof(b));
  return strcmp(a, b) == 0;
}

static int same_float(yyjson_val *sent, yyjson_val *got, int narrow) {
  const char *a = text_of(sent), *b = text_of(got);
  if (!a || !b || yyjson_get_type(sent) != yyjson_get_type(got)) return 0;
  if (yyjson_is_str(sent)) return strcmp(a, b) == 0; /* NaN */
  double x = strtod(a, NULL), y = strtod(b, NULL);
  return narrow ? (float)x == (float)y : x == y;
}

/* A list or struct may come back as its own JSON. */
static int same_nested(yyjson_val *sent, yyjson_val *got) {
  if (!yyjson_is_str(got)) return yyjson_equals(sent, got);
  yyjson_doc *doc =
      yyjson_read(yyjson_get_str(got), yyjson_get_len(got), YYJSON_READ_NUMBER_AS_RAW);
  int same = doc && yyjson_equals(sent, yyjson_doc_get_root(doc));
  yyjson_doc_free(doc);
  return same;
}

int adbc_same(const struct ArrowSchema *field, yyjson_val *sent, yyjson_val *got) {
  const char *a = text_of(sent), *b = text_of(got);
  struct ArrowSchemaView view;
  if (!sent || !got || ArrowSchemaViewInit(&view, field, NULL) != NANOARROW_OK) return 0;
  if (yyjson_is_null(sent) || yyjson_is_null(got))
    return yyjson_is_null(sent) && yyjson_is_null(got);
  switch (view.type) {
    case NANOARROW_TYPE_BOOL:
      if (yyjson_is_bool(got)) return yyjson_get_bool(sent) == yyjson_get_bool(got);
      return yyjson_is_raw(got) && strcmp(b, yyjson_get_bool(sent) ? "1" : "0") == 0;
    case NANOARROW_TYPE_HALF_FLOAT:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_DOUBLE:
      return same_float(sent, got, view.type != NANOARROW_TYPE_DOUBLE);
    case NANOARROW_TYPE_DATE32:
    case NANOARROW_TYPE_DATE64:
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64:
    case NANOARROW_TYPE_TIMESTAMP:
      return same_time(sent, got);
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256: /* a number, or the text of it */
      return a && b && strcmp(a, b) == 0;
    default:
      if (!a) return same_nested(sent, got);
      return b && yyjson_get_type(sent) == yyjson_get_type(got) && strcmp(a, b) == 0;
  }
}
