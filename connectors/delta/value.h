/* SPDX-License-Identifier: Apache-2.0 */
/* Single values as the log has them: as a partition value and within statistics. */
#ifndef CONNECTORS_DELTA_VALUE_H
#define CONNECTORS_DELTA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DELTA_VALUE_SIZE = 64 };

/* "2024-02-29"; false when the year is not within 1 to 9999, the years that readers know. */
bool delta_value_date(int64_t day, char out[DELTA_VALUE_SIZE]);

/* Microseconds since 1970 as "2024-02-29T12:00:00.000000Z", or, without zone and with `between` a space,
 * "2024-02-29 12:00:00.000000"; false as above. */
bool delta_value_timestamp(int64_t us, char between, bool zone,
                           char out[DELTA_VALUE_SIZE]);

/* The 16 bytes of a decimal128, little-endian: "-12.30" at scale 2. */
__extension__ typedef __int128 delta_int128;
void delta_value_decimal(delta_int128 value, int scale, char out[DELTA_VALUE_SIZE]);

/* Bytes of the character at `p`, of which `n` are there; 0: not UTF-8 (RFC 3629). */
size_t delta_value_character(const uint8_t *p, size_t n);

#endif
