/* SPDX-License-Identifier: Apache-2.0 */
#include "decimal.h"

#include "bits.h"

/* Added to a number of magnitude below 2^51, it leaves the nearest whole number in the lowest bits. */
#define ROUNDER 0x1.8p52

PARQUET_INLINE uint64_t bits_of(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof(bits));
  return bits;
}

PARQUET_CLONES
bool decimal_slots(const decimal_range *decimals, const double *values, size_t n,
                   uint32_t *out) {
  double scale = decimals->scale;
  uint64_t first = bits_of(ROUNDER) + (uint64_t)decimals->base, range = decimals->range,
           bad = 0;
  for (size_t i = 0; i < n; i++) {
    double rounded = values[i] * scale + ROUNDER;
    uint64_t slot = bits_of(rounded) - first;
    /* Another value with that nearest whole number, -0 among them, differs from what it stands for. */
    bad |= bits_of((rounded - ROUNDER) / scale) ^ bits_of(values[i]);
    bad |= slot >= range;
    out[i] = (uint32_t)slot;
  }
  return bad == 0;
}

bool decimal_find(const double *values, size_t n, double min, double max, uint32_t span,
                  decimal_range *out) {
  enum { SAMPLE = 256 };
  size_t m = n < SAMPLE ? n : SAMPLE;
  uint32_t slots[SAMPLE];
  static const double scales[] = {1, 10, 100, 1000, 10000};
  for (size_t i = 0; i < sizeof(scales) / sizeof(*scales); i++) {
    double scale = scales[i];
    double low = min * scale, high = max * scale;
    if (!(high - low < span && low > -0x1p50 && high < 0x1p50)) return false;
    /* The next pages are rarely quite within the first one's range. */
    uint64_t slack = (uint64_t)(high - low) / 2 + 32;
    decimal_range found = {.scale = scale,
                           .base = (int64_t)low - (int64_t)slack,
                           .range = (uint64_t)(high - low) + 2 * slack};
    if (!decimal_slots(&found, values, m, slots) ||
        !decimal_slots(&found, values + (n - m), m, slots))
      continue;
    *out = found;
    return true;
  }
  return false;
}
