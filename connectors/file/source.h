/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the source `file`: which files there are, how far each was read, and reading on.
 *
 * Progress is kept per file, not as one place in a sequence: a position is the set of files of which
 * something was delivered, each with how far. So files may come, go and be renamed between
 * two runs, also ones that sort before what was read already.
 */
#ifndef CONNECTORS_FILE_SOURCE_H
#define CONNECTORS_FILE_SOURCE_H

#include <stdbool.h>
#include <weir/batch.h>
#include <weir/csv.h>
#include <weir/plugin.h>

extern const weir_source_ops weir_file_source_ops;

/* FILE_TSV is CSV with another default delimiter, and known to source.c alone. */
typedef enum file_format {
  FILE_NDJSON = 1,
  FILE_ARROW = 2,
  FILE_CSV = 3,
  FILE_TSV = 4,
  FILE_PARQUET = 5
} file_format;

enum {
  FILE_DONE = 1,    /* its end was reached */
  FILE_CUT = 2,     /* its last line has no line end, and was delivered */
  FILE_COUNTED = 4, /* batches or row groups are counted, not bytes */
  FILE_PACKED =
      8, /* compressed: it may not change, and rows are found by decompressing again */
  /* follow: its `covered` bytes are a copy of what another file, whose rotation it seems to be and whose mark is
   * in `row`, begins with; whoever reads that one on has read these */
  FILE_COPY = 16,
  FILE_SEEN =
      32, /* follow, and alone: nothing of it was read, and it goes on under any name */
  FILE_GROUPS = 64 /* with FILE_COUNTED: they are row groups */
};

/* How far a file was read. covered == 0 and no flags: not at all. */
typedef struct file_progress {
  uint8_t flags;
  uint64_t covered; /* rows: bytes delivered; counted and packed: size of the file */
  uint64_t hash;    /* of the bytes before `covered`, see file_window_hash */
  uint64_t count; /* rows: lines before `covered`; counted: batches or groups delivered */
  uint64_t
      row; /* counted: rows delivered of what comes after these; packed rows: bytes of
              text delivered */
} file_progress;

/* What scans of a followed folder remember of a file; zero without `follow`, and in no position. */
typedef struct file_seen {
  int64_t born, modified, changed; /* ns since 1970; 0: not known */
  uint64_t tried;           /* its size when all its complete lines had been read */
  uint64_t held, held_hash; /* its first bytes, of which a copy waits, and their hash */
  size_t match;   /* a scan's own: 1 + number of the known file that it is; 0: none */
  uint8_t state;  /* a scan's own */
  uint8_t absent; /* scans in a row in which it was not found */
  uint8_t unheld; /* the same for a copy of what it held before it was cut */
  bool quiet;     /* `changed` was so long ago that any later change shows in it */
  bool aside;     /* `path` does not name it: what it once named has this name now */
  bool other; /* beside a followed file, looks like its rotation, and is none of ours */
  bool wait;  /* not to be read before the next scan */
  bool followed; /* found by a scan, and not `other` */
} file_seen;

/* A file is who it is by device, inode and time of birth; the name is only a second try. */
typedef struct file_item {
  char *
      path; /* NULL for what a position knows and the folder no longer has, if it was done */
  uint64_t device, inode;
  uint32_t born; /* hash of the time of birth; 0: the file system does not tell */
  uint32_t
      name; /* hash of the path; follow: of that under which it was seen last with what was read of it */
  uint64_t size; /* when it was listed */
  file_progress progress;
  file_seen seen;
} file_item;

typedef struct file_list {
  file_item *items;
  size_t n, room;
} file_list;

uint32_t file_name_hash(const char *path);
/* Looks at one file; *there is false, and *item without a path, when there is no regular file. */
weir_status file_item_look(const char *path, file_item *item, bool *there,
                           weir_error *err);

void file_list_done(file_list *list); /* zeroed is fine */
/* Moves *item to the end of the list. */
weir_status file_list_add(file_list *list, file_item *item, weir_error *err);

/* The regular files that option `path` names, sorted by path, each inode once. A path without a
 * wildcard that is not there is left out, its hash put into `missing` (one uint32 an item's name). */
weir_status file_source_list(const weir_options *options, file_list *out,
                             file_list *missing, weir_error *err);

/* The path that means standard input. */
bool file_path_is_stream(const char *path);

/* Looks at the files of a list again: those that are there in *out, with their present identity and
 * size, no progress; the others in *missing. */
weir_status file_list_again(const file_list *old, file_list *out, file_list *missing,
                            weir_error *err);

uint64_t file_hash(const void *data, size_t size);
/* XXH3 over the first and the last 16 KiB before `covered`, at the present content. */
#define FILE_WINDOW 16384
weir_status file_window_hash(int fd, const char *path, uint64_t covered, uint64_t *hash,
                             weir_error *err);
/* Opens for reading. -1: the file that was listed is not under its name any more. */
weir_status file_item_try(const file_item *item, int *fd, weir_error *err);
/* Opens for reading and checks that it is still the file that was listed. */
weir_status file_item_open(const file_item *item, int *fd, weir_error *err);

/* Position bytes of all that was read: of `listed` and of `gone`. */
weir_status file_position_write(const file_list *listed, const file_list *gone,
                                weir_bytes *out, weir_error *err);
/* "3 files read; in/d.ndjson at byte 123" */
weir_status file_position_describe(const weir_bytes *position, weir_bytes *out,
                                   weir_error *err);
/* What a position knows, in *out. */
weir_status file_position_read(const weir_bytes *position, file_list *out,
                               weir_error *err);
/* Gives each listed file its progress out of `known`, which keeps what was not found again. Refuses
 * files that are not what was read any more, and ones that are gone half-read. */
weir_status file_position_match(file_list *listed, file_list *known, weir_error *err);

/* A decoder of one of the formats that are rows of text, behind one set of verbs; they are those of
 * <weir/ndjson.h> and <weir/csv.h>. Where bad rows are set aside, feeding goes on behind each. */
typedef struct file_rows file_rows;
struct file_reader_options;
/* The rows that were set aside since this was last asked, which is reset with it. */
size_t file_rows_set_aside(file_rows *rows);
/* So many are enough for one read: file_rows_feed has stopped for them. */
bool file_rows_aside_full(const file_rows *rows);
/* What the rows lie in; borrowed until it is set again. */
void file_rows_set_part(file_rows *rows, const char *part);
weir_status file_rows_new(const struct file_reader_options *options, file_rows **out,
                          weir_error *err);
/* Whether rows of this schema can be read from ndjson or csv. */
weir_status file_rows_check(file_format format, weir_schema *schema, weir_error *err);
void file_rows_free(file_rows *rows); /* NULL is a no-op */
void file_rows_reset(file_rows *rows, uint64_t offset, uint64_t line);
/* Whether reading on behind the file's start needs its first record: then file_rows_header, from
 * offset 0, before the reset. */
bool file_rows_has_header(const file_rows *rows);
weir_status file_rows_header(file_rows *rows, const uint8_t *data, size_t size, int last,
                             size_t *used, weir_error *err);
weir_status file_rows_feed(file_rows *rows, const uint8_t *data, size_t size, int last,
                           size_t *used, weir_batch **out, weir_error *err);
weir_status file_rows_flush(file_rows *rows, weir_batch **out, weir_error *err);
uint64_t file_rows_offset(const file_rows *rows);
uint64_t file_rows_line(const file_rows *rows);

/* The schema in an Arrow or Parquet file; a new reference. */
weir_status file_own_schema(const file_item *item, file_format format,
                            const char *compression, weir_schema **out, weir_error *err);

/* Reads one file on from its progress, which it moves with every batch. */
typedef struct file_reader file_reader;

typedef struct file_reader_options {
  file_format format;
  weir_schema *schema; /* borrowed; the reader keeps a reference */
  int64_t batch_rows;
  bool slice;  /* IPC batches of more rows are cut */
  bool stream; /* standard input: rows go out as they come, and no progress is kept */
  bool follow; /* up to the listed size, and whole lines alone */
  uint64_t max_line;
  bool
      inferred; /* the schema is: new columns are bad data, as are values that do not fit */
  const weir_bad_rows *set_aside; /* NULL: a bad row is an error; outlives the reader */
  const char *compression;        /* the option; a text that outlives the reader */
  weir_csv_options csv;           /* texts borrowed until the reader is made */
} file_reader_options;

/* The schema of rows that come without one, from the first 20480 rows or 8 MiB of the first 16 files. */
weir_status file_infer_schema(const file_list *files, const file_reader_options *options,
                              const weir_call *call, weir_schema **out, weir_error *err);

weir_status file_reader_new(const file_reader_options *options, file_reader **out,
                            weir_error *err);
void file_reader_free(file_reader *reader); /* NULL is a no-op */
/* Goes to a file; the item must stay where it is until the next open, close or free. With `follow` it is
 * not open afterwards when the file is not there any more. */
weir_status file_reader_open(file_reader *reader, file_item *item, weir_error *err);
void file_reader_close(file_reader *reader);
/* For tests: bytes read at once by readers that are made from now on. */
void file_reader_set_block(size_t size);
bool file_reader_is_open(const file_reader *reader);
/* With `follow`: the file is not what was listed any more; nothing went out. */
#define FILE_READ_CHANGED 100
/* Whether rows were set aside since this was last asked. */
bool file_reader_take_set_aside(file_reader *reader);
/* WEIR_READ_BATCH, WEIR_READ_NOTHING when the call is over or has only set rows aside, WEIR_READ_END once the file is done: it is
 * closed then. After a failure it is closed too, with its progress as before the call. */
weir_status file_reader_next(file_reader *reader, const weir_call *call, int32_t *what,
                             weir_batch **out, weir_error *err);
#endif
