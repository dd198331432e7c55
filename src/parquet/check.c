/* SPDX-License-Identifier: Apache-2.0 */
/* Values that an Arrow type can hold and its Parquet type cannot. All are looked for before anything of
 * a batch is taken, so that a refused batch leaves no trace. */
#include "leaf.h"
#include "take.h"

/* A page's sizes are int32 (parquet.thrift, PageHeader), and a value is never split. */
#define VALUE_MAX ((int64_t)1 << 30)

weir_status leaf_bad(const parquet_leaf *leaf, int64_t row, const char *what,
                     weir_error *err) {
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "column %d '%s': %s",
                 (int)leaf->column, leaf->name, what);
  return weir_error_at(err, WEIR_E_BAD_DATA, row, leaf->column);
}

static bool fits_decimal(const parquet_leaf *leaf, const uint8_t *value) {
  uint32_t from = leaf->source_width;
  uint32_t width = leaf->width < from ? leaf->width : from;
  uint8_t sign = (uint8_t)-(value[width - 1] >> 7);
  for (uint32_t i = width; i < from; i++) {
    if (value[i] != sign) return false;
  }
  return true;
}

static bool is_null(const struct ArrowArray *array, size_t at) {
  const uint8_t *valid = array->null_count != 0 ? array->buffers[0] : NULL;
  return valid != NULL && (valid[at / 8] >> (at % 8) & 1) == 0;
}

/* What is wrong with the value of a slot, or NULL. */
static const char *fault_of(const parquet_leaf *leaf, const struct ArrowArray *array,
                            size_t slot) {
  const void *values = array->buffers[1];
  switch (leaf->take) {
    case TAKE_SECONDS32: {
      int32_t v = ((const int32_t *)values)[slot];
      return v > INT32_MAX / 1000 || v < INT32_MIN / 1000
                 ? "the time does not fit Parquet's milliseconds"
                 : NULL;
    }
    case TAKE_SECONDS64: {
      int64_t v = ((const int64_t *)values)[slot];
      return v > INT64_MAX / 1000 || v < INT64_MIN / 1000
                 ? "the timestamp does not fit Parquet's milliseconds"
                 : NULL;
    }
    case TAKE_DATE64: {
      int64_t v = ((const int64_t *)values)[slot], day = v / INT64_C(86400000);
      if (v % INT64_C(86400000) != 0) return "the date64 is not a whole number of days";
      return day > INT32_MAX || day < INT32_MIN ? "the date does not fit Parquet's days"
                                                : NULL;
    }
    case TAKE_DECIMAL:
      return fits_decimal(leaf, (const uint8_t *)values + slot * leaf->source_width)
                 ? NULL
                 : "the decimal has more digits than its type's precision";
    case TAKE_MONTHS:
      return ((const int32_t *)values)[slot] < 0 ? "Parquet has no negative intervals"
                                                 : NULL;
    case TAKE_DAY_TIME:
      return ((const int32_t *)values)[2 * slot] < 0 ||
                     ((const int32_t *)values)[2 * slot + 1] < 0
                 ? "Parquet has no negative intervals"
                 : NULL;
    case TAKE_MONTH_DAY_NANO: {
      const uint8_t *value = (const uint8_t *)values + 16 * slot;
      int32_t months, days;
      int64_t nanos;
      memcpy(&months, value, sizeof(months));
      memcpy(&days, value + 4, sizeof(days));
      memcpy(&nanos, value + 8, sizeof(nanos));
      if (months < 0 || days < 0 || nanos < 0) return "Parquet has no negative intervals";
      if (nanos % 1000000 != 0) return "Parquet's intervals have whole milliseconds";
      return nanos / 1000000 > UINT32_MAX
                 ? "the interval does not fit Parquet's 32 bits of milliseconds"
                 : NULL;
    }
    case TAKE_VIEWS:
      return ((const union ArrowBinaryView *)values)[slot].inlined.size > VALUE_MAX
                 ? "the value is longer than 1 GiB, which no Parquet page can hold"
                 : NULL;
    case TAKE_BYTES:
      return arrow_offset_at(values, (int32_t)leaf->source_width, (int64_t)slot + 1) -
                         arrow_offset_at(values, (int32_t)leaf->source_width,
                                         (int64_t)slot) >
                     VALUE_MAX
                 ? "the value is longer than 1 GiB, which no Parquet page can hold"
                 : NULL;
    default:
      return NULL;
  }
}

/* Of a slot without array->offset; with a dictionary, of the value that it names. */
static const char *slot_fault(const parquet_leaf *leaf, const struct ArrowArray *array,
                              size_t slot) {
  const struct ArrowArray *values = array->dictionary;
  if (values == NULL) return fault_of(leaf, array, (size_t)array->offset + slot);
  size_t named = take_index_at(leaf, array, slot), at = (size_t)values->offset + named;
  if (named >= (size_t)values->length) return NULL;
  if (take_may_have_nulls(values) && is_null(values, at)) return NULL;
  return fault_of(leaf, values, at);
}

weir_status leaf_check_slot(const parquet_leaf *leaf, const struct ArrowArray *array,
                            size_t slot, int64_t row, weir_error *err) {
  const char *fault = slot_fault(leaf, array, slot);
  return fault == NULL ? WEIR_OK : leaf_bad(leaf, row, fault, err);
}

/* Whether any of these slots, counted without array->offset, could be refused. */
static bool leaf_can_fail(const parquet_leaf *leaf, const struct ArrowArray *array,
                          int64_t first, int64_t length) {
  if (length == 0) return false;
  switch (leaf->take) {
    case TAKE_SECONDS32:
    case TAKE_SECONDS64:
    case TAKE_DATE64:
    case TAKE_DECIMAL:
    case TAKE_MONTHS:
    case TAKE_DAY_TIME:
    case TAKE_MONTH_DAY_NANO:
      return true;
    case TAKE_VIEWS: {
      const int64_t *sizes = array->buffers[array->n_buffers - 1];
      for (int64_t i = 0; i < array->n_buffers - 3; i++) {
        if (sizes[i] > VALUE_MAX) return true;
      }
      return false;
    }
    case TAKE_BYTES: {
      int32_t width = (int32_t)leaf->source_width;
      return arrow_offset_at(array->buffers[1], width, first + length) -
                 arrow_offset_at(array->buffers[1], width, first) >
             VALUE_MAX;
    }
    default:
      return false;
  }
}

/* Of plain values: whether none can be refused, without a look at the rows that name them. */
static bool are_good(const parquet_leaf *leaf, const struct ArrowArray *values) {
  if (!leaf_can_fail(leaf, values, values->offset, values->length)) return true;
  for (int64_t i = values->offset; i < values->offset + values->length; i++) {
    if (!is_null(values, (size_t)i) && fault_of(leaf, values, (size_t)i) != NULL)
      return false;
  }
  return true;
}

bool leaf_may_fail(const parquet_leaf *leaf, const struct ArrowArray *array) {
  if (array->dictionary != NULL) return !are_good(leaf, array->dictionary);
  return leaf_can_fail(leaf, array, array->offset, array->length);
}

weir_status leaf_check(const parquet_leaf *leaf, const struct ArrowArray *array,
                       weir_error *err) {
  if (array->length == 0 || !leaf_may_fail(leaf, array)) return WEIR_OK;
  for (int64_t i = 0; i < array->length; i++) {
    if (is_null(array, (size_t)(array->offset + i))) continue;
    BASE_TRY(leaf_check_slot(leaf, array, (size_t)i, i, err));
  }
  return WEIR_OK;
}
