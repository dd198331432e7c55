/* SPDX-License-Identifier: Apache-2.0 */
#include "partition_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define NAME_BYTES_MAX 200 /* leaves room for the value beside it */

/* ---- types -------------------------------------------------------------------------------------- */

/* Nanoseconds are not among them: Polars reads six digits. Nor are decimals and floats: pyarrow reads no
 * decimal from a folder's name, and of floats NaN and -0 are no names to meet again. */
static bool timestamp_type(const char *format, file_partition_type *out) {
  static const char units[] = "smu";
  const char *unit = format[2] ? strchr(units, format[2]) : NULL;
  if (!unit || format[3] != ':') return false;
  out->kind = PARTITION_TIMESTAMP;
  out->width = 8;
  out->digits = 3 * (int)(unit - units);
  out->utc = format[4] != 0;
  return true;
}

static bool value_type(const char *format, file_partition_type *out) {
  static const char integers[] = "cCsSiIlL";
  const char *at = strlen(format) == 1 ? strchr(integers, *format) : NULL;
  if (at) {
    out->kind = (at - integers) % 2 ? PARTITION_UNSIGNED : PARTITION_SIGNED;
    out->width = 1 << (at - integers) / 2;
    return true;
  }
  if (strncmp(format, "ts", 2) == 0) return timestamp_type(format, out);
  static const struct {
    const char *format;
    file_partition_kind kind;
    int width;
  } others[] = {{"b", PARTITION_BOOL, 0},
                {"tdD", PARTITION_DATE, 4},
                {"u", PARTITION_TEXT, 0},
                {"U", PARTITION_LARGE_TEXT, 0},
                {"vu", PARTITION_TEXT_VIEW, 0}};
  for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
    if (strcmp(format, others[i].format) != 0) continue;
    out->kind = others[i].kind;
    out->width = others[i].width;
    return true;
  }
  return false;
}

bool file_partition_type_of(const struct ArrowSchema *field, file_partition_type *out) {
  file_partition_type type = {0}, index = {0};
  if (field->dictionary) {
    if (!value_type(field->format, &index) || field->dictionary->dictionary) return false;
    type.index_width = index.width;
    field = field->dictionary;
  }
  if (!value_type(field->format, &type)) return false;
  *out = type;
  return true;
}

/* ---- values ------------------------------------------------------------------------------------- */

static bool is_null(const struct ArrowArray *array, int64_t at) {
  const uint8_t *valid = array->null_count ? array->buffers[0] : NULL;
  return valid && !(valid[at >> 3] >> (at & 7) & 1);
}

/* The low bytes of a value of `width`, zeros above. */
static uint64_t fixed_at(const void *values, int width, int64_t at) {
  switch (width) {
    case 1:
      return ((const uint8_t *)values)[at];
    case 2:
      return ((const uint16_t *)values)[at];
    case 4:
      return ((const uint32_t *)values)[at];
    default:
      return ((const uint64_t *)values)[at];
  }
}

int64_t file_partition_slot(const file_partition_column_view *view, int64_t row) {
  const struct ArrowArray *array = view->array;
  int64_t at = array->offset + row;
  if (is_null(array, at)) return -1;
  if (!view->type->index_width) return at;
  uint64_t index = fixed_at(array->buffers[1], view->type->index_width, at);
  if (index >= (uint64_t)view->values->length) return -2;
  at = view->values->offset + (int64_t)index;
  return is_null(view->values, at) ? -1 : at;
}

typedef struct text {
  const uint8_t *p;
  size_t n;
} text;

static text text_at(const file_partition_column_view *view, int64_t slot) {
  const struct ArrowArray *values = view->values;
  if (view->type->kind == PARTITION_TEXT) {
    const int32_t *offsets = values->buffers[1];
    return (text){(const uint8_t *)values->buffers[2] + offsets[slot],
                  (size_t)(offsets[slot + 1] - offsets[slot])};
  }
  if (view->type->kind == PARTITION_LARGE_TEXT) {
    const int64_t *offsets = values->buffers[1];
    return (text){(const uint8_t *)values->buffers[2] + offsets[slot],
                  (size_t)(offsets[slot + 1] - offsets[slot])};
  }
  /* "Variable-size Binary View Layout": length, then 12 bytes, or a prefix, a buffer and an offset. */
  const uint8_t *raw = (const uint8_t *)values->buffers[1] + 16 * slot;
  int32_t field[4];
  memcpy(field, raw, sizeof(field));
  if (field[0] <= 12) return (text){raw + 4, (size_t)field[0]};
  return (text){(const uint8_t *)values->buffers[2 + field[2]] + field[3],
                (size_t)field[0]};
}

static bool is_text(const file_partition_column_view *view) {
  return view->type->kind >= PARTITION_TEXT;
}

static uint64_t number_at(const file_partition_column_view *view, int64_t slot) {
  const void *values = view->values->buffers[1];
  if (view->type->kind == PARTITION_BOOL)
    return ((const uint8_t *)values)[slot >> 3] >> (slot & 7) & 1;
  return fixed_at(values, view->type->width, slot);
}

uint64_t file_partition_hash(const file_partition_column_view *view, int64_t slot) {
  if (slot < 0) return 0x9e3779b97f4a7c15u;
  if (is_text(view)) {
    text t = text_at(view, slot);
    return t.n ? XXH3_64bits(t.p, t.n) : 1;
  }
  uint64_t h = number_at(view, slot) + 0x632be59bd9b4e019u;
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
  return (h ^ h >> 32) * 0xd6e8feb86659fd93u;
}

bool file_partition_same(const file_partition_column_view *view, int64_t a, int64_t b) {
  if (a == b) return true;
  if (a < 0 || b < 0) return false;
  if (!is_text(view)) return number_at(view, a) == number_at(view, b);
  text x = text_at(view, a), y = text_at(view, b);
  return x.n == y.n && (!x.n || memcmp(x.p, y.p, x.n) == 0);
}

/* ---- names -------------------------------------------------------------------------------------- */

bool file_partition_plain(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_' || byte == '.' ||
         byte >= 0x80;
}

bool file_partition_name_valid(const char *name, size_t size) {
  /* Readers pass over folders that begin with "_" or ".". */
  if (!size || size > NAME_BYTES_MAX || *name == '_' || *name == '.') return false;
  for (size_t i = 0; i < size; i++) {
    if (!file_partition_plain((uint8_t)name[i]) && name[i] != ' ') return false;
  }
  return true;
}

/* The size of the character at `p`, or 0 when it is no UTF-8 (Unicode 15, table 3-7). */
static size_t utf8_size(const uint8_t *p, size_t n) {
  size_t size = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
  if (!size || *p > 0xf4 || size > n) return 0;
  for (size_t i = 1; i < size; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
  }
  if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
      (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)) {
    return 0;
  }
  return size;
}

static const char *format_text(text t, char *out, size_t *size) {
  static const char hex[] = "0123456789ABCDEF";
  size_t n = 0;
  if (t.n == strlen(PARTITION_NULL) && memcmp(t.p, PARTITION_NULL, t.n) == 0)
    return "the text is what stands for null in folders' names";
  for (size_t i = 0; i < t.n;) {
    size_t length = utf8_size(t.p + i, t.n - i);
    if (!length) return "the text is not UTF-8";
    bool plain = file_partition_plain(t.p[i]);
    if (n + (plain ? length : 3) > PARTITION_COMPONENT_MAX)
      return "the value is too long for a folder's name";
    if (plain) {
      memcpy(out + n, t.p + i, length);
      n += length;
    } else {
      out[n++] = '%';
      out[n++] = hex[t.p[i] >> 4];
      out[n++] = hex[t.p[i] & 15];
    }
    i += length;
  }
  *size = n;
  return NULL;
}

/* Year, month and day of a day since 1970-01-01 in the proleptic Gregorian calendar. Years are counted
 * from March, so that the leap day comes last; 146097 days make 400 years. */
static const char *format_day(int64_t day, char *out, size_t *size) {
  if (day < -719162 || day > 2932896)
    return "the year is not within 1 to 9999, which is what readers of folders' names "
           "know";
  day += 719468;
  int64_t era = day / 146097, of_era = day - era * 146097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  int64_t month = (5 * of_year + 2) / 153;
  int64_t in_month = of_year - (153 * month + 2) / 5 + 1;
  month += month < 10 ? 3 : -9;
  year += era * 400 + (month <= 2);
  *size =
      (size_t)snprintf(out, PARTITION_COMPONENT_MAX,
                       "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year, month, in_month);
  return NULL;
}

/* In UTC, with all digits of the unit: 2024-02-29%2012%3A00%3A00.000000, and Z when there is a zone. */
static const char *format_timestamp(const file_partition_type *type, int64_t value,
                                    char *out, size_t *size) {
  int64_t per_second = type->digits == 0 ? 1 : type->digits == 3 ? 1000 : 1000000;
  int64_t fraction = value % per_second, seconds = value / per_second;
  if (fraction < 0) fraction += per_second, seconds--;
  int64_t of_day = seconds % 86400, day = seconds / 86400;
  if (of_day < 0) of_day += 86400, day--;
  const char *wrong = format_day(day, out, size);
  if (wrong) return wrong;
  size_t n = *size, room = PARTITION_COMPONENT_MAX;
  n +=
      (size_t)snprintf(out + n, room - n, "%%20%02d%%3A%02d%%3A%02d",
                       (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));
  if (type->digits)
    n += (size_t)snprintf(out + n, room - n, ".%0*d", type->digits, (int)fraction);
  if (type->utc) out[n++] = 'Z';
  *size = n;
  return NULL;
}

const char *file_partition_format(const file_partition_column_view *view, int64_t slot,
                                  char *out, size_t *size) {
  const file_partition_type *type = view->type;
  if (is_text(view)) return format_text(text_at(view, slot), out, size);
  uint64_t number = number_at(view, slot);
  int unused = 64 - 8 * type->width;
  /* The sign of a narrow value is its own highest bit. */
  int64_t value = type->width ? (int64_t)(number << unused) >> unused : (int64_t)number;
  switch (type->kind) {
    case PARTITION_DATE:
      return format_day(value, out, size);
    case PARTITION_TIMESTAMP:
      return format_timestamp(type, value, out, size);
    case PARTITION_BOOL:
      *size =
          (size_t)snprintf(out, PARTITION_COMPONENT_MAX, "%s", number ? "true" : "false");
      return NULL;
    case PARTITION_SIGNED:
      *size = (size_t)snprintf(out, PARTITION_COMPONENT_MAX, "%" PRId64, value);
      return NULL;
    default:
      *size = (size_t)snprintf(out, PARTITION_COMPONENT_MAX, "%" PRIu64, number);
      return NULL;
  }
}
