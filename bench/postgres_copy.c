/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the encoder of the postgres sink takes, alone and with its COPY, without spool or epochs:
 *
 *   bench/postgres_copy FILE.arrow URI SCHEMA TABLE encode [OUT]   rows to COPY's binary format, into OUT or nowhere
 *   bench/postgres_copy FILE.arrow URI SCHEMA TABLE copy           the same into the table, in one transaction
 *
 * Prints rows, bytes, seconds. The table must be there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/ipc.h>

#include "../connectors/postgres/conn.h"
#include "../connectors/postgres/encoder.h"
#include "../connectors/postgres/target.h"

static void must(weir_status status, const weir_error *err) {
  if (!status) return;
  fprintf(stderr, "%s\n", err->message);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pg_encoder *make_encoder(const pg_config *config, pg_conn *c, weir_schema *schema,
                                weir_error *err) {
  pg_target target = {.n = 0};
  int *fields = NULL;
  pg_encoder *encoder = NULL;
  int64_t n = weir_schema_arrow(schema)->n_children;
  pg_type types[64];
  must(pg_target_load(c, NULL, config, &target, err), err);
  must(pg_target_match(config, &target, schema, &fields, err), err);
  for (int64_t i = 0; i < n && i < 64; i++) types[i] = target.fields[fields[i]].type;
  must(pg_encoder_new(schema, types, false, &encoder, err), err);
  free(fields);
  pg_target_done(&target);
  return encoder;
}

static void put(pg_conn *c, FILE *out, const void *data, size_t size, weir_error *err) {
  if (out) fwrite(data, 1, size, out);
  if (c) must(pg_conn_copy_put(c, NULL, data, size, err), err);
}

/* One COPY a batch, as the sink does it; the file is one COPY. */
static uint64_t write_batch(pg_encoder *encoder, weir_batch *batch, const char *copy,
                            pg_conn *c, FILE *out, weir_error *err) {
  uint64_t bytes = 0;
  const uint8_t *data = NULL;
  size_t size = 0;
  int64_t row;
  char column[64];
  must(pg_encoder_start(encoder, batch, err), err);
  if (c) must(pg_conn_copy_begin(c, NULL, copy, err), err);
  if (c) put(c, NULL, pg_copy_head, sizeof(pg_copy_head), err);
  for (;; bytes += size) {
    must(pg_encoder_next(encoder, &data, &size, err), err);
    if (!size) break;
    put(c, out, data, size, err);
  }
  if (c) put(c, NULL, pg_copy_tail, sizeof(pg_copy_tail), err);
  if (c) must(pg_conn_copy_end(c, NULL, &row, column, err), err);
  return bytes;
}

int main(int argc, char **argv) {
  weir_error err = {0};
  weir_ipc_reader *reader = NULL;
  pg_conn c = {0};
  if (argc < 6) return 2;
  pg_config config = {
      .where = argv[0], .uri = argv[2], .schema = argv[3], .table = argv[4]};
  bool copying = strcmp(argv[5], "copy") == 0;
  FILE *out = argc > 6 ? fopen(argv[6], "w") : NULL;
  char copy[200];
  snprintf(copy, sizeof(copy), "COPY %s.%s FROM STDIN (FORMAT binary)", argv[3], argv[4]);
  must(weir_ipc_reader_open_file(argv[1], NULL, &reader, &err), &err);
  must(pg_conn_open(&c, config.uri, "bench", NULL, &err), &err);
  pg_encoder *encoder = make_encoder(&config, &c, weir_ipc_reader_schema(reader), &err);
  if (copying) must(pg_conn_run(&c, NULL, "BEGIN", "BEGIN", NULL, 0, NULL, &err), &err);
  uint64_t rows = 0, bytes = 0;
  double start = now();
  if (out) fwrite(pg_copy_head, 1, sizeof(pg_copy_head), out);
  for (;;) {
    weir_batch *batch = NULL;
    must(weir_ipc_reader_next(reader, &batch, &err), &err);
    if (!batch) break;
    bytes += write_batch(encoder, batch, copy, copying ? &c : NULL, out, &err);
    rows += (uint64_t)weir_batch_rows(batch);
    weir_batch_unref(batch);
  }
  if (out) fwrite(pg_copy_tail, 1, sizeof(pg_copy_tail), out);
  if (out) fclose(out);
  if (copying) must(pg_conn_run(&c, NULL, "COMMIT", "COMMIT", NULL, 0, NULL, &err), &err);
  printf("%llu rows %llu bytes %.3f s\n", (unsigned long long)rows,
         (unsigned long long)bytes, now() - start);
  pg_encoder_free(encoder);
  weir_ipc_reader_free(reader);
  pg_conn_close(&c);
  return 0;
}
