/* SPDX-License-Identifier: Apache-2.0 */
/* Headers, descriptors and frames as bytes. */
#include "spool/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/ipc.h>

static void put(uint8_t *at, uint64_t v) {
  for (int i = 0; i < 8; i++) at[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get(const uint8_t *at) {
  uint64_t v = 0;
  for (int i = 0; i < 8; i++) v |= (uint64_t)at[i] << (8 * i);
  return v;
}

static void put_id(uint8_t *at, const char magic[8], const weir_spool_id *id) {
  memcpy(at, magic, 8);
  put(at + 8, id->attempt);
  put(at + 16, id->participant);
  memcpy(at + 24, id->incarnation, sizeof(id->incarnation));
}

void spool_file_header_put(const weir_namespace *ns, const weir_spool_id *id,
                           uint8_t out[SPOOL_FILE_HEADER], uint64_t *key) {
  char name[WEIR_NAMESPACE_KEY_SIZE];
  memset(out, 0, SPOOL_FILE_HEADER);
  put_id(out, "WEIRSPL1", id);
  weir_namespace_key(ns, name);
  weir_hex_decode(name + strlen("weir-"), out + 40, 32);
  *key = base_xxh3(out, 120, 0);
  put(out + 120, *key);
}

void spool_frame_header_put(const spool_frame *frame, uint64_t key,
                            uint8_t out[SPOOL_FRAME_HEADER]) {
  memset(out, 0, SPOOL_FRAME_HEADER);
  memcpy(out, "WFRM", 4);
  put(out + 8, frame->sequence);
  put(out + 16, frame->rows);
  put(out + 24, frame->length);
  put(out + 32, frame->checksum);
  put(out + 40, base_xxh3(out, 40, key));
}

weir_status spool_frame_header_get(const uint8_t in[SPOOL_FRAME_HEADER],
                                   const spool_place *place, uint64_t offset,
                                   spool_frame *out, weir_error *err) {
  if (memcmp(in, "WFRM", 4) != 0 || get(in + 40) != base_xxh3(in, 40, place->key)) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "spool segment '%s': no frame of this segment at byte %" PRIu64
                          "; the file was damaged or is another one's",
                          place->path, offset);
  }
  *out = (spool_frame){get(in + 8), get(in + 16), get(in + 24), get(in + 32)};
  return WEIR_OK;
}

uint64_t spool_chain(uint64_t before, const uint8_t header[SPOOL_FRAME_HEADER]) {
  return base_xxh3(header, 48, before);
}

void spool_descriptor_put(const weir_spool_segment *s,
                          uint8_t out[WEIR_SPOOL_DESCRIPTOR_SIZE]) {
  put_id(out, "WEIRSPD1", &s->id);
  put(out + 40, s->bytes);
  put(out + 48, s->frames);
  put(out + 56, s->rows);
  put(out + 64, s->checksum);
  put(out + 72, base_xxh3(out, 72, 0));
}

weir_status weir_spool_descriptor_read(const void *data, size_t size,
                                       weir_spool_segment *out, weir_error *err) {
  const uint8_t *in = data;
  weir_spool_segment s = {{0}, 0, 0, 0, 0};
  if (size != WEIR_SPOOL_DESCRIPTOR_SIZE || memcmp(in, "WEIRSPD1", 8) != 0 ||
      get(in + 72) != base_xxh3(in, 72, 0)) {
    return weir_error_set(
        err, WEIR_E_CORRUPT, 0,
        "%zu bytes are no descriptor of a spool segment; expected %d that begin with "
        "WEIRSPD1 and end with their checksum",
        size, WEIR_SPOOL_DESCRIPTOR_SIZE);
  }
  s.id.attempt = get(in + 8);
  s.id.participant = get(in + 16);
  memcpy(s.id.incarnation, in + 24, sizeof(s.id.incarnation));
  s.bytes = get(in + 40);
  s.frames = get(in + 48);
  s.rows = get(in + 56);
  s.checksum = get(in + 64);
  *out = s;
  return WEIR_OK;
}

/* ---- frames ------------------------------------------------------------------------------------- */

typedef struct mapping {
  void *base;
  size_t size;
} mapping;

static void unmap(weir_bytes *bytes) {
  mapping *m = bytes->private_data;
  munmap(m->base, m->size);
  free(m);
  bytes->release = NULL;
}

static weir_status map_range(int fd, const spool_place *place, uint64_t offset,
                             uint64_t size, weir_bytes *out, weir_error *err) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = offset % page;
  mapping *m = base_calloc(1, sizeof(*m), err);
  if (!m) return WEIR_E_NOMEM;
  m->size = (size_t)(size + before);
  m->base = mmap(NULL, m->size, PROT_READ, MAP_SHARED, fd, (off_t)(offset - before));
  if (m->base == MAP_FAILED) {
    free(m);
    return base_io_error(err, errno, "map", place->path);
  }
  *out = (weir_bytes){(const uint8_t *)m->base + before, (size_t)size, unmap, m};
  return WEIR_OK;
}

static weir_status corrupt(const spool_place *place, uint64_t offset, const char *what,
                           weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "spool segment '%s': the frame at byte %" PRIu64 " %s",
                        place->path, offset, what);
}

/* The one batch of a stream; *bytes is moved. */
static weir_status read_stream(weir_bytes *bytes, const spool_place *place, uint64_t rows,
                               weir_batch **out, weir_error *err) {
  weir_ipc_reader *reader = NULL;
  weir_batch *batch = NULL, *more = NULL;
  weir_status status = weir_ipc_reader_open_bytes(bytes, place->path, NULL, &reader, err);
  if (!status) status = weir_ipc_reader_next(reader, &batch, err);
  if (!status) status = weir_ipc_reader_next(reader, &more, err);
  if (!status && (!batch || more || (uint64_t)weir_batch_rows(batch) != rows)) {
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "spool segment '%s': a frame does not hold one batch of "
                            "%" PRIu64 " rows",
                            place->path, rows);
  }
  weir_ipc_reader_free(reader);
  weir_batch_unref(more);
  if (status) {
    weir_batch_unref(batch);
    return status;
  }
  *out = batch;
  return WEIR_OK;
}

weir_status spool_map_frame(int fd, const spool_place *place, uint64_t offset,
                            uint64_t size, uint64_t sequence, weir_batch **out,
                            uint8_t header[SPOOL_FRAME_HEADER], weir_error *err) {
  weir_bytes bytes = {0};
  spool_frame frame = {0};
  BASE_TRY(map_range(fd, place, offset, size, &bytes, err));
  memcpy(header, bytes.data, SPOOL_FRAME_HEADER);
  weir_status status = spool_frame_header_get(bytes.data, place, offset, &frame, err);
  if (!status && (frame.sequence != sequence || frame.length > size ||
                  spool_padded(frame.length) != size - SPOOL_FRAME_HEADER))
    status = corrupt(place, offset, "is not the one that follows there", err);
  if (!status) {
    bytes.data += SPOOL_FRAME_HEADER;
    bytes.size = (size_t)frame.length;
    if (base_xxh3(bytes.data, bytes.size, 0) != frame.checksum)
      status = corrupt(place, offset, "fails its checksum", err);
  }
  if (!status) status = read_stream(&bytes, place, frame.rows, out, err);
  weir_bytes_release(&bytes);
  return status;
}
