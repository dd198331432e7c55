/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of gzip or zstd, which the first byte chooses with the size of reads and whether it is
 * a stream. What comes out must be what zlib and libzstd make of the bytes, up to where they refuse
 * them too, and memory must stay bounded. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sanitizer/allocator_interface.h>
#include <zlib.h>
#include <zstd.h>

#include "../../connectors/file/source_input.h"

#define REQUIRE(condition)                                                       \
  do {                                                                           \
    if (!(condition)) {                                                          \
      fprintf(stderr, "fuzz_source_input: line %d: %s\n", __LINE__, #condition); \
      abort();                                                                   \
    }                                                                            \
  } while (0)

enum {
  MOST_OUT = 1 << 20,      /* of what a bomb holds, the rest is left */
  MOST_MEMORY = 130 << 20, /* the largest window, and what is beside it */
};

typedef struct plain {
  uint8_t data[MOST_OUT];
  size_t size;
  bool good; /* a whole file */
  bool more; /* than fits */
} plain;

static plain want;

/* RFC 1952 members, then zeros. */
static void gunzip(const uint8_t *data, size_t size, plain *out) {
  size_t at = 0;
  while (at < size && !(at > 0 && data[at] == 0)) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)(data + at),
                  .avail_in = (uInt)(size - at)};
    int code = Z_OK;
    REQUIRE(inflateInit2(&z, 16 + MAX_WBITS) == Z_OK);
    while (code == Z_OK && !out->more) {
      z.next_out = out->data + out->size;
      z.avail_out = (uInt)(sizeof(out->data) - out->size);
      code = inflate(&z, Z_NO_FLUSH);
      out->size = sizeof(out->data) - z.avail_out;
      out->more = z.avail_out == 0;
    }
    at = size - z.avail_in;
    inflateEnd(&z);
    if (code != Z_STREAM_END || out->more) return;
  }
  out->good = at > 0;
  for (; at < size; at++) out->good &= data[at] == 0;
}

static void unzstd(const uint8_t *data, size_t size, plain *out) {
  ZSTD_inBuffer in = {data, size, 0};
  ZSTD_outBuffer to = {out->data, sizeof(out->data), 0};
  ZSTD_DStream *zstd = ZSTD_createDStream();
  REQUIRE(zstd != NULL);
  REQUIRE(!ZSTD_isError(ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, 27)));
  size_t code = size > 0, before = 1;
  while (!ZSTD_isError(code) && before != in.pos + to.pos && to.pos < to.size) {
    before = in.pos + to.pos;
    if (in.pos < in.size || code != 0) code = ZSTD_decompressStream(zstd, &to, &in);
  }
  ZSTD_freeDStream(zstd);
  out->size = to.pos;
  out->more = to.pos == to.size;
  out->good = code == 0 && in.pos == size && size > 0;
}

static void read_file(int fd, file_packing packing, bool stream, size_t block) {
  weir_error err = {0};
  file_input *input = NULL;
  uint8_t *to = malloc(block); /* exact, so that a byte past it is seen */
  size_t got = 1, all = 0, before = __sanitizer_get_current_allocated_bytes();
  bool wait = false;
  REQUIRE(to != NULL);
  REQUIRE(file_input_new(fd, "fuzz", packing, stream, &input, &err) == WEIR_OK);
  weir_status status = WEIR_OK;
  while (status == WEIR_OK && got > 0 && all < MOST_OUT) {
    status = file_input_read(input, to, block, &got, &wait, &err);
    REQUIRE(__sanitizer_get_current_allocated_bytes() < before + MOST_MEMORY);
    if (status != WEIR_OK) break;
    REQUIRE(got <= block && !wait);
    size_t known = all < want.size ? want.size - all : 0;
    if (got < known) known = got;
    if (known > 0) REQUIRE(memcmp(to, want.data + all, known) == 0);
    all += got;
    REQUIRE(file_input_offset(input) == all);
  }
  REQUIRE(status == WEIR_OK || (status == WEIR_E_BAD_DATA && err.code == status &&
                                err.flags == WEIR_ERR_BAD_DATA && err.message[0] != 0));
  if (want.good) REQUIRE(status == WEIR_OK && all == want.size);
  /* libzstd keeps what the failing call made, so that more may have come in small reads */
  if (!want.good && !want.more) REQUIRE(status != WEIR_OK || all >= MOST_OUT);
  file_input_free(input);
  free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  if (size < 1) return 0;
  file_packing packing = data[0] & 1 ? FILE_ZSTD : FILE_GZIP;
  bool stream = data[0] & 2;
  size_t block = data[0] >> 2;
  block = block < 32 ? block + 1 : block * 1021;
  if (fd < 0) fd = memfd_create("fuzz_source_input", MFD_CLOEXEC);
  REQUIRE(fd >= 0 && ftruncate(fd, 0) == 0);
  REQUIRE(pwrite(fd, data + 1, size - 1, 0) == (ssize_t)(size - 1));
  REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
  want.size = 0;
  want.good = want.more = false;
  if (packing == FILE_GZIP)
    gunzip(data + 1, size - 1, &want);
  else
    unzstd(data + 1, size - 1, &want);
  read_file(fd, packing, stream, block);
  return 0;
}
