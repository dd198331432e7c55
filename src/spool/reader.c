/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed segment, read by its descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/segment.h"

struct weir_spool_reader {
  int fd;
  spool_place place;
  weir_spool_segment segment;
  uint64_t at, frames, rows, checksum;
};

static weir_status read_exactly(const weir_spool_reader *r, void *out, size_t size,
                                uint64_t at, weir_error *err) {
  ssize_t n = pread(r->fd, out, size, (off_t)at);
  if (n == (ssize_t)size) return WEIR_OK;
  return base_io_error(err, n < 0 ? errno : EIO, "read", r->place.path);
}

static weir_status check_file(weir_spool_reader *r, const weir_namespace *ns,
                              weir_error *err) {
  uint8_t want[SPOOL_FILE_HEADER], got[SPOOL_FILE_HEADER];
  struct stat info;
  spool_file_header_put(ns, &r->segment.id, want, &r->place.key);
  if (fstat(r->fd, &info)) return base_io_error(err, errno, "look at", r->place.path);
  if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size != r->segment.bytes ||
      r->segment.bytes < SPOOL_FILE_HEADER) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "spool segment '%s' has %" PRIu64 " bytes; %" PRIu64
                          " were synced when it was sealed",
                          r->place.path, (uint64_t)info.st_size, r->segment.bytes);
  }
  BASE_TRY(read_exactly(r, got, sizeof(got), 0, err));
  if (memcmp(got, want, sizeof(got)) != 0) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "spool segment '%s' is damaged, or of another pipeline, sink, "
                          "deployment, attempt or participant than its name says",
                          r->place.path);
  }
  return WEIR_OK;
}

weir_status weir_spool_reader_open(const char *folder, const weir_namespace *ns,
                                   const weir_spool_segment *segment,
                                   weir_spool_reader **out, weir_error *err) {
  weir_status status = WEIR_E_NOMEM;
  weir_spool_reader *r = base_calloc(1, sizeof(*r), err);
  if (!r) return WEIR_E_NOMEM;
  r->fd = -1;
  r->segment = *segment;
  r->place.path = spool_path_of(folder, ns, &segment->id, err);
  if (!r->place.path) goto out;
  r->fd = open(r->place.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (r->fd < 0) {
    status = base_io_error(err, errno, "open spool segment", r->place.path);
    goto out;
  }
  BASE_GOTO(status, check_file(r, ns, err));
  r->at = SPOOL_FILE_HEADER;
  r->checksum = r->place.key;
out:
  if (status) {
    weir_spool_reader_free(r);
    return status;
  }
  *out = r;
  return WEIR_OK;
}

/* Every byte of the file has been looked at. */
static weir_status check_end(const weir_spool_reader *r, weir_error *err) {
  const weir_spool_segment *s = &r->segment;
  if (r->frames == s->frames && r->rows == s->rows && r->checksum == s->checksum)
    return WEIR_OK;
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "spool segment '%s' has %" PRIu64 " batches of %" PRIu64
                        " rows and not the %" PRIu64 " of %" PRIu64
                        " that were sealed, or their checksum is another",
                        r->place.path, r->frames, r->rows, s->frames, s->rows);
}

weir_status weir_spool_reader_next(weir_spool_reader *r, weir_batch **out,
                                   weir_error *err) {
  uint8_t header[SPOOL_FRAME_HEADER];
  spool_frame frame = {0};
  weir_batch *batch = NULL;
  uint64_t left = r->segment.bytes - r->at;
  if (!left) {
    BASE_TRY(check_end(r, err));
    *out = NULL;
    return WEIR_OK;
  }
  if (left < SPOOL_FRAME_HEADER)
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "spool segment '%s': %" PRIu64 " bytes at its end are no frame",
                          r->place.path, left);
  BASE_TRY(read_exactly(r, header, sizeof(header), r->at, err));
  BASE_TRY(spool_frame_header_get(header, &r->place, r->at, &frame, err));
  if (frame.length > left - SPOOL_FRAME_HEADER ||
      spool_padded(frame.length) > left - SPOOL_FRAME_HEADER) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "spool segment '%s': the frame at byte %" PRIu64
                          " is longer than what is there",
                          r->place.path, r->at);
  }
  uint64_t size = SPOOL_FRAME_HEADER + spool_padded(frame.length);
  BASE_TRY(
      spool_map_frame(r->fd, &r->place, r->at, size, r->frames, &batch, header, err));
  r->checksum = spool_chain(r->checksum, header);
  r->at += size;
  r->frames++;
  r->rows += frame.rows;
  *out = batch;
  return WEIR_OK;
}

void weir_spool_reader_free(weir_spool_reader *r) {
  if (!r) return;
  if (r->fd >= 0) close(r->fd);
  free(r->place.path);
  free(r);
}
