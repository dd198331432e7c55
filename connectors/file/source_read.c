/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one file of the file source, from its progress on. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/ipc.h>

#include "source.h"
#include "source_input.h"
#include "source_parquet.h"

static size_t block_size = (size_t)1 << 20;

void file_reader_set_block(size_t size) {
  block_size = size < 2 ? 2 : size;
}

struct file_reader {
  file_reader_options options;
  weir_schema *schema;
  file_item *item; /* open when not NULL */
  int fd;
  file_input *input; /* all but IPC that is not compressed */
  file_packing packing;
  /* Rows: buf[start .. have) is what the decoder has not taken, the bytes before the input's offset */
  file_rows *rows;
  uint8_t *buf;
  size_t room, start, have;
  bool at_end, ends_cut; /* no more bytes; the last one is no line end */
  bool broken;           /* a stream that failed: what was read of it is gone */
  /* A file that may grow: no byte behind `bound` is read, and what goes out was read while the file began
   * with the `kept` bytes of this hash. */
  bool grows, changed;
  uint64_t bound, kept, kept_hash;
  file_parquet *parquet;
  /* IPC */
  weir_ipc_reader *ipc;
  weir_batch *held; /* a batch of which rows from progress.row on are left */
  bool set_aside;   /* rows, in the last call of file_reader_next */
};

static bool is_counted(file_format format) {
  return format == FILE_ARROW || format == FILE_PARQUET;
}

weir_status file_reader_new(const file_reader_options *options, file_reader **out,
                            weir_error *err) {
  file_reader *reader = calloc(1, sizeof(*reader));
  if (reader == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a reader");
  reader->fd = -1;
  reader->options = *options;
  reader->options.csv = (weir_csv_options){0}; /* its texts are the caller's */
  reader->schema = weir_schema_ref(options->schema);
  if (!is_counted(options->format)) {
    weir_status status = file_rows_new(options, &reader->rows, err);
    if (status != WEIR_OK) {
      file_reader_free(reader);
      return status;
    }
  }
  *out = reader;
  return WEIR_OK;
}

void file_reader_close(file_reader *reader) {
  weir_batch_unref(reader->held);
  reader->held = NULL;
  weir_ipc_reader_free(reader->ipc);
  reader->ipc = NULL;
  file_parquet_free(reader->parquet);
  reader->parquet = NULL;
  file_input_free(reader->input);
  reader->input = NULL;
  if (reader->fd >= 0) close(reader->fd);
  reader->fd = -1;
  reader->item = NULL;
}

void file_reader_free(file_reader *reader) {
  if (reader == NULL) return;
  file_reader_close(reader);
  file_rows_free(reader->rows);
  weir_schema_unref(reader->schema);
  free(reader->buf);
  free(reader);
}

bool file_reader_is_open(const file_reader *reader) {
  return reader->item != NULL;
}

bool file_reader_take_set_aside(file_reader *reader) {
  bool any = reader->set_aside;
  reader->set_aside = false;
  return any;
}

/* What is wrong inside of a file is bad data, whatever its format calls it. */
static weir_status in_file(const file_reader *reader, const file_item *item,
                           weir_status status, weir_error *err) {
  if (status == WEIR_E_CORRUPT || status == WEIR_E_BAD_DATA) {
    status = WEIR_E_BAD_DATA;
    if (err != NULL) {
      err->code = status;
      err->flags |= WEIR_ERR_BAD_DATA;
    }
  }
  if (err == NULL) return status;
  /* A value, or a key, that the sample had no room for; the message's end may be cut, so this goes first. */
  if (reader->options.inferred && (status == WEIR_E_SCHEMA || err->column >= 0)) {
    weir_error_prefix(
        err, status,
        "not as in the sample that the schema was inferred from; write the "
        "schema down as `weir check` prints it, each type as it must be and new "
        "columns with theirs; those left out of it are then ignored");
  }
  /* The IPC reader names the file itself. */
  size_t n = strlen(item->path);
  if (strncmp(err->message, item->path, n) == 0 &&
      strncmp(err->message + n, ": ", 2) == 0)
    memmove(err->message, err->message + n + 2, strlen(err->message + n + 2) + 1);
  else if (strstr(err->message, item->path) != NULL)
    return status;
  return weir_error_prefix(err, status, "file %s", item->path);
}

/* A file whose progress is not kept in its own bytes must stay as it is. */
static weir_status pin(file_reader *reader, file_item *item, uint8_t flags,
                       weir_error *err) {
  file_progress fresh = {.flags = flags, .covered = item->size};
  if (item->progress.covered > 0) return WEIR_OK;
  weir_status status =
      file_window_hash(reader->fd, item->path, item->size, &fresh.hash, err);
  if (status == WEIR_OK) item->progress = fresh;
  return status;
}

static weir_status read_for_ipc(void *ctx, void *to, size_t size, size_t *got,
                                weir_error *err) {
  bool wait = false;
  return file_input_read(ctx, to, size, got, &wait, err);
}

static weir_status start_ipc(file_reader *reader, const file_item *item,
                             weir_error *err) {
  weir_status status =
      reader->packing != FILE_PLAIN
          ? weir_ipc_reader_open_stream(read_for_ipc, reader->input, item->path, NULL,
                                        &reader->ipc, err)
          : weir_ipc_reader_open_fd(reader->fd, item->path, NULL, &reader->ipc, err);
  return status == WEIR_OK ? status : in_file(reader, item, status, err);
}

static weir_status start_parquet(file_reader *reader, const file_item *item,
                                 weir_error *err) {
  if (reader->packing != FILE_PLAIN) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "file %s: Parquet is compressed page by page and cannot be read "
        "out of gzip or zstd; unpack it, or set compression to none",
        item->path);
  }
  weir_status status =
      file_parquet_new(reader->fd, item->path, item->size, reader->options.batch_rows,
                       &reader->parquet, err);
  return status == WEIR_OK ? status : in_file(reader, item, status, err);
}

/* Opens what knows its own schema, which is borrowed. */
static weir_status start_counted(file_reader *reader, const file_item *item,
                                 weir_schema **schema, weir_error *err) {
  bool parquet = reader->options.format == FILE_PARQUET;
  weir_status status =
      parquet ? start_parquet(reader, item, err) : start_ipc(reader, item, err);
  if (status != WEIR_OK) return status;
  *schema = parquet ? file_parquet_schema(reader->parquet)
                    : weir_ipc_reader_schema(reader->ipc);
  return WEIR_OK;
}

weir_status file_own_schema(const file_item *item, file_format format,
                            const char *compression, weir_schema **out, weir_error *err) {
  file_reader reader = {.fd = -1,
                        .packing = file_packing_of(compression, item->path),
                        .options = {.format = format, .batch_rows = 1}};
  weir_schema *schema = NULL;
  weir_status status = file_item_open(item, &reader.fd, err);
  if (status != WEIR_OK) return status;
  if (reader.packing != FILE_PLAIN && format == FILE_ARROW) {
    status =
        file_input_new(reader.fd, item->path, reader.packing, false, &reader.input, err);
  }
  if (status == WEIR_OK) status = start_counted(&reader, item, &schema, err);
  if (status == WEIR_OK) *out = weir_schema_ref(schema);
  file_reader_close(&reader);
  return status;
}

static weir_status open_counted(file_reader *reader, file_item *item, weir_error *err) {
  weir_schema *schema = NULL;
  weir_status status = start_counted(reader, item, &schema, err);
  if (status != WEIR_OK) return status;
  status = weir_schema_check(weir_schema_arrow(reader->schema), weir_schema_arrow(schema),
                             "the files of one source must agree", err);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "file %s", item->path);
  bool begun = item->progress.covered > 0;
  uint8_t flags = FILE_COUNTED;
  if (reader->packing != FILE_PLAIN) flags |= FILE_PACKED;
  if (reader->parquet != NULL) flags |= FILE_GROUPS;
  status = pin(reader, item, flags, err);
  if (status != WEIR_OK || !begun) return status;
  status = reader->parquet != NULL
               ? file_parquet_seek(reader->parquet, &item->progress, err)
               : weir_ipc_reader_seek_batch(reader->ipc, item->progress.count, err);
  return status == WEIR_OK ? status : in_file(reader, item, status, err);
}

/* Whether the file still begins with what was read of it: it may have been cut and written anew since. */
static weir_status check_kept(file_reader *reader, weir_error *err) {
  uint64_t hash = 0;
  if (!reader->grows || reader->kept == 0) return WEIR_OK;
  weir_status status =
      file_window_hash(reader->fd, reader->item->path, reader->kept, &hash, err);
  reader->changed |= status == WEIR_E_BAD_DATA || (!status && hash != reader->kept_hash);
  return status == WEIR_E_BAD_DATA ? WEIR_OK : status;
}

/* Bad rows may be a mixture of what the file held before it was cut, and after. */
static bool is_mixed(file_reader *reader) {
  return check_kept(reader, NULL) == WEIR_OK && reader->changed;
}

static weir_status make_room(file_reader *reader, weir_error *err) {
  size_t left = reader->have - reader->start;
  if (left > 0 && reader->start > 0)
    memmove(reader->buf, reader->buf + reader->start, left);
  reader->start = 0;
  reader->have = left;
  if (reader->room > 0 && reader->room - left >= block_size / 2) return WEIR_OK;
  /* a line longer than the buffer; the decoder bounds its length */
  size_t room = reader->room == 0 ? block_size : reader->room * 2;
  uint8_t *buf = realloc(reader->buf, room);
  if (buf == NULL) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a line");
  reader->buf = buf;
  reader->room = room;
  return WEIR_OK;
}

/* Reads a block behind what the buffer holds. *wait: standard input has nothing yet. */
static weir_status fill(file_reader *reader, bool *wait, weir_error *err) {
  size_t got = 0;
  weir_status status = make_room(reader, err);
  if (status != WEIR_OK) return status;
  uint8_t *to = reader->buf + reader->have;
  size_t want = reader->room - reader->have;
  if (reader->grows) {
    uint64_t left = reader->bound - file_input_offset(reader->input);
    if (want > left) want = (size_t)left;
  }
  if (want > 0) status = file_input_read(reader->input, to, want, &got, wait, err);
  if (status != WEIR_OK || *wait) return status;
  reader->at_end = got == 0;
  reader->changed |= reader->grows && got == 0 && want > 0;
  if (reader->grows && reader->kept == 0 && got > 0) {
    reader->kept = got < FILE_WINDOW ? got : FILE_WINDOW;
    reader->kept_hash = file_hash(to, (size_t)reader->kept);
  }
  if (got > 0) reader->ends_cut = to[got - 1] != '\n';
  reader->have += got;
  return WEIR_OK;
}

/* Decompressed bytes cannot be sought: those before `offset` are read once more. */
static weir_status go_to(file_reader *reader, uint64_t offset, weir_error *err) {
  uint64_t end = file_input_offset(reader->input);
  bool wait = false;
  reader->at_end = false;
  if (reader->packing == FILE_PLAIN) {
    reader->start = reader->have = 0;
    file_input_seek(reader->input, offset);
    return WEIR_OK;
  }
  if (offset <= end && end - offset <= reader->have) {
    reader->start = reader->have - (size_t)(end - offset);
    return WEIR_OK;
  }
  reader->start = reader->have = 0;
  weir_status status = make_room(reader, err);
  while (status == WEIR_OK && end < offset) {
    size_t got = 0, want = reader->room;
    if (want > offset - end) want = (size_t)(offset - end);
    status = file_input_read(reader->input, reader->buf, want, &got, &wait, err);
    if (status == WEIR_OK && got == 0) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "file %s: the position lies behind its decompressed end",
                            reader->item->path);
    }
    end += got;
  }
  return status;
}

/* Where reading stands, in bytes of the text. */
static uint64_t read_before(const file_item *item) {
  return item->progress.flags & FILE_PACKED ? item->progress.row : item->progress.covered;
}

/* Stands where the file's progress is, with the header known that rows behind it need. */
static weir_status start_rows(file_reader *reader, file_item *item, weir_error *err) {
  uint64_t before = read_before(item);
  uint8_t flags = item->progress.flags;
  bool wait = false;
  weir_status status = WEIR_OK;
  reader->start = reader->have = 0;
  reader->at_end = false;
  file_rows_set_part(reader->rows, item->path);
  file_rows_reset(reader->rows, 0, 0);
  if (before > 0 && file_rows_has_header(reader->rows)) {
    size_t used = 0;
    while (used == 0 && !reader->at_end) {
      status = fill(reader, &wait, err);
      if (status != WEIR_OK) return status;
      status = file_rows_header(reader->rows, reader->buf, reader->have, reader->at_end,
                                &used, err);
      if (status != WEIR_OK) return in_file(reader, item, status, err);
    }
  }
  if (file_rows_offset(reader->rows) < before) {
    file_rows_reset(reader->rows, before, item->progress.count);
  } /* else no more than blanks before the header had been there */
  status = go_to(reader, file_rows_offset(reader->rows), err);
  if (status == WEIR_OK && reader->packing != FILE_PLAIN && !reader->options.stream)
    status = pin(reader, item, FILE_PACKED, err);
  reader->ends_cut = flags & FILE_CUT;
  return status;
}

static weir_status open_input(file_reader *reader, file_item *item, weir_error *err) {
  bool counted = is_counted(reader->options.format);
  bool packed = reader->packing != FILE_PLAIN;
  weir_status status = WEIR_OK;
  if (!counted || (packed && reader->options.format == FILE_ARROW)) {
    status = file_input_new(reader->fd, item->path, reader->packing,
                            reader->options.stream, &reader->input, err);
  }
  if (status != WEIR_OK) return status;
  if (counted) return open_counted(reader, item, err);
  posix_fadvise(reader->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  return start_rows(reader, item, err);
}

static weir_status open_stream(const file_reader *reader, int *fd, weir_error *err) {
  if (reader->broken) {
    return weir_error_set(err, WEIR_E_IO, 0,
                          "reading standard input failed before, and it cannot be read "
                          "again from there");
  }
  int opened = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (opened < 0) return weir_error_errno(err, errno, "cannot open standard input");
  *fd = opened;
  return WEIR_OK;
}

weir_status file_reader_open(file_reader *reader, file_item *item, weir_error *err) {
  bool counted = is_counted(reader->options.format);
  uint8_t flags = item->progress.flags;
  reader->packing = file_packing_of(reader->options.compression, item->path);
  if (item->progress.covered > 0 &&
      (counted != !!(flags & FILE_COUNTED) ||
       (reader->options.format == FILE_PARQUET) != !!(flags & FILE_GROUPS) ||
       (reader->packing != FILE_PLAIN) != !!(flags & FILE_PACKED))) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "file %s was begun in another format; set `format` and `compression` back",
        item->path);
  }
  weir_status status = reader->options.stream   ? open_stream(reader, &reader->fd, err)
                       : reader->options.follow ? file_item_try(item, &reader->fd, err)
                                                : file_item_open(item, &reader->fd, err);
  if (status != WEIR_OK || reader->fd < 0) return status;
  reader->item = item;
  reader->grows = reader->options.follow && !counted && reader->packing == FILE_PLAIN;
  reader->bound = item->size;
  reader->kept = item->progress.covered;
  reader->kept_hash = item->progress.hash;
  if (item->seen.held > reader->kept) {
    reader->kept = item->seen.held;
    reader->kept_hash = item->seen.held_hash;
  }
  reader->changed = false;
  status = open_input(reader, item, err);
  if (status == WEIR_E_BAD_DATA && is_mixed(reader)) status = WEIR_OK;
  if (status != WEIR_OK || reader->changed) file_reader_close(reader);
  return status;
}

/* Makes the progress that of the decoder, whose rows are all out. */
static void note_lines(file_reader *reader) {
  file_progress *progress = &reader->item->progress;
  bool end = reader->at_end && reader->start == reader->have;
  if (reader->options.stream) return;
  progress->count = file_rows_line(reader->rows);
  if (reader->packing != FILE_PLAIN) {
    progress->row = file_rows_offset(reader->rows);
    return;
  }
  progress->covered = file_rows_offset(reader->rows);
  progress->flags = end && reader->ends_cut && !reader->grows ? FILE_CUT : 0;
}

/* Hashes what is delivered now. With every batch, so that a position can be written at any time, also
 * when the file cannot be read any more; some microseconds for 32 KiB out of the page cache. */
static weir_status settle(file_reader *reader, weir_error *err) {
  file_progress *progress = &reader->item->progress;
  if (reader->packing != FILE_PLAIN || progress->covered == 0) return WEIR_OK;
  weir_status status = file_window_hash(reader->fd, reader->item->path, progress->covered,
                                        &progress->hash, err);
  if (status == WEIR_E_BAD_DATA && reader->grows) {
    reader->changed = true;
    return WEIR_OK;
  }
  if (status == WEIR_OK) status = check_kept(reader, err); /* the hash first */
  if (progress->covered >= reader->kept) {
    reader->kept = progress->covered;
    reader->kept_hash = progress->hash;
  }
  return status;
}

/* The file's end, with all its rows out. With `follow` a last line without line end waits for it. */
static void finish(file_reader *reader) {
  if (!reader->grows || reader->item->progress.covered == reader->bound)
    reader->item->progress.flags |= FILE_DONE;
  reader->item->seen.tried = reader->item->size;
  file_reader_close(reader);
}

/* Lines go out, or the end is reached: notes how far that is. With the last batch the file is done at
 * once, so that from then on it may be deleted. */
static weir_status give_lines(file_reader *reader, bool end, weir_error *err) {
  struct stat st;
  bool wait = false;
  weir_status status = WEIR_OK;
  if (reader->start == reader->have && !reader->at_end && !reader->options.stream) {
    if (reader->packing != FILE_PLAIN) {
      status = fill(reader, &wait, err);
    } else if (reader->grows) {
      reader->at_end = file_input_offset(reader->input) == reader->bound;
    } else {
      reader->at_end = fstat(reader->fd, &st) == 0 &&
                       (uint64_t)st.st_size == file_input_offset(reader->input);
    }
  }
  if (status != WEIR_OK) return status;
  end |= reader->at_end && reader->start == reader->have;
  note_lines(reader);
  status = settle(reader, err);
  if (status == WEIR_OK && end && !reader->changed) finish(reader);
  return status;
}

/* Rows were set aside and have to be told now, so what was decoded goes out with them: the progress lies behind
 * both. */
static weir_status give_set_aside(file_reader *reader, int32_t *what, weir_batch **out,
                                  weir_error *err) {
  weir_status status = file_rows_flush(reader->rows, out, err);
  if (status != WEIR_OK) return status;
  *what = *out != NULL ? WEIR_READ_BATCH : WEIR_READ_NOTHING;
  return give_lines(reader, false, err);
}

/* Standard input has nothing: what was decoded of it goes out at once. */
static weir_status wait_for_lines(file_reader *reader, const weir_call *call,
                                  weir_batch **batch, bool *more, weir_error *err) {
  weir_status status = file_rows_flush(reader->rows, batch, err);
  if (status != WEIR_OK || *batch != NULL || reader->set_aside) return status;
  *more = file_input_wait(reader->input, call);
  return WEIR_OK;
}

/* This and next_ipc: *out may hold a batch on failure too. */
static weir_status next_lines(file_reader *reader, const weir_call *call, int32_t *what,
                              weir_batch **out, weir_error *err) {
  weir_batch *batch = NULL;
  weir_status status = WEIR_OK;
  for (;;) {
    size_t used = 0;
    status = file_rows_feed(reader->rows, reader->buf + reader->start,
                            reader->have - reader->start,
                            reader->at_end && !reader->grows, &used, &batch, err);
    if (status != WEIR_OK) return in_file(reader, reader->item, status, err);
    reader->start += used;
    bool full = file_rows_aside_full(reader->rows);
    reader->set_aside |= file_rows_set_aside(reader->rows) > 0;
    if (batch == NULL && full) return give_set_aside(reader, what, out, err);
    if (batch == NULL && reader->at_end) {
      status = file_rows_flush(reader->rows, &batch, err);
      if (status != WEIR_OK) return status;
      if (batch == NULL) {
        *what = WEIR_READ_END;
        return give_lines(reader, true, err);
      }
    }
    if (batch != NULL) {
      *what = WEIR_READ_BATCH;
      *out = batch;
      return give_lines(reader, false, err);
    }
    bool wait = false;
    status = fill(reader, &wait, err);
    if (status != WEIR_OK) return status;
    bool more = !weir_call_cancelled(call);
    if (wait) status = wait_for_lines(reader, call, &batch, &more, err);
    if (status != WEIR_OK) return status;
    if (batch == NULL && reader->set_aside && (wait || !more))
      return give_set_aside(reader, what, out, err);
    if (batch == NULL && more) continue;
    *what = batch != NULL ? WEIR_READ_BATCH : WEIR_READ_NOTHING;
    *out = batch;
    return WEIR_OK;
  }
}

/* The rows of the held batch from progress.row on, at most batch_rows of them when slicing. */
static weir_status take_rows(file_reader *reader, weir_batch **out, weir_error *err) {
  file_progress *progress = &reader->item->progress;
  int64_t all = weir_batch_rows(reader->held), from = (int64_t)progress->row,
          rows = all - from;
  if (reader->options.slice && rows > reader->options.batch_rows)
    rows = reader->options.batch_rows;
  if (from == 0 && rows == all) {
    *out = reader->held;
    reader->held = NULL;
  } else {
    weir_batch *slice = NULL;
    weir_status status = weir_batch_slice(reader->held, from, rows, &slice, err);
    if (status != WEIR_OK) return status;
    *out = slice;
  }
  progress->row += (uint64_t)rows;
  if (from + rows == all) {
    weir_batch_unref(reader->held);
    reader->held = NULL;
    progress->row = 0;
    progress->count++;
  }
  return WEIR_OK;
}

/* What follows a compressed stream's end mark is not read as rows, but its checksum must be good. */
static weir_status check_rest(file_reader *reader, weir_error *err) {
  uint8_t rest[4096];
  size_t got = 1;
  bool wait = false;
  weir_status status = WEIR_OK;
  while (status == WEIR_OK && reader->input != NULL && got > 0)
    status = file_input_read(reader->input, rest, sizeof(rest), &got, &wait, err);
  return status;
}

static weir_status next_ipc(file_reader *reader, int32_t *what, weir_batch **out,
                            weir_error *err) {
  file_progress *progress = &reader->item->progress;
  for (;;) {
    if (reader->held == NULL) {
      weir_status status = weir_ipc_reader_next(reader->ipc, &reader->held, err);
      if (status != WEIR_OK) return in_file(reader, reader->item, status, err);
      if (reader->held == NULL) {
        status = check_rest(reader, err);
        if (status != WEIR_OK) return status;
        *what = WEIR_READ_END;
        finish(reader);
        return WEIR_OK;
      }
    }
    uint64_t rows = (uint64_t)weir_batch_rows(reader->held);
    if (progress->row > rows) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "file %s: the position lies behind the end of batch %llu",
                            reader->item->path, (unsigned long long)progress->count);
    }
    if (progress->row < rows) break;
    /* an empty batch is no batch to a sink */
    weir_batch_unref(reader->held);
    reader->held = NULL;
    progress->row = 0;
    progress->count++;
  }
  *what = WEIR_READ_BATCH;
  return take_rows(reader, out, err);
}

static weir_status next_parquet(file_reader *reader, int32_t *what, weir_batch **out,
                                weir_error *err) {
  weir_status status =
      file_parquet_next(reader->parquet, &reader->item->progress, out, err);
  if (status != WEIR_OK) return in_file(reader, reader->item, status, err);
  *what = *out != NULL ? WEIR_READ_BATCH : WEIR_READ_END;
  if (*out == NULL) finish(reader);
  return WEIR_OK;
}

weir_status file_reader_next(file_reader *reader, const weir_call *call, int32_t *what,
                             weir_batch **out, weir_error *err) {
  file_item *item = reader->item;
  file_progress before = item->progress;
  weir_batch *batch = NULL;
  int32_t got = 0;
  file_format format = reader->options.format;
  reader->set_aside = false;
  weir_status status = format == FILE_PARQUET ? next_parquet(reader, &got, &batch, err)
                       : format == FILE_ARROW
                           ? next_ipc(reader, &got, &batch, err)
                           : next_lines(reader, call, &got, &batch, err);
  if (status == WEIR_E_BAD_DATA && is_mixed(reader)) status = WEIR_OK;
  if (status != WEIR_OK || reader->changed) {
    /* nothing went out: the next call begins anew where this one did */
    weir_batch_unref(batch);
    if (reader->set_aside)
      reader->options.set_aside->drop(reader->options.set_aside->ctx);
    reader->set_aside = false;
    file_reader_close(reader);
    reader->broken = reader->options.stream;
    item->progress = before;
    if (status == WEIR_OK) *what = FILE_READ_CHANGED;
    return status;
  }
  *what = got;
  if (batch != NULL) *out = batch;
  return WEIR_OK;
}
