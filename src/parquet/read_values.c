/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a page, in whatever encoding, to slots of an Arrow array. */
#include "read.h"

weir_status read_reserve(read_context *ctx, base_buf *buf, size_t size, weir_error *err) {
  if (size + PARQUET_SLACK <= buf->capacity) return WEIR_OK;
  size_t before = buf->capacity;
  uint64_t more = size + PARQUET_SLACK - before;
  if (more > ctx->max_batch_bytes - ctx->batch_bytes) {
    return weir_error_set(err, WEIR_E_NOMEM, 0,
                          "a batch would take more than %llu bytes; ask for fewer rows",
                          (unsigned long long)ctx->max_batch_bytes);
  }
  BASE_TRY(parquet_reserve(buf, size, err));
  uint64_t grown = buf->capacity - before;
  ctx->batch_bytes = ctx->max_batch_bytes - ctx->batch_bytes > grown
                         ? ctx->batch_bytes + grown
                         : ctx->max_batch_bytes;
  return WEIR_OK;
}

static weir_status cut(const read_leaf *leaf, weir_error *err) {
  return read_corrupt(leaf, "a page has fewer values than it should", err);
}

/* ---- physical values to slots ------------------------------------------------------------------ */

static void put_narrow(const uint8_t *from, size_t n, uint32_t slot, uint8_t *out) {
  for (size_t i = 0; i < n; i++) memcpy(out + i * slot, from + 4 * i, slot);
}

static void put_decimal_int(const uint8_t *from, size_t n, uint32_t width, uint32_t slot,
                            uint8_t *out) {
  for (size_t i = 0; i < n; i++, from += width, out += slot) {
    memset(out, from[width - 1] & 0x80 ? 0xff : 0, slot);
    memcpy(out, from, width);
  }
}

/* False: the value has more bytes than the slot, and needs them. */
static bool put_decimal(const uint8_t *from, uint32_t width, uint32_t slot,
                        uint8_t *out) {
  uint32_t take = width < slot ? width : slot;
  uint8_t sign = width > 0 && (from[0] & 0x80) != 0 ? 0xff : 0;
  for (uint32_t k = 0; k < take; k++) out[k] = from[width - 1 - k];
  memset(out + take, sign, slot - take);
  for (uint32_t k = 0; k < width - take; k++) {
    if (from[k] != sign) return false;
  }
  return ((out[slot - 1] ^ sign) & 0x80) == 0;
}

static bool put_decimal_bytes(const uint8_t *from, size_t n, uint32_t width,
                              uint32_t slot, uint8_t *out) {
  for (size_t i = 0; i < n; i++, from += width, out += slot) {
    if (!put_decimal(from, width, slot, out)) return false;
  }
  return true;
}

weir_status read_bytes_decimals(read_leaf *leaf, base_buf *out, weir_error *err) {
  uint32_t slot = leaf->type->decimal;
  const uint32_t *offsets = (const uint32_t *)(const void *)leaf->values.data;
  BASE_TRY(parquet_reserve(out, leaf->slots * slot, err));
  for (size_t i = 0; i < leaf->slots; i++) {
    if (!put_decimal(leaf->data.data + offsets[i], offsets[i + 1] - offsets[i], slot,
                     out->data + i * slot))
      return read_corrupt(leaf, "a value does not fit its type", err);
  }
  out->size = leaf->slots * slot;
  return WEIR_OK;
}

/* LogicalTypes.md, "INTERVAL": months, days and milliseconds, each uint32. False: not of this Arrow type. */
static bool put_interval(const uint8_t *from, size_t n, enum read_put put, uint8_t *out) {
  uint32_t months, days, millis;
  for (size_t i = 0; i < n; i++, from += 12) {
    months = parquet_load32(from);
    days = parquet_load32(from + 4);
    millis = parquet_load32(from + 8);
    if (months > INT32_MAX || days > INT32_MAX) return false;
    if (put == PUT_MONTHS) {
      if (days != 0 || millis != 0) return false;
      memcpy(out + 4 * i, &months, 4);
    } else if (put == PUT_DAY_TIME) {
      if (months != 0 || millis > INT32_MAX) return false;
      memcpy(out + 8 * i, &days, 4);
      memcpy(out + 8 * i + 4, &millis, 4);
    } else {
      int64_t nanos = (int64_t)millis * 1000000;
      memcpy(out + 16 * i, &months, 4);
      memcpy(out + 16 * i + 4, &days, 4);
      memcpy(out + 16 * i + 8, &nanos, 8);
    }
  }
  return true;
}

__extension__ typedef __int128 wide;

/* False: beyond the years 1677 to 2262, which is what 64 bits of nanoseconds hold. */
static bool put_int96(const uint8_t *from, size_t n, int64_t *out) {
  enum { JULIAN_1970 = 2440588 };
  for (size_t i = 0; i < n; i++, from += 12) {
    int64_t day = (int64_t)(int32_t)parquet_load32(from + 8) - JULIAN_1970;
    wide nanos = (wide)day * INT64_C(86400000000000) + (int64_t)parquet_load64(from);
    out[i] = (int64_t)nanos;
    if (out[i] != nanos) return false;
  }
  return true;
}

static void put_times(const read_type *type, const void *from, size_t n, void *out) {
  const int32_t *i32 = from;
  const int64_t *i64 = from;
  if (type->put == PUT_SECONDS32) {
    for (size_t i = 0; i < n; i++) ((int32_t *)out)[i] = i32[i] / 1000;
  } else if (type->put == PUT_SECONDS64) {
    for (size_t i = 0; i < n; i++) {
      ((int64_t *)out)[i] = i64[i] / 1000 - (i64[i] % 1000 < 0);
    }
  } else {
    for (size_t i = 0; i < n; i++) ((int64_t *)out)[i] = i32[i] * INT64_C(86400000);
  }
}

static weir_status convert(const read_leaf *leaf, const uint8_t *from, size_t n,
                           uint8_t *out, weir_error *err) {
  const read_type *type = leaf->type;
  bool good = true;
  switch (type->put) {
    case PUT_NARROW:
      put_narrow(from, n, type->slot, out);
      break;
    case PUT_DECIMAL_INT:
      put_decimal_int(from, n, type->width, type->slot, out);
      break;
    case PUT_DECIMAL_BYTES:
      good = put_decimal_bytes(from, n, type->width, type->slot, out);
      break;
    case PUT_MONTHS:
    case PUT_DAY_TIME:
    case PUT_MONTH_DAY_NANO:
      good = put_interval(from, n, type->put, out);
      break;
    case PUT_INT96:
      good = put_int96(from, n, (int64_t *)(void *)out);
      break;
    case PUT_SECONDS32:
    case PUT_SECONDS64:
    case PUT_DATE64:
      put_times(type, from, n, out);
      break;
    default:
      break;
  }
  if (good) return WEIR_OK;
  return read_corrupt(leaf,
                      type->put == PUT_INT96
                          ? "a timestamp is beyond the years 1677 to 2262, which are all "
                            "that nanoseconds hold"
                          : "a value does not fit its type",
                      err);
}

/* ---- bytes ------------------------------------------------------------------------------------- */

/* Where offsets and data of the next values go. */
typedef struct bytes_out {
  uint32_t *offsets; /* the last one that is there */
  uint8_t *data;
} bytes_out;

/* Room for n more values of `size` bytes in all. */
static weir_status bytes_room(read_context *ctx, read_leaf *leaf, size_t n, size_t size,
                              bytes_out *out, weir_error *err) {
  base_buf *values = &leaf->values, *data = &leaf->data;
  if (size > (size_t)INT32_MAX - data->size) {
    weir_error_set(err, WEIR_E_NOMEM, 0,
                   "column '%s': a batch would have more than 2 GiB of it; ask for fewer "
                   "rows",
                   leaf->type->name);
    return weir_error_at(err, WEIR_E_NOMEM, -1, leaf->type->column);
  }
  BASE_TRY(read_reserve(ctx, values, values->size + 4 * (n + 1), err));
  BASE_TRY(read_reserve(ctx, data, data->size + size, err));
  if (values->size == 0) {
    memset(values->data, 0, 4);
    values->size = 4;
  }
  out->offsets = (uint32_t *)(void *)(values->data + values->size - 4);
  out->data = data->data + data->size;
  return WEIR_OK;
}

static void bytes_done(read_leaf *leaf, size_t n, const bytes_out *out) {
  leaf->values.size += 4 * n;
  leaf->data.size = (size_t)(out->data - leaf->data.data);
}

/* Copies in steps of 16 bytes; both sides have PARQUET_SLACK behind them. */
PARQUET_INLINE void copy_short(uint8_t *to, const uint8_t *from, size_t size) {
  if (PARQUET_UNLIKELY(size > 48)) {
    memcpy(to, from, size);
    return;
  }
  memcpy(to, from, 16);
  if (size > 16) memcpy(to + 16, from + 16, 16);
  if (size > 32) memcpy(to + 32, from + 32, 16);
}

/* PLAIN: a length of 4 bytes before each value. */
static weir_status plain_bytes(read_context *ctx, read_leaf *leaf, size_t n,
                               weir_error *err) {
  read_page *page = &leaf->page;
  bytes_out out;
  const uint8_t *at = page->at;
  size_t total = 0;
  for (size_t i = 0; i < n; i++) {
    size_t have = (size_t)(page->end - at);
    if (have < 4 || parquet_load32(at) > have - 4) return cut(leaf, err);
    total += parquet_load32(at);
    at += 4 + parquet_load32(at);
  }
  BASE_TRY(bytes_room(ctx, leaf, n, total, &out, err));
  uint32_t end = *out.offsets;
  at = page->at;
  for (size_t i = 0; i < n; i++) {
    uint32_t size = parquet_load32(at);
    copy_short(out.data, at + 4, size);
    out.data += size;
    at += 4 + size;
    out.offsets[i + 1] = end += size;
  }
  page->at = at;
  bytes_done(leaf, n, &out);
  return WEIR_OK;
}

enum { PART = 1024 };

static weir_status delta_length_bytes(read_context *ctx, read_leaf *leaf, size_t n,
                                      weir_error *err) {
  read_page *page = &leaf->page;
  while (n > 0) {
    uint32_t sizes[PART];
    size_t part = n < PART ? n : PART;
    uint64_t total = 0;
    bytes_out out;
    if (!decode_delta_u32(&page->lengths, sizes, part)) return cut(leaf, err);
    for (size_t i = 0; i < part; i++) total += sizes[i];
    if (total > (uint64_t)(page->end - page->at)) return cut(leaf, err);
    BASE_TRY(bytes_room(ctx, leaf, part, (size_t)total, &out, err));
    uint32_t end = *out.offsets;
    for (size_t i = 0; i < part; i++) out.offsets[i + 1] = end += sizes[i];
    if (total > 0) memcpy(out.data, page->at, (size_t)total);
    out.data += total;
    page->at += total;
    bytes_done(leaf, part, &out);
    n -= part;
  }
  return WEIR_OK;
}

/* "Delta Strings (DELTA_BYTE_ARRAY = 7)": the value before, cut to a prefix, and a suffix. The value is
 * made in leaf->last. */
static weir_status next_delta_bytes(read_leaf *leaf, uint32_t prefix, uint32_t suffix,
                                    weir_error *err) {
  read_page *page = &leaf->page;
  if (prefix > leaf->last.size || suffix > (uint64_t)(page->end - page->at))
    return cut(leaf, err);
  leaf->last.size = prefix;
  BASE_TRY(parquet_reserve(&leaf->last, (size_t)prefix + suffix, err));
  if (suffix > 0) memcpy(leaf->last.data + prefix, page->at, suffix);
  leaf->last.size += suffix;
  page->at += suffix;
  return WEIR_OK;
}

/* To `fixed` if that is not NULL, else to offsets and data. */
static weir_status delta_bytes(read_context *ctx, read_leaf *leaf, size_t n,
                               uint8_t *fixed, weir_error *err) {
  read_page *page = &leaf->page;
  uint32_t width = leaf->type->width;
  for (size_t done = 0; done < n;) {
    uint32_t prefixes[PART], suffixes[PART];
    size_t part = n - done < PART ? n - done : PART;
    if (!decode_delta_u32(&page->delta, prefixes, part) ||
        !decode_delta_u32(&page->lengths, suffixes, part))
      return cut(leaf, err);
    for (size_t i = 0; i < part; i++) {
      BASE_TRY(next_delta_bytes(leaf, prefixes[i], suffixes[i], err));
      size_t size = leaf->last.size;
      if (fixed != NULL) {
        if (size != width) return read_corrupt(leaf, "a value has another length", err);
        memcpy(fixed + (done + i) * width, leaf->last.data, width);
        continue;
      }
      bytes_out out;
      BASE_TRY(bytes_room(ctx, leaf, 1, size, &out, err));
      out.offsets[1] = out.offsets[0] + (uint32_t)size;
      if (size > 0) memcpy(out.data, leaf->last.data, size);
      out.data += size;
      bytes_done(leaf, 1, &out);
    }
    done += part;
  }
  return WEIR_OK;
}

/* ---- dictionaries ------------------------------------------------------------------------------ */

weir_status read_dictionary(read_context *ctx, read_leaf *leaf, const uint8_t *data,
                            size_t size, size_t n, weir_error *err) {
  const read_type *type = leaf->type;
  leaf->entries = (uint32_t)n;
  if (type->type == PARQUET_BOOLEAN)
    return read_corrupt(leaf, "booleans have no dictionary", err);
  if (n > size / (type->width > 0 ? type->width : 4))
    return read_corrupt(leaf, "its dictionary has fewer entries than it should", err);
  if (type->put != PUT_BYTES) {
    BASE_TRY(parquet_reserve(&leaf->dictionary, n * type->slot, err));
    BASE_TRY(parquet_reserve(&ctx->physical, n * type->width, err));
    uint8_t *to = type->put == PUT_COPY ? leaf->dictionary.data : ctx->physical.data;
    memcpy(to, data, n * type->width);
    return convert(leaf, ctx->physical.data, n, leaf->dictionary.data, err);
  }
  BASE_TRY(parquet_reserve(&leaf->dictionary, size, err));
  BASE_TRY(parquet_reserve(&leaf->dictionary_offsets, 4 * (n + 1), err));
  uint32_t *offsets = (uint32_t *)(void *)leaf->dictionary_offsets.data;
  uint8_t *out = leaf->dictionary.data;
  const uint8_t *end = data + size;
  offsets[0] = 0;
  for (size_t i = 0; i < n; i++) {
    size_t have = (size_t)(end - data);
    if (have < 4 || parquet_load32(data) > have - 4)
      return read_corrupt(leaf, "its dictionary is cut", err);
    uint32_t length = parquet_load32(data);
    if (length > 0) memcpy(out + offsets[i], data + 4, length);
    offsets[i + 1] = offsets[i] + length;
    data += 4 + length;
  }
  return WEIR_OK;
}

PARQUET_CLONES
static uint32_t greatest(const uint32_t *values, size_t n) {
  uint32_t most = 0;
  for (size_t i = 0; i < n; i++) most = values[i] > most ? values[i] : most;
  return most;
}

#define GATHER(name, type)                                                      \
  static void name(const void *from, const uint32_t *at, size_t n, void *out) { \
    const type *values = from;                                                  \
    type *to = out;                                                             \
    for (size_t i = 0; i < n; i++) to[i] = values[at[i]];                       \
  }

typedef struct sixteen {
  uint64_t low, high;
} sixteen;

GATHER(gather1, uint8_t)
GATHER(gather2, uint16_t)
GATHER(gather4, uint32_t)
GATHER(gather8, uint64_t)
GATHER(gather16, sixteen)

static void gather(const uint8_t *from, const uint32_t *at, size_t n, uint32_t slot,
                   uint8_t *out) {
  switch (slot) {
    case 1:
      gather1(from, at, n, out);
      break;
    case 2:
      gather2(from, at, n, out);
      break;
    case 4:
      gather4(from, at, n, out);
      break;
    case 8:
      gather8(from, at, n, out);
      break;
    case 16:
      gather16(from, at, n, out);
      break;
    default:
      for (size_t i = 0; i < n; i++)
        memcpy(out + i * slot, from + (size_t)at[i] * slot, slot);
  }
}

static weir_status gather_bytes(read_context *ctx, read_leaf *leaf, const uint32_t *at,
                                size_t n, weir_error *err) {
  const uint32_t *from = (const uint32_t *)(const void *)leaf->dictionary_offsets.data;
  const uint8_t *data = leaf->dictionary.data;
  uint64_t total = 0;
  bytes_out out;
  for (size_t i = 0; i < n; i++) total += from[at[i] + 1] - from[at[i]];
  BASE_TRY(bytes_room(ctx, leaf, n, (size_t)total, &out, err));
  uint32_t end = *out.offsets;
  for (size_t i = 0; i < n; i++) {
    uint32_t start = from[at[i]], size = from[at[i] + 1] - start;
    copy_short(out.data, data + start, size);
    out.data += size;
    out.offsets[i + 1] = end += size;
  }
  bytes_done(leaf, n, &out);
  return WEIR_OK;
}

static weir_status looked_up(read_context *ctx, read_leaf *leaf, size_t n, uint8_t *out,
                             weir_error *err) {
  BASE_TRY(parquet_reserve(&ctx->indices, 4 * n, err));
  uint32_t *at = (uint32_t *)(void *)ctx->indices.data;
  if (!decode_hybrid_u32(&leaf->page.numbers, at, n)) return cut(leaf, err);
  if (n > 0 && greatest(at, n) >= leaf->entries)
    return read_corrupt(leaf, "a number is not in its dictionary", err);
  if (leaf->type->put == PUT_BYTES) return gather_bytes(ctx, leaf, at, n, err);
  gather(leaf->dictionary.data, at, n, leaf->type->slot, out);
  return WEIR_OK;
}

/* ---- all --------------------------------------------------------------------------------------- */

static weir_status physical(read_context *ctx, read_leaf *leaf, size_t n, uint8_t *out,
                            weir_error *err) {
  read_page *page = &leaf->page;
  size_t width = leaf->type->width;
  switch (page->encoding) {
    case PARQUET_PLAIN:
      if (n > (size_t)(page->end - page->at) / width) return cut(leaf, err);
      memcpy(out, page->at, n * width);
      page->at += n * width;
      return WEIR_OK;
    case PARQUET_DELTA_BINARY_PACKED:
      if (width == 8 ? decode_delta_u64(&page->delta, (uint64_t *)(void *)out, n)
                     : decode_delta_u32(&page->delta, (uint32_t *)(void *)out, n))
        return WEIR_OK;
      return cut(leaf, err);
    case PARQUET_DELTA_BYTE_ARRAY:
      return delta_bytes(ctx, leaf, n, out, err);
    default: /* BYTE_STREAM_SPLIT */
      if (n > page->split_all - page->split_at) return cut(leaf, err);
      decode_split(page->at, page->split_all, page->split_at, n, width, out);
      page->split_at += n;
      return WEIR_OK;
  }
}

static weir_status booleans(read_leaf *leaf, size_t n, uint8_t *out, size_t bit,
                            weir_error *err) {
  read_page *page = &leaf->page;
  if (page->encoding == PARQUET_RLE)
    return decode_hybrid_bits(&page->numbers, out, bit, n) ? WEIR_OK : cut(leaf, err);
  if (page->bit + n > 8 * (size_t)(page->end - page->at)) return cut(leaf, err);
  bits_copy(out, bit, page->at, page->bit, n);
  page->bit += n;
  return WEIR_OK;
}

weir_status read_values(read_context *ctx, read_leaf *leaf, size_t n, uint8_t *out,
                        size_t bit, weir_error *err) {
  const read_type *type = leaf->type;
  if (n == 0) return WEIR_OK;
  if (type->put == PUT_NOTHING)
    return read_corrupt(leaf, "it has no type, but a value", err);
  if (type->put == PUT_BITS) return booleans(leaf, n, out, bit, err);
  if (leaf->page.encoding == PARQUET_RLE_DICTIONARY)
    return looked_up(ctx, leaf, n, out, err);
  if (type->put == PUT_BYTES) {
    switch (leaf->page.encoding) {
      case PARQUET_PLAIN:
        return plain_bytes(ctx, leaf, n, err);
      case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
        return delta_length_bytes(ctx, leaf, n, err);
      default:
        return delta_bytes(ctx, leaf, n, NULL, err);
    }
  }
  if (type->put == PUT_COPY) return physical(ctx, leaf, n, out, err);
  BASE_TRY(parquet_reserve(&ctx->physical, n * type->width, err));
  BASE_TRY(physical(ctx, leaf, n, ctx->physical.data, err));
  return convert(leaf, ctx->physical.data, n, out, err);
}
