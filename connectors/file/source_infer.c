/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of files that come without one, from a sample of their first rows. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/infer.h>

#include "source.h"
#include "source_input.h"

/* In all, shared evenly by the first files that are not empty; a file that needs less than its share
 * leaves more to those behind it. */
#define SAMPLE_ROWS INT64_C(20480)
#define SAMPLE_BYTES (UINT64_C(8) << 20)
#define SAMPLE_FILES 16
#define BLOCK (size_t)(256 << 10)

typedef struct sample {
  weir_inference *inference;
  const char *compression;
  int64_t rows;   /* left */
  uint64_t bytes; /* left */
  uint8_t *buf;
  size_t room;
} sample;

static weir_status read_more(sample *s, file_input *input, size_t *have, bool *at_end,
                             weir_error *err) {
  if (s->room - *have < BLOCK) {
    size_t room = s->room == 0 ? 2 * BLOCK : s->room * 2;
    uint8_t *buf = realloc(s->buf, room);
    if (buf == NULL)
      return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a sample");
    s->buf = buf;
    s->room = room;
  }
  size_t got = 0;
  bool wait = false;
  weir_status status = file_input_read(input, s->buf + *have, BLOCK, &got, &wait, err);
  if (status != WEIR_OK) return status;
  *at_end = got == 0;
  *have += got;
  return WEIR_OK;
}

/* At least one record of the file, or all there is; else up to that many rows and bytes of text. */
static weir_status take_file(sample *s, const file_item *item, int64_t rows,
                             uint64_t bytes, const weir_call *call, weir_error *err) {
  int fd = -1;
  file_input *input = NULL;
  weir_status status = file_item_open(item, &fd, err);
  if (status != WEIR_OK) return status;
  status = file_input_new(fd, item->path, file_packing_of(s->compression, item->path),
                          false, &input, err);
  int64_t before = weir_inference_rows(s->inference), seen = 0;
  uint64_t done = 0;
  size_t have = 0;
  bool at_end = false;
  while (status == WEIR_OK && !at_end && seen < rows && (done < bytes || seen == 0)) {
    size_t used = 0;
    if (weir_call_cancelled(call)) {
      status = weir_error_set(err, WEIR_E_TIMEOUT, WEIR_ERR_RETRIABLE,
                              "reading the sample took too long");
    }
    if (status == WEIR_OK) status = read_more(s, input, &have, &at_end, err);
    if (status == WEIR_OK)
      status = weir_inference_feed(s->inference, s->buf, have, at_end, rows - seen, &used,
                                   err);
    if (status != WEIR_OK) break;
    memmove(s->buf, s->buf + used, have - used);
    have -= used;
    done += used;
    seen = weir_inference_rows(s->inference) - before;
  }
  file_input_free(input);
  close(fd);
  s->rows -= seen;
  s->bytes -= done < s->bytes ? done : s->bytes;
  /* a broken input names its file itself */
  if (status == WEIR_OK || (err != NULL && strstr(err->message, item->path) != NULL))
    return status;
  return weir_error_prefix(err, status, "file %s", item->path);
}

static weir_status take_files(sample *s, const file_list *files, const weir_call *call,
                              weir_error *err) {
  int64_t n = 0, taken = 0;
  for (size_t i = 0; i < files->n && n < SAMPLE_FILES; i++) n += files->items[i].size > 0;
  for (size_t i = 0; i < files->n && taken < n; i++) {
    if (files->items[i].size == 0) continue;
    int64_t share = s->rows / (n - taken);
    if (taken > 0) weir_inference_next_file(s->inference);
    weir_status status = take_file(s, &files->items[i], share > 0 ? share : 1,
                                   s->bytes / (uint64_t)(n - taken), call, err);
    if (status != WEIR_OK) return status;
    taken++;
  }
  return WEIR_OK;
}

weir_status file_infer_schema(const file_list *files, const file_reader_options *options,
                              const weir_call *call, weir_schema **out, weir_error *err) {
  sample s = {
      .compression = options->compression, .rows = SAMPLE_ROWS, .bytes = SAMPLE_BYTES};
  weir_status status;
  if (options->format == FILE_CSV) {
    weir_csv_options csv = options->csv;
    csv.struct_size = sizeof(csv);
    csv.max_line = options->max_line;
    status = weir_inference_new_csv(&csv, &s.inference, err);
  } else {
    weir_ndjson_options ndjson = {.struct_size = sizeof(ndjson),
                                  .max_line = options->max_line};
    status = weir_inference_new_ndjson(&ndjson, &s.inference, err);
  }
  if (status == WEIR_OK) status = take_files(&s, files, call, err);
  if (status == WEIR_OK) {
    status = weir_inference_schema(s.inference, out, err);
    if (status == WEIR_E_NOT_FOUND && files->n > 0)
      weir_error_prefix(err, status, "file %s%s", files->items[0].path,
                        files->n > 1 ? " and those behind it" : "");
  }
  weir_inference_free(s.inference);
  free(s.buf);
  return status;
}
