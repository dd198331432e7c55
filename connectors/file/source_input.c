/* SPDX-License-Identifier: Apache-2.0 */
/* Plain, gzip (RFC 1952) and zstd (RFC 8878) input. */
#include "source_input.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define RAW_SIZE ((size_t)128 << 10)
#define WINDOW_LOG 27      /* what zstd itself takes without --long */
#define WAIT_NS 50000000ll /* a read that waits comes back at least this often */

struct file_input {
  int fd;
  const char *path;
  file_packing packing;
  bool stream;
  uint64_t offset; /* given out */
  /* Packed: raw[start .. have) is not decompressed yet; raw_offset is that of raw[have]. */
  uint8_t *raw;
  size_t start, have;
  uint64_t raw_offset;
  bool raw_end;
  bool inside;  /* of a member or frame */
  bool any;     /* a member or frame was there */
  bool padding; /* zeros behind the last gzip member, as tapes leave them */
  bool full;    /* the last call filled its output: there may be more without input */
  z_stream gzip;
  bool gzip_ready;
  ZSTD_DStream *zstd;
};

static bool ends_with(const char *path, const char *extension) {
  size_t n = strlen(path), m = strlen(extension);
  return n > m && strcasecmp(path + n - m, extension) == 0;
}

file_packing file_packing_of(const char *compression, const char *path) {
  if (strcmp(compression, "gzip") == 0) return FILE_GZIP;
  if (strcmp(compression, "zstd") == 0) return FILE_ZSTD;
  if (strcmp(compression, "auto") != 0) return FILE_PLAIN;
  if (ends_with(path, ".gz")) return FILE_GZIP;
  return ends_with(path, ".zst") ? FILE_ZSTD : FILE_PLAIN;
}

size_t file_packing_stem(const char *compression, const char *path) {
  size_t n = strlen(path);
  if (strcmp(compression, "none") == 0) return n;
  if (ends_with(path, ".gz")) return n - 3;
  return ends_with(path, ".zst") ? n - 4 : n;
}

static const char *packing_name(const file_input *input) {
  return input->packing == FILE_GZIP ? "gzip" : "zstd";
}

weir_status file_input_new(int fd, const char *path, file_packing packing, bool stream,
                           file_input **out, weir_error *err) {
  file_input *input = calloc(1, sizeof(*input));
  if (input == NULL) goto no_memory;
  *input = (file_input){.fd = fd, .path = path, .packing = packing, .stream = stream};
  if (packing != FILE_PLAIN) {
    input->raw = malloc(RAW_SIZE);
    if (input->raw == NULL) goto no_memory;
  }
  if (packing == FILE_GZIP) {
    if (inflateInit2(&input->gzip, 16 + MAX_WBITS) != Z_OK) goto no_memory;
    input->gzip_ready = true;
  } else if (packing == FILE_ZSTD) {
    input->zstd = ZSTD_createDStream();
    if (input->zstd == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(
                                   input->zstd, ZSTD_d_windowLogMax, WINDOW_LOG)))
      goto no_memory;
  }
  *out = input;
  return WEIR_OK;
no_memory:
  file_input_free(input);
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory to read %s", path);
}

void file_input_free(file_input *input) {
  if (input == NULL) return;
  if (input->gzip_ready) inflateEnd(&input->gzip);
  ZSTD_freeDStream(input->zstd);
  free(input->raw);
  free(input);
}

void file_input_seek(file_input *input, uint64_t offset) {
  input->offset = offset;
}

uint64_t file_input_offset(const file_input *input) {
  return input->offset;
}

bool file_input_wait(file_input *input, const weir_call *call) {
  int64_t left = weir_call_remaining(call);
  if (weir_call_cancelled(call)) return false;
  if (left > WAIT_NS) left = WAIT_NS;
  struct pollfd p = {.fd = input->fd, .events = POLLIN};
  return poll(&p, 1, (int)((left + 999999) / 1000000)) > 0;
}

/* Bytes as the file has them. */
static weir_status read_raw(file_input *input, void *to, size_t size, uint64_t offset,
                            size_t *got, bool *wait, weir_error *err) {
  ssize_t n;
  struct pollfd p = {.fd = input->fd, .events = POLLIN};
  if (input->stream && poll(&p, 1, 0) <= 0) {
    *wait = true;
    *got = 0;
    return WEIR_OK;
  }
  do {
    n = input->stream ? read(input->fd, to, size)
                      : pread(input->fd, to, size, (off_t)offset);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && input->stream && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    *wait = true;
    n = 0;
  }
  if (n < 0) return weir_error_errno(err, errno, "cannot read %s", input->path);
  *got = (size_t)n;
  return WEIR_OK;
}

static weir_status broken(const file_input *input, const char *why, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
      "file %s: its %s data is broken at byte %llu (%llu bytes when decompressed): %s; "
      "bring a whole file, or set `compression`",
      input->path, packing_name(input),
      (unsigned long long)(input->raw_offset - (input->have - input->start)),
      (unsigned long long)input->offset, why);
}

static weir_status refill(file_input *input, bool *wait, weir_error *err) {
  size_t got = 0;
  weir_status status =
      read_raw(input, input->raw, RAW_SIZE, input->raw_offset, &got, wait, err);
  if (status != WEIR_OK || *wait) return status;
  input->start = 0;
  input->have = got;
  input->raw_offset += got;
  input->raw_end = got == 0;
  return WEIR_OK;
}

/* Between two members: zeros up to the end are padding, anything else begins a member. */
static weir_status begin_member(file_input *input, weir_error *err) {
  if (input->any && input->raw[input->start] == 0) input->padding = true;
  while (input->padding && input->start < input->have) {
    if (input->raw[input->start] != 0)
      return broken(input, "there is something behind its end", err);
    input->start++;
  }
  if (input->padding) return WEIR_OK;
  if (inflateReset(&input->gzip) != Z_OK) return broken(input, "no gzip", err);
  input->inside = input->any = true;
  return WEIR_OK;
}

static weir_status step_gzip(file_input *input, uint8_t *to, size_t size, size_t *got,
                             weir_error *err) {
  if (!input->inside) {
    weir_status status = begin_member(input, err);
    if (status != WEIR_OK || input->padding) return status;
  }
  z_stream *z = &input->gzip;
  if (size > UINT32_MAX) size = UINT32_MAX;
  z->next_in = input->raw + input->start;
  z->avail_in = (uInt)(input->have - input->start);
  z->next_out = to;
  z->avail_out = (uInt)size;
  int code = inflate(z, Z_NO_FLUSH);
  input->start = input->have - z->avail_in;
  *got = size - z->avail_out;
  input->full = z->avail_out == 0 && code == Z_OK;
  if (code == Z_STREAM_END) input->inside = false;
  if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return WEIR_OK;
  if (code == Z_MEM_ERROR)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory to read %s", input->path);
  return broken(input, z->msg != NULL ? z->msg : "no gzip", err);
}

static weir_status step_zstd(file_input *input, uint8_t *to, size_t size, size_t *got,
                             weir_error *err) {
  ZSTD_inBuffer in = {input->raw, input->have, input->start};
  ZSTD_outBuffer out = {to, size, 0};
  size_t code = ZSTD_decompressStream(input->zstd, &out, &in);
  input->start = in.pos;
  *got = out.pos;
  if (ZSTD_isError(code)) return broken(input, ZSTD_getErrorName(code), err);
  input->any = true;
  input->inside = code != 0;
  input->full = code != 0 && out.pos == out.size;
  return WEIR_OK;
}

static weir_status read_packed(file_input *input, void *to, size_t size, size_t *got,
                               bool *wait, weir_error *err) {
  weir_status status = WEIR_OK;
  *got = 0;
  while (status == WEIR_OK && *got == 0) {
    if (input->start == input->have && !input->full) {
      if (!input->raw_end) status = refill(input, wait, err);
      if (status != WEIR_OK || *wait) return status;
      if (input->raw_end && (input->inside || !input->any)) {
        return broken(
            input, input->any ? "it ends within it" : "it is empty, not one byte", err);
      }
      if (input->raw_end) return WEIR_OK;
    }
    status = input->packing == FILE_GZIP ? step_gzip(input, to, size, got, err)
                                         : step_zstd(input, to, size, got, err);
  }
  return status;
}

weir_status file_input_read(file_input *input, void *to, size_t size, size_t *got,
                            bool *wait, weir_error *err) {
  bool in_pieces = input->stream || input->packing != FILE_PLAIN;
  size_t all = 0, n = 0;
  do {
    uint8_t *at = (uint8_t *)to + all;
    *wait = false;
    weir_status status =
        input->packing == FILE_PLAIN
            ? read_raw(input, at, size - all, input->offset, &n, wait, err)
            : read_packed(input, at, size - all, &n, wait, err);
    if (status != WEIR_OK) return status;
    input->offset += n;
    all += n;
  } while (in_pieces && n > 0 && all < size);
  if (all > 0) *wait = false;
  *got = all;
  return WEIR_OK;
}
