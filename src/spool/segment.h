/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of a segment. All numbers are little-endian.
 *
 * A file is a header of 128 bytes and frames, each a header of 64 bytes and a whole Arrow IPC stream of one
 * batch, padded with zeros to a multiple of 64, so that mapped buffers lie as aligned as Arrow wants them.
 *
 *   file header    0 "WEIRSPL1"  8 attempt  16 participant  24 incarnation[16]  40 namespace[32]
 *                  72 zeros  120 XXH3 of bytes 0 to 119, which is the segment's key
 *   frame header   0 "WFRM"  4 zeros  8 sequence from 0  16 rows  24 length of the stream  32 XXH3 of it
 *                  40 XXH3 of bytes 0 to 39, seeded with the segment's key  48 zeros
 *   descriptor     0 "WEIRSPD1"  8 attempt  16 participant  24 incarnation[16]  40 bytes  48 frames
 *                  56 rows  64 checksum  72 XXH3 of bytes 0 to 71
 *
 * The checksum of a segment is the XXH3 of each frame header's bytes 0 to 47, seeded with that of the frame
 * before, of the first with the key.
 */
#ifndef SPOOL_SEGMENT_H
#define SPOOL_SEGMENT_H

#include <weir/spool.h>

#include "spool/spool.h"

enum {
  SPOOL_FILE_HEADER = 128,
  SPOOL_FRAME_HEADER = 64,
  SPOOL_ALIGN = 64,
  SPOOL_MAX_NAME = 20 + 1 + 20 + 1 + 32 + 6 + 1
};

typedef struct spool_frame {
  uint64_t sequence, rows, length, checksum;
} spool_frame;

/* Which file, and what its frames are seeded with. */
typedef struct spool_place {
  char *path;
  uint64_t key;
} spool_place;

void spool_file_header_put(const weir_namespace *ns, const weir_spool_id *id,
                           uint8_t out[SPOOL_FILE_HEADER], uint64_t *key);
void spool_frame_header_put(const spool_frame *frame, uint64_t key,
                            uint8_t out[SPOOL_FRAME_HEADER]);
/* WEIR_E_CORRUPT names the file and the offset. */
weir_status spool_frame_header_get(const uint8_t in[SPOOL_FRAME_HEADER],
                                   const spool_place *place, uint64_t offset,
                                   spool_frame *out, weir_error *err);
uint64_t spool_chain(uint64_t before, const uint8_t header[SPOOL_FRAME_HEADER]);
static inline uint64_t spool_padded(uint64_t length) {
  return (length + SPOOL_ALIGN - 1) / SPOOL_ALIGN * SPOOL_ALIGN;
}

void spool_descriptor_put(const weir_spool_segment *s,
                          uint8_t out[WEIR_SPOOL_DESCRIPTOR_SIZE]);

/* The frame of `size` bytes at `offset`, mapped; `header` gets a copy of its header. */
weir_status spool_map_frame(int fd, const spool_place *place, uint64_t offset,
                            uint64_t size, uint64_t sequence, weir_batch **out,
                            uint8_t header[SPOOL_FRAME_HEADER], weir_error *err);

/* "<folder>/<namespace key>", to free(). */
char *spool_folder_of(const char *folder, const weir_namespace *ns, weir_error *err);
char *spool_path_of(const char *folder, const weir_namespace *ns, const weir_spool_id *id,
                    weir_error *err);
void spool_name_format(const weir_spool_id *id, char out[SPOOL_MAX_NAME]);
bool spool_name_parse(const char *name, weir_spool_id *out);

#endif
