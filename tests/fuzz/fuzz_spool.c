/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a segment, whose descriptor believes them, and as a descriptor: an error or batches. Bytes
 * behind the file's header are framed with right checksums, so that what lies behind those is reached. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spool/segment.h"

static const weir_namespace ns = {
    .struct_size = sizeof(ns), .pipeline = "p", .sink_id = "s"};
static char folder[] = "/tmp/weir-fuzz-spool-XXXXXX";

static void write_file(const char *path, const uint8_t *head, const uint8_t *data,
                       size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, head, SPOOL_FILE_HEADER) != SPOOL_FILE_HEADER ||
      write(fd, data, size) != (ssize_t)size)
    abort();
  close(fd);
}

/* data[0] & 1: one frame of the rest, framed rightly; else the rest as it is. */
static size_t make_frames(const uint8_t *data, size_t size, uint64_t key, uint8_t *out) {
  if (!(data[0] & 1)) {
    memcpy(out, data + 1, size - 1);
    return size - 1;
  }
  spool_frame frame = {.rows = data[0] >> 1, .length = size - 1};
  frame.checksum = base_xxh3(data + 1, size - 1, 0);
  spool_frame_header_put(&frame, key, out);
  memcpy(out + SPOOL_FRAME_HEADER, data + 1, size - 1);
  return SPOOL_FRAME_HEADER + (size_t)spool_padded(size - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int made;
  weir_error err = {0};
  weir_spool_segment segment = {{1, 1, {0}}, 0, 1, 0, 0};
  weir_spool_reader *reader = NULL;
  weir_batch *batch = NULL;
  uint8_t head[SPOOL_FILE_HEADER];
  uint64_t key = 0;
  if (!size) return 0;
  if (!made && (!mkdtemp(folder) || weir_spool_prepare(folder, &ns, &err))) abort();
  made = 1;
  weir_spool_segment read = {{0}, 0, 0, 0, 0};
  weir_spool_descriptor_read(data, size, &read, &err);
  uint8_t *frames = calloc(1, size + (size_t)2 * SPOOL_ALIGN + SPOOL_FRAME_HEADER);
  char *path = spool_path_of(folder, &ns, &segment.id, &err);
  if (!frames || !path) abort();
  spool_file_header_put(&ns, &segment.id, head, &key);
  size_t n = make_frames(data, size, key, frames);
  write_file(path, head, frames, n);
  segment.bytes = SPOOL_FILE_HEADER + n;
  if (!weir_spool_reader_open(folder, &ns, &segment, &reader, &err)) {
    while (!weir_spool_reader_next(reader, &batch, &err) && batch)
      weir_batch_unref(batch);
  }
  weir_spool_reader_free(reader);
  free(path);
  free(frames);
  return 0;
}
