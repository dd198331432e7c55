/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of texts in which nothing needs an escape or quotes, for the encoders. */
#ifndef FORMAT_PLAIN_H
#define FORMAT_PLAIN_H

#include "format/digits.h"

#if defined(__SSE2__)
#include <emmintrin.h>

/* Which bytes are not plain, by their highest bit. */
typedef __m128i (*format_special)(const void *context, __m128i bytes);

/* Copies from[0 .. n) and returns whether all of it is ASCII and plain. Reads no byte beyond it: a short text is
 * two words that overlap. */
static inline bool format_copy_plain(uint8_t *to, const uint8_t *from, size_t n,
                                     format_special special, const void *context) {
  __m128i v, found;
  if (n >= 16) {
    v = _mm_loadu_si128((const __m128i *)(const void *)(from + n - 16));
    _mm_storeu_si128((__m128i *)(void *)(to + n - 16), v);
    found = _mm_or_si128(v, special(context, v));
    for (size_t i = 0; i + 16 < n; i += 16) {
      v = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
      _mm_storeu_si128((__m128i *)(void *)(to + i), v);
      found = _mm_or_si128(found, _mm_or_si128(v, special(context, v)));
    }
    return _mm_movemask_epi8(found) == 0;
  }
  if (n >= 8) {
    uint64_t first = format_load64(from), last = format_load64(from + n - 8);
    memcpy(to, &first, 8);
    memcpy(to + n - 8, &last, 8);
    v = _mm_set_epi64x((int64_t)last, (int64_t)first);
  } else if (n >= 4) {
    uint32_t first = format_load32(from), last = format_load32(from + n - 4);
    memcpy(to, &first, 4);
    memcpy(to + n - 4, &last, 4);
    v = _mm_set1_epi64x((int64_t)((uint64_t)last << 32 | first));
  } else {
    if (n == 0) return true;
    uint32_t first = from[0], middle = from[n / 2], last = from[n - 1];
    to[0] = (uint8_t)first;
    to[n / 2] = (uint8_t)middle;
    to[n - 1] = (uint8_t)last;
    v = _mm_set1_epi32((int)(first | middle << 8 | last << 16 | first << 24));
  }
  return _mm_movemask_epi8(_mm_or_si128(v, special(context, v))) == 0;
}
#endif

#endif
