/* SPDX-License-Identifier: Apache-2.0 */
#include "support/chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/rows.h"

unsigned calm;

unsigned pick(unsigned n) {
  static uint64_t seed;
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(seed >> 33) % n;
}

void put(base_buf *buf, const char *text) {
  assert_int_equal(base_buf_append_str(buf, text, NULL), WEIR_OK);
}

void put_digits(base_buf *buf, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    assert_int_equal(base_buf_append_byte(buf, (uint8_t)('0' + pick(10)), NULL), WEIR_OK);
  }
}

void put_number(base_buf *buf, const char *lead) {
  if (pick(4) == 0) put(buf, "-");
  bool odd = pick(calm) == 0;
  put(buf, odd ? "" : lead);
  put_digits(buf, !odd || pick(30) ? 1 + pick(pick(3) ? 9 : 17) : pick(21));
}

void put_double(base_buf *buf, const char *lead) {
  put_number(buf, lead);
  if (pick(3)) put(buf, "."), put_digits(buf, pick(20) ? 1 + pick(8) : pick(18));
  if (pick(calm) == 0) put(buf, "e"), put_number(buf, lead);
}

void put_stamp(base_buf *buf) {
  char text[80];
  unsigned odd = pick(calm) ? 0 : pick(12);
  snprintf(text, sizeof(text), "%04u-%02u-%02u%c%02u:%02u:%02u",
           odd == 1 ? pick(10000) : 1600 + pick(800), odd == 2 ? pick(14) : 1 + pick(12),
           odd == 3 ? pick(33) : 1 + pick(28), pick(3) ? 'T' : ' ',
           odd == 4 ? pick(26) : pick(24), odd == 5 ? pick(62) : pick(60),
           odd == 6 ? pick(62) : pick(60));
  if (odd == 7) text[pick(19)] ^= (char)(1u << pick(7));
  if (odd == 7 && strpbrk(text, "\n\r\",") != NULL) text[0] = 0;
  put(buf, text);
  if (pick(3)) put(buf, "."), put_digits(buf, 1 + pick(odd == 8 ? 9 : 6));
  put(buf, odd == 9 ? "+01:30" : odd == 10 ? "" : "Z");
}

char *chunk_answers(const chunk_decoder *calls, void *decoder, const base_buf *text) {
  weir_error err = {0};
  base_buf out = {0};
  size_t at = 0;
  weir_batch *batch = NULL;
  for (bool end = false; !end;) {
    size_t used = 0, left = text->size - at;
    uint8_t *exact = malloc(left + 1);
    assert_non_null(exact);
    memcpy(exact, text->data + at, left);
    batch = NULL;
    weir_status status = calls->feed(decoder, exact, left, &used, &batch, &err);
    if (status != WEIR_OK) {
      assert_int_equal(status, WEIR_E_BAD_DATA);
      assert_int_equal(base_buf_append_str(&out, err.message, NULL), WEIR_OK);
      calls->pass_over(decoder, exact, left, &used);
      assert_true(used > 0);
    } else if (batch == NULL) {
      end = true;
      assert_int_equal(used, left);
      assert_int_equal(calls->flush(decoder, &batch, &err), WEIR_OK);
    }
    free(exact);
    at += used;
    if (batch == NULL) continue;
    char *rows = rows_text(batch);
    assert_int_equal(base_buf_append_str(&out, rows, NULL), WEIR_OK);
    free(rows);
    weir_batch_unref(batch);
  }
  assert_int_equal(
      base_buf_printf(&out, NULL, "%llu", (unsigned long long)calls->line(decoder)),
      WEIR_OK);
  assert_int_equal(base_buf_append_byte(&out, 0, NULL), WEIR_OK);
  return (char *)out.data;
}

void check_same(const char *got, const char *want, const char *what) {
  size_t i = 0;
  while (got[i] != 0 && got[i] == want[i]) i++;
  if (got[i] == want[i]) return;
  size_t from = i > 100 ? i - 100 : 0;
  fail_msg("%s: %.200s, not %.200s", what, got + from, want + from);
}
