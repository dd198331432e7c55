/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/options.h>

#include "base/base.h"

bool base_starts_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool base_ends_with(const char *text, const char *suffix) {
  size_t n = strlen(text), m = strlen(suffix);
  return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

/* Only an address counts as one: "127.example" is anybody's name. */
static bool is_local(const char *host) {
  struct in_addr v4;
  struct in6_addr v6;
  if (!*host || *host == '/' || *host == '@' || strcasecmp(host, "localhost") == 0)
    return true;
  if (inet_pton(AF_INET, host, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

int weir_hosts_are_local(const char *hosts) {
  for (const char *at = hosts;; at++) {
    char one[256]; /* a name in the DNS has 253 */
    size_t size = strcspn(at, ",");
    if (size >= sizeof(one) && *at != '/') return false;
    snprintf(one, sizeof(one), "%.*s", (int)size, at);
    if (!is_local(one)) return false;
    at += size;
    if (!*at) return true;
  }
}

/* Length of the well-formed sequence at p, or 0 (Unicode 15, table 3-7). */
static size_t utf8_sequence(const uint8_t *p, size_t left) {
  uint8_t lead = p[0], low = 0x80, high = 0xBF;
  size_t size = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  if (!size || size > left || p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < size; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
  }
  return size;
}

bool base_utf8_valid(const void *data, size_t size) {
  const uint8_t *p = data;
  size_t at = 0;
  while (at < size) {
    uint64_t word;
    if (size - at >= sizeof(word)) {
      memcpy(&word, p + at, sizeof(word));
      if (!(word & UINT64_C(0x8080808080808080))) {
        at += sizeof(word);
        continue;
      }
    }
    size_t step = p[at] < 0x80 ? 1 : utf8_sequence(p + at, size - at);
    if (!step) return false;
    at += step;
  }
  return true;
}

enum { NAME_MAX_COMPARED = 64 };

/* Damerau-Levenshtein (adjacent swaps count one), case ignored; longer names are not
 * compared. */
static size_t name_distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  if (n > NAME_MAX_COMPARED || m > NAME_MAX_COMPARED) return SIZE_MAX;
  size_t rows[3][NAME_MAX_COMPARED + 1];
  size_t *before = rows[0], *previous = rows[1], *current = rows[2];
  for (size_t j = 0; j <= m; j++) previous[j] = j;
  for (size_t i = 1; i <= n; i++) {
    current[0] = i;
    for (size_t j = 1; j <= m; j++) {
      int x = tolower((uint8_t)a[i - 1]), y = tolower((uint8_t)b[j - 1]);
      size_t best = previous[j - 1] + (x != y);
      if (previous[j] + 1 < best) best = previous[j] + 1;
      if (current[j - 1] + 1 < best) best = current[j - 1] + 1;
      if (i > 1 && j > 1 && x == tolower((uint8_t)b[j - 2]) &&
          tolower((uint8_t)a[i - 2]) == y && before[j - 2] + 1 < best) {
        best = before[j - 2] + 1;
      }
      current[j] = best;
    }
    size_t *spare = before;
    before = previous;
    previous = current;
    current = spare;
  }
  return previous[m];
}

const char *base_nearest_name(const char *given, const char *const *names, size_t n) {
  const char *nearest = NULL;
  size_t length = strlen(given);
  size_t best = length < 3 ? 2 : 2 + length / 4; /* one more than may differ */
  for (size_t i = 0; i < n; i++) {
    size_t distance = name_distance(given, names[i]);
    if (distance < best && distance < strlen(names[i])) {
      best = distance;
      nearest = names[i];
    }
  }
  return nearest;
}

struct unit {
  const char *name;
  uint64_t factor;
};

/* Reads digits and one of the units; false when the text has another form or the product
 * overflows. */
static bool parse_amount(const char *text, const struct unit *units, size_t n,
                         uint64_t limit, uint64_t *out) {
  uint64_t value = 0;
  const char *p = text;
  if (*p < '0' || *p > '9') return false;
  for (; *p >= '0' && *p <= '9'; p++) {
    if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
        __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value)) {
      return false;
    }
  }
  while (*p == ' ') p++;
  for (size_t i = 0; i < n; i++) {
    if (strcmp(p, units[i].name) != 0) continue;
    if (__builtin_mul_overflow(value, units[i].factor, &value) || value > limit)
      return false;
    *out = value;
    return true;
  }
  return false;
}

weir_status base_parse_size(const char *text, uint64_t *out, weir_error *err) {
  static const struct unit units[] = {
      {"", 1},
      {"B", 1},
      {"KiB", UINT64_C(1) << 10},
      {"MiB", UINT64_C(1) << 20},
      {"GiB", UINT64_C(1) << 30},
      {"TiB", UINT64_C(1) << 40},
      {"kB", 1000},
      {"KB", 1000},
      {"MB", 1000000},
      {"GB", 1000000000},
      {"TB", UINT64_C(1000000000000)},
  };
  if (parse_amount(text, units, BASE_COUNT(units), INT64_MAX, out)) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "'%s' is not a size; write a whole number and a unit, such as 64MiB or 500kB",
      text);
}

weir_status base_parse_duration(const char *text, int64_t *out_ns, weir_error *err) {
  static const struct unit units[] = {
      {"ns", 1},
      {"us", 1000},
      {"ms", 1000000},
      {"s", UINT64_C(1000000000)},
      {"m", UINT64_C(60000000000)},
      {"min", UINT64_C(60000000000)},
      {"h", UINT64_C(3600000000000)},
      {"d", UINT64_C(86400000000000)},
  };
  uint64_t value = 0;
  if (strcmp(text, "0") == 0 ||
      parse_amount(text, units, BASE_COUNT(units), INT64_MAX, &value)) {
    *out_ns = (int64_t)value;
    return WEIR_OK;
  }
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "'%s' is not a time; write a whole number and a unit, such as 250ms, 10s or 5m",
      text);
}

weir_status base_parse_int(const char *text, int64_t min, int64_t max, int64_t *out,
                           weir_error *err) {
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  bool digits = text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
  if (!digits || end == text || *end) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "'%s' is not a whole number",
                          text);
  }
  if (errno || value < min || value > max) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "%s is not within %lld and %lld",
                          text, (long long)min, (long long)max);
  }
  *out = value;
  return WEIR_OK;
}
