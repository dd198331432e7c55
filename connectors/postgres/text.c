/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and bytes, lists, and what stands for other values. */
#include <ctype.h>

#include "column.h"

/* ---- texts and bytes -------------------------------------------------------------------------------- */

static uint8_t *put_bytes(uint8_t *at, const uint8_t *bytes, size_t size) {
  at = pg_put32(at, (uint32_t)size);
  if (size) memcpy(at, bytes, size);
  return at + size;
}

uint8_t *pg_put_text(const pg_column *column, int64_t i, uint8_t *at) {
  const int32_t *offsets = (const int32_t *)column->values + i;
  return put_bytes(at, column->bytes + offsets[0], (size_t)(offsets[1] - offsets[0]));
}

uint8_t *pg_put_large(const pg_column *column, int64_t i, uint8_t *at) {
  const int64_t *offsets = (const int64_t *)column->values + i;
  return put_bytes(at, column->bytes + offsets[0], (size_t)(offsets[1] - offsets[0]));
}

uint8_t *pg_put_fixed(const pg_column *column, int64_t i, uint8_t *at) {
  const uint8_t *bytes = column->values;
  return put_bytes(at, bytes + i * column->width, (size_t)column->width);
}

/* Arrow columnar format, "Variable-size Binary View Layout". */
typedef struct text_view {
  int32_t size;
  uint8_t start[4];
  int32_t buffer, offset;
} text_view;

const uint8_t *pg_text(const pg_column *column, int64_t i, size_t *size) {
  switch (column->from) {
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY_VIEW: {
      const text_view *view = (const text_view *)column->values + i;
      *size = (size_t)view->size;
      if (view->size <= 12) return view->start;
      const uint8_t *bytes = column->array->buffers[2 + view->buffer];
      return bytes + view->offset;
    }
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_LARGE_BINARY: {
      const int64_t *offsets = (const int64_t *)column->values + i;
      *size = (size_t)(offsets[1] - offsets[0]);
      return column->bytes + offsets[0];
    }
    default: {
      const int32_t *offsets = (const int32_t *)column->values + i;
      *size = (size_t)(offsets[1] - offsets[0]);
      return column->bytes + offsets[0];
    }
  }
}

uint8_t *pg_put_view(const pg_column *column, int64_t i, uint8_t *at) {
  size_t size;
  const uint8_t *bytes = pg_text(column, i, &size);
  return put_bytes(at, bytes, size);
}

/* jsonb_recv: a version and the text. */
static uint8_t *put_jsonb(uint8_t *at, const uint8_t *text, size_t size) {
  at = pg_put32(at, (uint32_t)(size + 1));
  *at++ = 1;
  if (size) memcpy(at, text, size);
  return at + size;
}

uint8_t *pg_put_text_jsonb(const pg_column *column, int64_t i, uint8_t *at) {
  size_t size;
  const uint8_t *text = pg_text(column, i, &size);
  return put_jsonb(at, text, size);
}

/* Characters of UTF-8: all bytes but those that go on. */
static int64_t characters(const uint8_t *text, size_t size) {
  int64_t n = 0;
  for (size_t k = 0; k < size; k++) n += (text[k] & 0xC0) != 0x80;
  return n;
}

/* Whether there is no byte but 1 to 127. */
static bool is_plain(const uint8_t *text, size_t size) {
  const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
  uint64_t bad = 0;
  size_t k = 0;
  for (; k + 8 <= size; k += 8) {
    uint64_t word;
    memcpy(&word, text + k, sizeof(word));
    bad |= word | (word - ones); /* the top bit: of the byte, or borrowed by a zero */
  }
  for (; k < size; k++) bad |= text[k] - UINT64_C(1) > 126 ? high : 0;
  return !(bad & high);
}

/* The length of the character that begins here, or 0: RFC 3629, section 4. */
static size_t character(const uint8_t *at, size_t left) {
  uint8_t first = at[0], low = 0x80, high = 0xBF;
  size_t size = first < 0x80   ? 1
                : first < 0xC2 ? 0
                : first < 0xE0 ? 2
                : first < 0xF0 ? 3
                : first < 0xF5 ? 4
                               : 0;
  if (size > left) return 0;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  for (size_t k = 1; k < size; k++, low = 0x80, high = 0xBF)
    if (at[k] < low || at[k] > high) return 0;
  return size;
}

/* UTF-8 without NUL, which is what PostgreSQL calls a text. */
static bool is_text(const uint8_t *text, size_t size) {
  if (is_plain(text, size)) return true;
  for (size_t k = 0; k < size;) {
    size_t n = text[k] ? character(text + k, size - k) : 0;
    if (!n) return false;
    k += n;
  }
  return true;
}

/* Texts, no longer than varchar(n) lets in. */
int64_t pg_check_text(const pg_column *column, int64_t i, int64_t n) {
  if (!n) return -1;
  bool views = column->from == NANOARROW_TYPE_STRING_VIEW;
  size_t size = 0;
  if (!views && !column->longest) {
    const uint8_t *first = pg_text(column, i, &size);
    const uint8_t *last = pg_text(column, i + n - 1, &size);
    if (is_plain(first, (size_t)(last - first) + size)) return -1;
  }
  for (int64_t end = i + n; i < end; i++) {
    const uint8_t *text = pg_text(column, i, &size);
    if (!is_text(text, size)) return i;
    if (column->longest && characters(text, size) > column->longest) return i;
  }
  return -1;
}

/* "6f1c9dd0-..": 32 hex digits in groups of 8, 4, 4, 4 and 12. */
static bool uuid_parse(const uint8_t *text, size_t size, uint8_t out[16]) {
  if (size != 36) return false;
  size_t n = 0;
  for (size_t k = 0; k < size; k++) {
    if (k == 8 || k == 13 || k == 18 || k == 23) {
      if (text[k] != '-') return false;
      continue;
    }
    if (!isxdigit(text[k])) return false;
    int digit = text[k] <= '9' ? text[k] - '0' : (text[k] | 0x20) - 'a' + 10;
    out[n / 2] = (uint8_t)(n % 2 ? out[n / 2] | digit : digit << 4);
    n++;
  }
  return true;
}

uint8_t *pg_put_uuid_text(const pg_column *column, int64_t i, uint8_t *at) {
  size_t size;
  uint8_t uuid[16] = {0};
  const uint8_t *text = pg_text(column, i, &size);
  uuid_parse(text, size, uuid);
  return put_bytes(at, uuid, sizeof(uuid));
}

int64_t pg_check_uuid_text(const pg_column *column, int64_t i, int64_t n) {
  uint8_t uuid[16] = {0};
  for (int64_t end = i + n; i < end; i++) {
    size_t size;
    const uint8_t *text = pg_text(column, i, &size);
    if (!uuid_parse(text, size, uuid)) return i;
  }
  return -1;
}

/* ---- lists -------------------------------------------------------------------------------------------- */

void pg_list_range(const pg_column *column, int64_t i, int64_t *first, int64_t *n) {
  const int32_t *near = column->values;
  const int64_t *far = column->values;
  const void *sizes = column->bytes;
  switch (column->from) {
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      *first = i * column->width;
      *n = column->width;
      break;
    case NANOARROW_TYPE_LARGE_LIST:
      *first = far[i];
      *n = far[i + 1] - far[i];
      break;
    case NANOARROW_TYPE_LIST_VIEW:
      *first = near[i];
      *n = ((const int32_t *)sizes)[i];
      break;
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
      *first = far[i];
      *n = ((const int64_t *)sizes)[i];
      break;
    default:
      *first = near[i];
      *n = near[i + 1] - near[i];
  }
  *first += column->child->array->offset;
}

/* array_recv: dimensions, whether there are nulls, type of the items, and for the one dimension its length
 * and lower bound. An array without items has no dimension. */
uint8_t *pg_put_array(const pg_column *column, int64_t i, uint8_t *at) {
  int64_t first, n;
  uint8_t *start = at;
  const pg_column *items = column->child;
  pg_list_range(column, i, &first, &n);
  at = pg_put32(pg_put32(at + 4, n > 0), items->validity != NULL);
  at = pg_put32(at, column->to.oid);
  if (n > 0) at = pg_put32(pg_put32(at, (uint32_t)n), 1);
  for (int64_t k = first; k < first + n; k++) at = pg_put(items, k, at);
  pg_put32(start, (uint32_t)(at - start - 4));
  return at;
}

/* ---- dictionaries, runs, nothing, JSON ----------------------------------------------------------------- */

static int64_t end_of_run(const struct ArrowArray *ends, int64_t width, int64_t k) {
  const void *values = ends->buffers[1];
  k += ends->offset;
  return width == 2   ? ((const int16_t *)values)[k]
         : width == 4 ? ((const int32_t *)values)[k]
                      : ((const int64_t *)values)[k];
}

static int64_t find_run(const pg_column *column, int64_t i) {
  const struct ArrowArray *ends = column->array->children[0];
  int64_t low = 0, high = ends->length - 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (end_of_run(ends, column->width, middle) > i) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

int64_t pg_column_place(const pg_column *column, int64_t i) {
  int64_t place;
  const void *values = column->values;
  if (column->from == NANOARROW_TYPE_RUN_END_ENCODED) {
    place = find_run(column, i);
  } else {
    switch (column->width) {
      case 1:
        place = ((const uint8_t *)values)[i];
        break;
      case 2:
        place = ((const uint16_t *)values)[i];
        break;
      case 4:
        place = ((const uint32_t *)values)[i];
        break;
      default:
        place = ((const int64_t *)values)[i];
    }
  }
  return place + column->child->array->offset;
}

uint8_t *pg_put_indirect(const pg_column *column, int64_t i, uint8_t *at) {
  return pg_put(column->child, pg_column_place(column, i), at);
}

uint8_t *pg_put_nothing(const pg_column *column, int64_t i, uint8_t *at) {
  (void)column, (void)i;
  return pg_put_null(at);
}

/* A line is {"v":VALUE} and LF. */
enum { BEFORE = 5, AFTER = 2 };

size_t pg_json_size(const pg_json *json, int64_t row) {
  return json->ends[row] - (row ? json->ends[row - 1] : 0);
}

uint8_t *pg_put_json(const pg_column *column, int64_t i, uint8_t *at) {
  const pg_json *json = column->json;
  int64_t row = i - column->array->offset;
  const uint8_t *text = json->text + (row ? json->ends[row - 1] : 0) + BEFORE;
  size_t size = pg_json_size(json, row) - BEFORE - AFTER;
  if (size == 4 && memcmp(text, "null", 4) == 0) return pg_put_null(at);
  return column->to.kind == PG_JSONB ? put_jsonb(at, text, size)
                                     : put_bytes(at, text, size);
}
