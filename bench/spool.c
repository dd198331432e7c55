/* SPDX-License-Identifier: Apache-2.0 */
/* A segment of the spool beside a plain file: bench/spool FOLDER MIB ROUNDS appends batches of about 4 MiB until
 * the segment has so many MiB and seals it; then writes as many bytes with write() and fdatasync(). One after the other,
 * so often; prints a line a round: MB/s of the spool, MB/s of the plain file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/ndjson.h>
#include <weir/spool.h>

enum { ROWS = 64 << 10, CHUNK = 1 << 20 };

static const weir_namespace ns = {
    .struct_size = sizeof(ns), .pipeline = "bench", .sink_id = "spool"};

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void must(weir_status status, const weir_error *err) {
  if (status) fail(err->message);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static weir_batch *make_batch(void) {
  const char *names[] = {"id", "price", "status", "note"};
  const char *types[] = {"int64", "float64", "utf8", "utf8"};
  weir_ndjson_options options = {.struct_size = sizeof(options), .batch_rows = ROWS};
  weir_schema *schema = NULL;
  weir_ndjson_decoder *decoder = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  must(weir_schema_from_types(names, types, 4, &schema, &err), &err);
  must(weir_ndjson_decoder_new(schema, &options, &decoder, &err), &err);
  for (int i = 0; !batch; i++) {
    char line[160];
    size_t used = 0;
    int n =
        snprintf(line, sizeof(line),
                 "{\"id\":%d,\"price\":%d.5,\"status\":\"shipped\",\"note\":\"left at "
                 "the door of number %d\"}\n",
                 i, i % 1000, i);
    must(weir_ndjson_decoder_feed(decoder, line, (size_t)n, 0, &used, &batch, &err),
         &err);
  }
  weir_ndjson_decoder_free(decoder);
  weir_schema_unref(schema);
  return batch;
}

/* Bytes of the segment. */
static uint64_t spool(const char *folder, weir_batch *batch, uint64_t size) {
  weir_spool_id id = {.attempt = 1, .participant = 1};
  weir_spool_writer *writer = NULL;
  weir_spool_frame frame;
  weir_bytes descriptor = {0};
  weir_error err = {0};
  must(weir_spool_writer_new(folder, &ns, &id, &writer, &err), &err);
  while (weir_spool_writer_bytes(writer) < size)
    must(weir_spool_writer_append(writer, batch, &frame, &err), &err);
  must(weir_spool_writer_seal(writer, &descriptor, &err), &err);
  uint64_t bytes = weir_spool_writer_bytes(writer);
  weir_bytes_release(&descriptor);
  weir_spool_writer_free(writer);
  return bytes;
}

static void plain(const char *path, const char *chunk, uint64_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) fail(path);
  while (size) {
    ssize_t n = write(fd, chunk, size < CHUNK ? (size_t)size : CHUNK);
    if (n <= 0) fail("write");
    size -= (uint64_t)n;
  }
  if (fdatasync(fd)) fail("fdatasync");
  close(fd);
}

int main(int argc, char **argv) {
  weir_error err = {0};
  weir_spool_id id = {.attempt = 1, .participant = 1};
  char path[4096];
  if (argc != 4) fail("spool FOLDER MIB ROUNDS");
  uint64_t size = strtoull(argv[2], NULL, 10) << 20;
  char *chunk = malloc(CHUNK);
  if (!chunk) fail("no memory");
  for (size_t i = 0; i < CHUNK; i++) chunk[i] = (char)(i * 2654435761u >> 13);
  snprintf(path, sizeof(path), "%s/plain", argv[1]);
  must(weir_spool_prepare(argv[1], &ns, &err), &err);
  weir_batch *batch = make_batch();
  for (int round = atoi(argv[3]); round > 0; round--) {
    double start = now();
    uint64_t bytes = spool(argv[1], batch, size);
    double middle = now();
    must(weir_spool_remove(argv[1], &ns, &id, &err), &err);
    double again = now();
    plain(path, chunk, bytes);
    double end = now();
    unlink(path);
    printf("%.1f %.1f\n", (double)bytes / 1e6 / (middle - start),
           (double)bytes / 1e6 / (end - again));
  }
  weir_batch_unref(batch);
  free(chunk);
  return 0;
}
