/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of chunks of rows share: random values as text, and a decoder's answers to a whole text. */
#ifndef TESTS_UNIT_SUPPORT_CHUNKS_H
#define TESTS_UNIT_SUPPORT_CHUNKS_H

#include <weir/batch.h>

#include "base/base.h"

/* How rare what is refused is: what a chunk refuses, hides what it takes. */
extern unsigned calm;
/* 0 .. n - 1, from one seed a process. */
unsigned pick(unsigned n);

void put(base_buf *buf, const char *text);
void put_digits(base_buf *buf, unsigned n);
/* `lead` is put before most numbers: a digit that may be there. */
void put_number(base_buf *buf, const char *lead);
void put_double(base_buf *buf, const char *lead);
void put_stamp(base_buf *buf);

typedef struct chunk_decoder {
  weir_status (*feed)(void *decoder, const uint8_t *data, size_t size, size_t *used,
                      weir_batch **out, weir_error *err);
  void (*pass_over)(void *decoder, const uint8_t *data, size_t size, size_t *used);
  weir_status (*flush)(void *decoder, weir_batch **out, weir_error *err);
  uint64_t (*line)(const void *decoder);
} chunk_decoder;

/* Rows, messages of those passed over and the last line's number, of a text fed in one block; free(). */
char *chunk_answers(const chunk_decoder *calls, void *decoder, const base_buf *text);
/* Fails with what is around the first difference. */
void check_same(const char *got, const char *want, const char *what);

#endif
