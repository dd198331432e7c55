/* SPDX-License-Identifier: Apache-2.0 */
/* A segment being written, and one being read. Steps S1 to S4 are those of docs/protocol.md. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/ipc.h>

#include "spool/segment.h"

enum {
  BUFFER = 256 << 10,
  DIRECT = 64 << 10, /* pieces of that size are written from where they lie */
  ALLOCATE_MIN = 1 << 20,
  ALLOCATE_MAX = 64 << 20,
  WRITE_BACK = 8 << 20 /* the disk is kept busy, so that the sync finds little to do */
};

struct weir_spool_writer {
  int fd;
  spool_place place;
  char *folder; /* that holds the file */
  weir_spool_segment segment;
  uint64_t allocated, written_back;
  bool no_allocation, sealed;
  uint8_t *buffer;
  size_t filled;
  uint64_t at;      /* of the file, where the buffer goes */
  uint64_t payload; /* of the frame under way */
  base_xxh3_stream hash;
  weir_error failure; /* code 0: none */
};

/* ---- bytes -------------------------------------------------------------------------------------- */

/* Room on the disk ahead of what is written, so that it is found full early and a sync changes no sizes. */
static weir_status allocate(weir_spool_writer *w, uint64_t end, weir_error *err) {
  if (end <= w->allocated || w->no_allocation) return WEIR_OK;
  uint64_t more = end;
  if (more < ALLOCATE_MIN) more = ALLOCATE_MIN;
  if (more > ALLOCATE_MAX) more = ALLOCATE_MAX;
  if (w->allocated + more < end) more = end - w->allocated;
  if (!fallocate(w->fd, 0, (off_t)w->allocated, (off_t)more)) {
    w->allocated += more;
    return WEIR_OK;
  }
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO)
    return base_io_error(err, errno, "allocate", w->place.path);
  w->no_allocation = true; /* a file system without it */
  return WEIR_OK;
}

static weir_status write_at(weir_spool_writer *w, const void *data, size_t size,
                            uint64_t at, weir_error *err) {
  const uint8_t *p = data;
  if (WEIR_FAULT("spool.write")) return base_io_error(err, EIO, "write", w->place.path);
  BASE_TRY(allocate(w, at + size, err));
  while (size) {
    ssize_t n = pwrite(w->fd, p, size, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return base_io_error(err, n ? errno : EIO, "write", w->place.path);
    p += n;
    at += (uint64_t)n;
    size -= (size_t)n;
  }
  return WEIR_OK;
}

static weir_status flush(weir_spool_writer *w, weir_error *err) {
  if (!w->filled) return WEIR_OK;
  BASE_TRY(write_at(w, w->buffer, w->filled, w->at, err));
  w->at += w->filled;
  w->filled = 0;
  return WEIR_OK;
}

static weir_status put(weir_spool_writer *w, const void *data, size_t size,
                       weir_error *err) {
  if (size >= DIRECT) {
    BASE_TRY(flush(w, err));
    BASE_TRY(write_at(w, data, size, w->at, err));
    w->at += size;
    return WEIR_OK;
  }
  if (size > BUFFER - w->filled) BASE_TRY(flush(w, err));
  memcpy(w->buffer + w->filled, data, size);
  w->filled += size;
  return WEIR_OK;
}

static weir_status put_payload(void *ctx, const void *data, size_t size,
                               weir_error *err) {
  weir_spool_writer *w = ctx;
  if (!size) return WEIR_OK;
  base_xxh3_update(&w->hash, data, size);
  w->payload += size;
  return put(w, data, size, err);
}

/* ---- writing ------------------------------------------------------------------------------------ */

static weir_status fail(weir_spool_writer *w, const weir_error *what, weir_error *err) {
  if (!w->failure.code) w->failure = *what;
  if (err) *err = w->failure;
  return w->failure.code;
}

weir_status weir_spool_writer_new(const char *folder, const weir_namespace *ns,
                                  const weir_spool_id *id, weir_spool_writer **out,
                                  weir_error *err) {
  weir_status status = WEIR_E_NOMEM;
  uint8_t header[SPOOL_FILE_HEADER];
  weir_spool_writer *w = base_calloc(1, sizeof(*w), err);
  if (!w) return WEIR_E_NOMEM;
  w->fd = -1;
  w->segment.id = *id;
  spool_file_header_put(ns, id, header, &w->place.key);
  w->segment.checksum = w->place.key;
  w->segment.bytes = SPOOL_FILE_HEADER;
  w->place.path = spool_path_of(folder, ns, id, err);
  w->folder = spool_folder_of(folder, ns, err);
  w->buffer = base_calloc(1, BUFFER, err);
  if (!w->place.path || !w->folder || !w->buffer) goto out;
  BASE_GOTO(status, base_xxh3_init(&w->hash, err));
  w->fd = open(w->place.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (w->fd < 0) {
    status = base_io_error(err, errno, "create", w->place.path);
    goto out;
  }
  status = put(w, header, sizeof(header), err);
  if (status) unlink(w->place.path);
out:
  if (status) {
    weir_spool_writer_free(w);
    return status;
  }
  *out = w;
  return WEIR_OK;
}

void weir_spool_writer_free(weir_spool_writer *w) {
  if (!w) return;
  if (w->fd >= 0) close(w->fd);
  base_xxh3_done(&w->hash);
  free(w->buffer);
  free(w->folder);
  free(w->place.path);
  free(w);
}

uint64_t weir_spool_writer_bytes(const weir_spool_writer *w) {
  return w->segment.bytes;
}

/* The batch as a stream behind room for the frame's header, padded. */
static weir_status put_batch(weir_spool_writer *w, weir_batch *batch, weir_error *err) {
  static const uint8_t zeros[SPOOL_ALIGN] = {0};
  const weir_ipc_writer_options plain = {.struct_size = sizeof(plain)};
  weir_ipc_writer *stream = NULL;
  w->payload = 0;
  BASE_TRY(base_xxh3_init(&w->hash, err));
  BASE_TRY(put(w, zeros, SPOOL_FRAME_HEADER, err));
  weir_status status =
      weir_ipc_writer_new(weir_batch_schema(batch), &plain, put_payload, w, &stream, err);
  if (!status) status = weir_ipc_writer_write(stream, batch, err);
  if (!status) status = weir_ipc_writer_finish(stream, err);
  weir_ipc_writer_free(stream);
  if (!status)
    status = put(w, zeros, (size_t)(spool_padded(w->payload) - w->payload), err);
  return status;
}

/* Into the buffer when it is still there, else over what was written. */
static weir_status put_header(weir_spool_writer *w, uint64_t at,
                              const uint8_t header[SPOOL_FRAME_HEADER], weir_error *err) {
  if (at < w->at) return write_at(w, header, SPOOL_FRAME_HEADER, at, err);
  memcpy(w->buffer + (at - w->at), header, SPOOL_FRAME_HEADER);
  return WEIR_OK;
}

static void write_back(weir_spool_writer *w) {
  if (w->at - w->written_back < WRITE_BACK) return;
  /* A hint: what fails here fails again in the sync. */
  sync_file_range(w->fd, (off_t)w->written_back, (off_t)(w->at - w->written_back),
                  SYNC_FILE_RANGE_WRITE);
  w->written_back = w->at;
}

static weir_status append(weir_spool_writer *w, weir_batch *batch, weir_spool_frame *out,
                          weir_error *err) {
  uint8_t header[SPOOL_FRAME_HEADER];
  uint64_t offset = w->segment.bytes;
  BASE_TRY(put_batch(w, batch, err));
  spool_frame frame = {.sequence = w->segment.frames,
                       .rows = (uint64_t)weir_batch_rows(batch),
                       .length = w->payload,
                       .checksum = base_xxh3_final(&w->hash)};
  spool_frame_header_put(&frame, w->place.key, header);
  BASE_TRY(put_header(w, offset, header, err));
  BASE_TRY(flush(w, err)); /* so that it can be read */
  write_back(w);
  w->segment.checksum = spool_chain(w->segment.checksum, header);
  w->segment.bytes = w->at;
  w->segment.frames++;
  w->segment.rows += frame.rows;
  *out = (weir_spool_frame){offset, w->at - offset};
  return WEIR_OK;
}

weir_status weir_spool_writer_append(weir_spool_writer *w, weir_batch *batch,
                                     weir_spool_frame *out, weir_error *err) {
  weir_error why = {0};
  if (w->failure.code) return fail(w, &w->failure, err);
  if (w->sealed) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "spool segment '%s' is sealed; nothing can be added",
                          w->place.path);
  }
  return append(w, batch, out, &why) ? fail(w, &why, err) : WEIR_OK;
}

static weir_status seal(weir_spool_writer *w, weir_error *err) {
  BASE_TRY(flush(w, err));
  if (w->allocated > w->at && ftruncate(w->fd, (off_t)w->at))
    return base_io_error(err, errno, "cut", w->place.path);
  BASE_TRY(base_fdatasync(w->fd, w->place.path, err)); /* S3 */
  if (WEIR_FAULT("spool.synced")) return base_io_error(err, EIO, "sync", w->place.path);
  BASE_TRY(base_sync_dir(w->folder, err)); /* S4 */
  w->sealed = true;
  return WEIR_OK;
}

weir_status weir_spool_writer_seal(weir_spool_writer *w, weir_bytes *descriptor,
                                   weir_error *err) {
  uint8_t bytes[WEIR_SPOOL_DESCRIPTOR_SIZE];
  weir_error why = {0};
  if (w->failure.code) return fail(w, &w->failure, err);
  if (!w->sealed && seal(w, &why)) return fail(w, &why, err);
  spool_descriptor_put(&w->segment, bytes);
  return weir_bytes_copy(descriptor, bytes, sizeof(bytes), err);
}

/* The sequence stands in the header, whose checksum is right; that it is the frame asked for is the
 * caller's word. */
weir_status weir_spool_writer_read_at(const weir_spool_writer *w,
                                      const weir_spool_frame *frame, weir_batch **out,
                                      weir_error *err) {
  uint8_t header[SPOOL_FRAME_HEADER];
  spool_frame found = {0};
  ssize_t n = pread(w->fd, header, sizeof(header), (off_t)frame->offset);
  if (n != (ssize_t)sizeof(header))
    return base_io_error(err, n < 0 ? errno : EIO, "read", w->place.path);
  BASE_TRY(spool_frame_header_get(header, &w->place, frame->offset, &found, err));
  return spool_map_frame(w->fd, &w->place, frame->offset, frame->size, found.sequence,
                         out, header, err);
}
