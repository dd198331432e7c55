/* SPDX-License-Identifier: Apache-2.0 */
/* The reader: a stream from its beginning on, a file by its footer. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arrow/ipc.h"

/* "ARROW1" and two bytes of padding begin a file; the footer's size and "ARROW1" end it. */
#define MAGIC "ARROW1"
#define MAGIC_SIZE 6
#define HEAD_SIZE 8
#define TAIL_SIZE 10

struct weir_ipc_reader {
  ipc_source source;
  ipc_schema schema;
  ipc_dicts dicts;
  ipc_decoder decoder;
  uint64_t next;  /* number of the next batch */
  uint64_t start; /* stream: where the messages behind the schema begin */
  bool ended;     /* stream: the end was met */
  bool is_file;
  ipc_footer footer;
  bool dicts_known;   /* whether `replaces` was found out */
  bool replaces;      /* the file has several dictionaries of one id that are no deltas */
  size_t dicts_taken; /* of footer.dictionaries */
  int fd;             /* own descriptor of what is not mapped, or -1 */
  weir_status failure; /* what every call answers from now on */
  weir_error why;
};

static weir_status fail(weir_ipc_reader *reader, weir_status status,
                        const weir_error *why, weir_error *err) {
  reader->failure = status;
  reader->why = *why;
  if (err != NULL) *err = *why;
  return status;
}

/* ---- dictionaries and batches ---- */

static weir_status take_dictionary(weir_ipc_reader *reader, const ipc_message *message,
                                   weir_error *err) {
  weir_status status = ipc_dicts_take(&reader->dicts, &reader->decoder, message, err);
  return status == WEIR_OK ? status
                           : ipc_source_error(&reader->source, message->at, err, status);
}

static void release_array(struct ArrowArray *array) {
  ipc_array_unref(array->private_data);
  array->release = NULL;
}

static weir_status make_batch(weir_ipc_reader *reader, const ipc_message *message,
                              weir_batch **out, weir_error *err) {
  ipc_array *array = NULL;
  weir_status status = ipc_body_decode(
      &reader->decoder, arrow_schema_root(reader->schema.schema), message, &array, err);
  if (status == WEIR_OK) status = ipc_dicts_apply(&reader->dicts, array, err);
  if (status == WEIR_OK) {
    struct ArrowArray top = array->root;
    top.release = release_array;
    top.private_data = array;
    status = arrow_batch_wrap(reader->schema.schema, &top, out, err);
    if (status == WEIR_OK) return status;
  }
  ipc_array_unref(array);
  return ipc_source_error(&reader->source, message->at, err, status);
}

/* ---- file format ---- */

static weir_status read_block(weir_ipc_reader *reader, const ipc_block *block,
                              ipc_kind kind, ipc_message *out, weir_error *err) {
  bool end = false;
  uint64_t size = reader->source.blob->size;
  if (block->offset < HEAD_SIZE || (uint64_t)block->offset >= size) {
    weir_error_set(err, WEIR_E_CORRUPT, 0, "the footer names a message at %" PRId64,
                   block->offset);
    return ipc_source_error(&reader->source, size, err, WEIR_E_CORRUPT);
  }
  reader->source.at = (uint64_t)block->offset;
  BASE_TRY(ipc_source_message(&reader->source, out, &end, err));
  reader->source.at = (uint64_t)block->offset;
  if (!end && out->kind == kind) return WEIR_OK;
  weir_error_set(err, WEIR_E_CORRUPT, 0, "the footer names a %s here, but there is none",
                 kind == IPC_BATCH ? "record batch" : "dictionary");
  return ipc_source_error(&reader->source, reader->source.at, err, WEIR_E_CORRUPT);
}

static int by_offset(const void *a, const void *b) {
  int64_t x = ((const ipc_block *)a)->offset, y = ((const ipc_block *)b)->offset;
  return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The format allows one dictionary of each id, with deltas, valid for all batches wherever it
 * lies. A file with several is read like the stream that it holds: what comes last before a batch is
 * in force. */
static weir_status learn_dictionaries(weir_ipc_reader *reader, weir_error *err) {
  ipc_footer *footer = &reader->footer;
  size_t n = 0;
  int64_t *ids = base_calloc(footer->n_dictionaries, sizeof *ids, err);
  weir_status status = ids == NULL ? WEIR_E_NOMEM : WEIR_OK;
  for (size_t i = 0; i < footer->n_dictionaries && status == WEIR_OK; i++) {
    ipc_message message = {0};
    status = read_block(reader, &footer->dictionaries[i], IPC_DICTIONARY, &message, err);
    if (status == WEIR_OK && !message.delta) ids[n++] = message.id;
  }
  if (status == WEIR_OK && n > 1) {
    qsort(ids, n, sizeof *ids, by_value);
    for (size_t i = 1; i < n; i++) reader->replaces |= ids[i] == ids[i - 1];
    if (reader->replaces)
      qsort(footer->dictionaries, footer->n_dictionaries, sizeof *footer->dictionaries,
            by_offset);
  }
  free(ids);
  reader->dicts_known = status == WEIR_OK;
  return status;
}

/* Brings the dictionaries to what they are for the batch at `offset`. */
static weir_status file_dictionaries(weir_ipc_reader *reader, int64_t offset,
                                     weir_error *err) {
  ipc_footer *footer = &reader->footer;
  if (!reader->dicts_known) BASE_TRY(learn_dictionaries(reader, err));
  if (reader->replaces && reader->dicts_taken > 0 &&
      footer->dictionaries[reader->dicts_taken - 1].offset > offset) {
    ipc_dicts_clear(&reader->dicts);
    reader->dicts_taken = 0;
  }
  while (reader->dicts_taken < footer->n_dictionaries) {
    ipc_message message = {0};
    const ipc_block *block = &footer->dictionaries[reader->dicts_taken];
    if (reader->replaces && block->offset > offset) break;
    BASE_TRY(read_block(reader, block, IPC_DICTIONARY, &message, err));
    BASE_TRY(take_dictionary(reader, &message, err));
    reader->dicts_taken++;
  }
  return WEIR_OK;
}

static weir_status file_next(weir_ipc_reader *reader, weir_batch **out, weir_error *err) {
  ipc_message message = {0};
  if (reader->next == reader->footer.n_batches) {
    *out = NULL;
    return WEIR_OK;
  }
  const ipc_block *block = &reader->footer.batches[reader->next];
  BASE_TRY(file_dictionaries(reader, block->offset, err));
  BASE_TRY(read_block(reader, block, IPC_BATCH, &message, err));
  BASE_TRY(make_batch(reader, &message, out, err));
  reader->next++;
  return WEIR_OK;
}

/* ---- stream format ---- */

/* The next record batch's message, dictionaries taken on the way; *end when there is none. */
static weir_status stream_message(weir_ipc_reader *reader, ipc_message *out, bool *end,
                                  weir_error *err) {
  ipc_source *source = &reader->source;
  *end = reader->ended;
  while (!*end) {
    ipc_message message = {0};
    uint64_t at = source->at;
    BASE_TRY(ipc_source_message(source, &message, end, err));
    if (*end) break;
    if (message.kind == IPC_BATCH) {
      *out = message;
      return WEIR_OK;
    }
    if (message.kind == IPC_SCHEMA) {
      weir_error_set(err, WEIR_E_CORRUPT, 0, "a second schema within one stream");
      return ipc_source_error(source, at, err, WEIR_E_CORRUPT);
    }
    BASE_TRY(take_dictionary(reader, &message, err));
  }
  reader->ended = true;
  if (source->blob != NULL && source->at < source->blob->size) {
    weir_error_set(err, WEIR_E_CORRUPT, 0,
                   "%" PRIu64
                   " bytes behind the end of the stream; a file holds one stream",
                   source->blob->size - source->at);
    return ipc_source_error(source, source->at, err, WEIR_E_CORRUPT);
  }
  return WEIR_OK;
}

static weir_status stream_next(weir_ipc_reader *reader, weir_batch **out,
                               weir_error *err) {
  ipc_message message = {0};
  bool end = false;
  BASE_TRY(stream_message(reader, &message, &end, err));
  if (end) {
    *out = NULL;
    return WEIR_OK;
  }
  BASE_TRY(make_batch(reader, &message, out, err));
  reader->next++;
  return WEIR_OK;
}

weir_status weir_ipc_reader_next(weir_ipc_reader *reader, weir_batch **out,
                                 weir_error *err) {
  weir_error why = {0};
  if (reader->failure != WEIR_OK) return fail(reader, reader->failure, &reader->why, err);
  weir_status status =
      reader->is_file ? file_next(reader, out, &why) : stream_next(reader, out, &why);
  return status == WEIR_OK ? WEIR_OK : fail(reader, status, &why, err);
}

weir_status weir_ipc_reader_seek_batch(weir_ipc_reader *reader, uint64_t index,
                                       weir_error *err) {
  weir_error why = {0};
  if (reader->failure != WEIR_OK) return fail(reader, reader->failure, &reader->why, err);
  if (reader->is_file && index <= reader->footer.n_batches) {
    reader->next = index;
    return WEIR_OK;
  }
  if (!reader->is_file && index < reader->next) {
    if (reader->source.blob == NULL)
      return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                            "%s: cannot go back from batch %" PRIu64 " to %" PRIu64
                            " of a stream",
                            reader->source.name, reader->next, index);
    reader->source.at = reader->start;
    ipc_dicts_clear(&reader->dicts);
    reader->next = 0;
    reader->ended = false;
  }
  while (!reader->is_file && reader->next < index) {
    ipc_message message = {0};
    bool end = false;
    weir_status status = stream_message(reader, &message, &end, &why);
    if (status != WEIR_OK) return fail(reader, status, &why, err);
    if (end) break;
    reader->next++;
  }
  if (!reader->is_file && reader->next == index) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_STATE, 0,
      "%s: there is no batch %" PRIu64 "; it has %" PRIu64 " batches",
      reader->source.name, index,
      reader->is_file ? (uint64_t)reader->footer.n_batches : reader->next);
}

uint64_t weir_ipc_reader_tell(const weir_ipc_reader *reader) {
  return reader->next;
}

int64_t weir_ipc_reader_batches(const weir_ipc_reader *reader) {
  return reader->is_file ? (int64_t)reader->footer.n_batches : -1;
}

uint64_t weir_ipc_reader_offset(const weir_ipc_reader *reader) {
  return reader->source.at;
}

int weir_ipc_reader_is_file(const weir_ipc_reader *reader) {
  return reader->is_file;
}

weir_schema *weir_ipc_reader_schema(const weir_ipc_reader *reader) {
  return reader->schema.schema;
}

/* ---- opening ---- */

static weir_status read_footer(weir_ipc_reader *reader, weir_error *err) {
  ipc_source *source = &reader->source;
  const uint64_t size = source->blob->size;
  const uint8_t *tail = source->blob->data + (size < TAIL_SIZE ? 0 : size - TAIL_SIZE);
  uint32_t footer_size = 0;
  if (size < HEAD_SIZE + TAIL_SIZE || memcmp(tail + 4, MAGIC, MAGIC_SIZE) != 0) {
    weir_error_set(
        err, WEIR_E_CORRUPT, 0,
        "the Arrow file has no footer: it was cut short or is still being written");
    return ipc_source_error(source, size, err, WEIR_E_CORRUPT);
  }
  memcpy(&footer_size, tail, 4);
  if (footer_size > size - HEAD_SIZE - TAIL_SIZE || footer_size > source->max_metadata) {
    weir_error_set(err, WEIR_E_CORRUPT, 0,
                   "a footer of %" PRIu32 " bytes in a file of %" PRIu64, footer_size,
                   size);
    return ipc_source_error(source, size - TAIL_SIZE, err, WEIR_E_CORRUPT);
  }
  const uint64_t at = size - TAIL_SIZE - footer_size;
  BASE_TRY(base_buf_append(&source->metadata, source->blob->data + at, footer_size, err));
  weir_status status =
      ipc_footer_parse(source->metadata.data, footer_size, &reader->footer, err);
  if (status == WEIR_OK)
    status = ipc_schema_parse(reader->footer.schema, footer_size, &reader->schema, err);
  if (status != WEIR_OK) return ipc_source_error(source, at, err, status);
  reader->is_file = true;
  source->at = HEAD_SIZE;
  return WEIR_OK;
}

static weir_status read_schema(weir_ipc_reader *reader, weir_error *err) {
  ipc_source *source = &reader->source;
  ipc_message message = {0};
  bool end = false;
  const uint64_t at = 0;
  weir_status status = ipc_source_message(source, &message, &end, err);
  if (status == WEIR_OK && (end || message.kind != IPC_SCHEMA)) {
    status = weir_error_set(
        err, WEIR_E_CORRUPT, 0, "%s",
        end ? "there is nothing in it" : "the first message is not a schema");
    ipc_source_error(source, at, err, status);
  } else if (status == WEIR_OK) {
    status =
        ipc_schema_parse(message.schema, source->metadata.size, &reader->schema, err);
    if (status != WEIR_OK) ipc_source_error(source, at, err, status);
  }
  if (status == WEIR_E_CORRUPT)
    return weir_error_prefix(err, status, "no Arrow IPC stream or file");
  reader->start = source->at;
  return status;
}

static weir_status open_source(weir_ipc_reader *reader, weir_error *err) {
  ipc_source *source = &reader->source;
  if (source->blob != NULL) {
    if (source->blob->size >= MAGIC_SIZE &&
        memcmp(source->blob->data, MAGIC, MAGIC_SIZE) == 0)
      BASE_TRY(read_footer(reader, err));
    else
      BASE_TRY(read_schema(reader, err));
  } else {
    BASE_TRY(read_schema(reader, err));
  }
  return ipc_dicts_init(&reader->dicts, &reader->schema, err);
}

static weir_ipc_reader *reader_new(const char *name, const weir_ipc_options *options,
                                   weir_error *err) {
  weir_ipc_options o = {0};
  weir_ipc_reader *reader = base_calloc(1, sizeof *reader, err);
  if (reader == NULL) return NULL;
  if (options != NULL)
    memcpy(&o, options,
           options->struct_size < sizeof o ? options->struct_size : sizeof o);
  reader->fd = -1;
  reader->source.max_metadata =
      o.max_metadata_bytes != 0 ? o.max_metadata_bytes : 256u << 20;
  reader->source.max_body = o.max_body_bytes != 0 ? o.max_body_bytes : UINT64_C(16) << 30;
  reader->decoder.max_bytes = reader->source.max_body;
  reader->source.name = base_strdup(name == NULL ? "Arrow IPC" : name, err);
  if (reader->source.name != NULL) return reader;
  weir_ipc_reader_free(reader);
  return NULL;
}

static weir_status finish(weir_ipc_reader *reader, weir_status status,
                          weir_ipc_reader **out, weir_error *err) {
  if (status == WEIR_OK) status = open_source(reader, err);
  if (status == WEIR_OK)
    *out = reader;
  else
    weir_ipc_reader_free(reader);
  return status;
}

static weir_status read_fd(void *ctx, void *buf, size_t size, size_t *got,
                           weir_error *err) {
  const weir_ipc_reader *reader = ctx;
  ssize_t n;
  do {
    n = read(reader->fd, buf, size);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return base_io_error(err, errno, "read", reader->source.name);
  *got = (size_t)n;
  return WEIR_OK;
}

static weir_status map_file(weir_ipc_reader *reader, int fd, off_t size,
                            weir_error *err) {
  if (size == 0)
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s: no Arrow IPC stream or file: it is empty",
                          reader->source.name);
  ipc_blob *blob = ipc_blob_new(err);
  if (blob == NULL) return WEIR_E_NOMEM;
  void *mapping = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) {
    ipc_blob_unref(blob);
    return base_io_error(err, errno, "map", reader->source.name);
  }
  madvise(mapping, (size_t)size, MADV_SEQUENTIAL);
  blob->mapping = mapping;
  blob->data = mapping;
  blob->size = (size_t)size;
  reader->source.blob = blob;
  return WEIR_OK;
}

weir_status weir_ipc_reader_open_fd(int fd, const char *name,
                                    const weir_ipc_options *options,
                                    weir_ipc_reader **out, weir_error *err) {
  struct stat st;
  weir_ipc_reader *reader = reader_new(name, options, err);
  if (reader == NULL) return WEIR_E_NOMEM;
  weir_status status = WEIR_OK;
  if (fstat(fd, &st) != 0) {
    status = base_io_error(err, errno, "stat", reader->source.name);
  } else if (S_ISREG(st.st_mode)) {
    status = map_file(reader, fd, st.st_size, err);
  } else {
    reader->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    reader->source.read = read_fd;
    reader->source.ctx = reader;
    if (reader->fd < 0) status = base_io_error(err, errno, "dup", reader->source.name);
  }
  return finish(reader, status, out, err);
}

weir_status weir_ipc_reader_open_file(const char *path, const weir_ipc_options *options,
                                      weir_ipc_reader **out, weir_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return base_io_error(err, errno, "open", path);
  weir_status status = weir_ipc_reader_open_fd(fd, path, options, out, err);
  close(fd);
  return status;
}

weir_status weir_ipc_reader_open_bytes(weir_bytes *bytes, const char *name,
                                       const weir_ipc_options *options,
                                       weir_ipc_reader **out, weir_error *err) {
  weir_ipc_reader *reader = reader_new(name, options, err);
  if (reader == NULL) return WEIR_E_NOMEM;
  ipc_blob *blob = ipc_blob_new(err);
  if (blob == NULL) return finish(reader, WEIR_E_NOMEM, out, err);
  blob->data = bytes->size > 0 ? bytes->data : (const uint8_t *)ipc_zeros;
  blob->size = bytes->size;
  reader->source.blob = ipc_blob_ref(blob);
  /* The bytes move once nothing can fail any more; until then the blob only looks at them. */
  weir_status status = finish(reader, WEIR_OK, out, err);
  if (status == WEIR_OK) {
    blob->bytes = *bytes;
    bytes->release = NULL;
  }
  ipc_blob_unref(blob);
  return status;
}

weir_status weir_ipc_reader_open_stream(weir_ipc_read_fn read, void *ctx,
                                        const char *name, const weir_ipc_options *options,
                                        weir_ipc_reader **out, weir_error *err) {
  weir_ipc_reader *reader = reader_new(name, options, err);
  if (reader == NULL) return WEIR_E_NOMEM;
  reader->source.read = read;
  reader->source.ctx = ctx;
  return finish(reader, WEIR_OK, out, err);
}

void weir_ipc_reader_free(weir_ipc_reader *reader) {
  if (reader == NULL) return;
  ipc_dicts_done(&reader->dicts);
  ipc_schema_done(&reader->schema);
  ipc_decoder_done(&reader->decoder);
  ipc_footer_done(&reader->footer);
  ipc_source_done(&reader->source);
  if (reader->fd >= 0) close(reader->fd);
  free(reader);
}
