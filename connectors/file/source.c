/* SPDX-License-Identifier: Apache-2.0 */
/* Source `file`: its options and its table. */
#include "source.h"
#include "source_follow.h"
#include "source_input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

typedef struct file_source {
  const weir_host *host;
  weir_schema *schema;
  file_reader *reader;
  file_list files, gone;
  size_t at;             /* the file to read, or its end reached */
  bool stream;           /* standard input */
  weir_schema *inferred; /* now or by an earlier start; kept over open */
  bool infers;           /* as far as the options and files tell */
  bool follows;
  file_follow follow;
  int64_t scan_at;                /* when the folder is looked at next */
  const weir_bad_rows *set_aside; /* NULL: a bad row is an error */
} file_source;

/* Between two looks at a folder: so long, and so many times what the last one took of the processor. */
#define SCAN_NS 100000000
#define SCAN_SHARE 20

static const weir_option options[] = {
    {"path", WEIR_OPT_PATHS, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "a file, a glob (* ? [..] {a,b}) or a list of them, read in the order of their "
     "paths; or - alone for standard input, which only best_effort allows"},
    {"format", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "ndjson, csv, arrow (IPC, file or stream) or parquet; default by extension: .ndjson "
     ".jsonl, .csv .tsv, .arrow .arrows .feather, each also with .gz or .zst, and "
     ".parquet"},
    {"compression", WEIR_OPT_STRING, 0, "auto", 0, 0, NULL,
     "auto (by extension: .gz .zst), gzip, zstd or none. Checksums are verified, and a "
     "compressed file must be complete when it appears"},
    {"schema", WEIR_OPT_MAP, 0, NULL, 0, 0, NULL,
     "mapping column: type, as int64 or \"int64 not null\"; keys or columns of a row "
     "that "
     "it leaves out are ignored. Or infer, the default for ndjson and csv: from the "
     "first "
     "20480 rows or 8 MiB of the first 16 files, once for all runs of the deployment; a "
     "column that turns up later is bad data then, never left out in silence"},
    {"batch_rows", WEIR_OPT_INT, 0, "16384", 1, 1048576, NULL,
     "rows of a full batch; batches of Arrow files are cut only when it is given, and "
     "none "
     "of a Parquet file goes beyond a row group"},
    {"max_line", WEIR_OPT_SIZE, 0, "64MiB", 1024, INT64_C(1) << 30, NULL,
     "a longer line is an error"},
    {"csv.header", WEIR_OPT_BOOL, 0, "true", 0, 0, NULL,
     "the first record names the columns; without it they are the schema's, in order"},
    {"csv.delimiter", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "character between fields; a comma, or a tab in .tsv"},
    {"csv.quote", WEIR_OPT_STRING, 0, "\"", 0, 0, NULL,
     "character around fields that hold others; empty for none"},
    {"csv.null", WEIR_OPT_STRING, 0, "", 0, 0, NULL,
     "the text that means null when it is a whole field without quotes"},
    {"follow", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL,
     "never end: go on with files that come, grow and are rotated; a line is read once "
     "its "
     "line end is there, and compressed, Arrow and Parquet files must be moved into "
     "place "
     "complete"},
    {"on_loss", WEIR_OPT_ENUM, 0, "stop", 0, 0, "stop|skip",
     "with follow, when a file was cut or removed before its end was read: stop, or warn "
     "and go on without its rows"},
    {0}};

static weir_status refuse(weir_error *err, const char *option, const char *value,
                          const char *why) {
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "option %s: %s: %s", option, value,
                        why);
}

static const char formats_text[] = "the formats known are ndjson, csv, arrow and parquet";

static weir_status format_by_name(const char *name, file_format *out, weir_error *err) {
  static const char *const later[] = {"avro", "json"};
  static const struct {
    const char *name;
    file_format format;
  } known[] = {{"ndjson", FILE_NDJSON},
               {"arrow", FILE_ARROW},
               {"csv", FILE_CSV},
               {"parquet", FILE_PARQUET}};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (strcmp(name, known[i].name) != 0) continue;
    *out = known[i].format;
    return WEIR_OK;
  }
  for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
    if (strcmp(name, later[i]) != 0) continue;
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "option format: reading %s is not supported yet; %s", name,
                          formats_text);
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "option format: '%s' is unknown; %s", name, formats_text);
}

/* Whether a path ends so, apart from .gz and .zst. */
static bool has_extension(const char *path, const char *extension) {
  size_t n = file_packing_stem("auto", path), m = strlen(extension);
  return n >= m && strncasecmp(path + n - m, extension, m) == 0;
}

/* Format by a path's or pattern's end; 0 when it tells none. */
static file_format format_by_path(const char *path) {
  static const struct {
    const char *extension;
    file_format format;
  } known[] = {{".ndjson", FILE_NDJSON}, {".jsonl", FILE_NDJSON},
               {".csv", FILE_CSV},       {".tsv", FILE_TSV},
               {".arrow", FILE_ARROW},   {".arrows", FILE_ARROW},
               {".feather", FILE_ARROW}, {".parquet", FILE_PARQUET}};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (!has_extension(path, known[i].extension)) continue;
    return known[i].format;
  }
  return 0;
}

static weir_status given_schema(const weir_options *o, weir_schema **out,
                                weir_error *err) {
  size_t n = weir_options_count(o, "schema");
  const char **names = calloc(n, sizeof(*names)), **types = calloc(n, sizeof(*types));
  weir_status status = WEIR_E_NOMEM;
  if (names == NULL || types == NULL) {
    weir_error_set(err, status, 0, "no memory for a schema");
    goto out;
  }
  for (size_t i = 0; i < n; i++) {
    names[i] = weir_options_key(o, "schema", i);
    types[i] = weir_options_item(o, "schema", i);
  }
  status = weir_schema_from_types(names, types, n, out, err);
  if (status != WEIR_OK) weir_error_prefix(err, status, "option schema");
out:
  free(names);
  free(types);
  return status;
}

/* Standard input has no name to tell the format by, and rows in it can be read but once. */
static weir_status check_stream(const weir_options *o, weir_error *err) {
  const char *name = weir_options_string(o, "format");
  if (weir_options_count(o, "path") > 1)
    return refuse(err, "path", "-", "standard input must be the only path");
  if (weir_options_bool(o, "follow"))
    return refuse(err, "follow", "true",
                  "standard input is read until it ends in any case; leave it out");
  int flags = fcntl(STDIN_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) == O_WRONLY) {
    return refuse(
        err, "path", "-",
        "standard input is not there to be read, since the pipeline itself came from it; "
        "put the pipeline in a file and type `weir run FILE`");
  }
  if (name == NULL)
    return refuse(err, "path", "-", "standard input needs option format: ndjson or csv");
  if (strcmp(name, "arrow") == 0) {
    return refuse(
        err, "path", "-",
        "Arrow is not read from standard input, since a message that is slow to "
        "come could not be interrupted; write it into a file");
  }
  if (strcmp(name, "parquet") == 0) {
    return refuse(err, "path", "-",
                  "a Parquet file begins at its end, which standard input cannot give "
                  "first; write it into a file");
  }
  if (weir_options_count(o, "schema") == 0) {
    return refuse(
        err, "path", "-",
        "no sample for schema: infer can be taken of standard input, since its "
        "rows come but once; give option schema a mapping column: type, as in "
        "{id: int64, name: utf8}. For a file with such rows `weir check` prints "
        "it");
  }
  return WEIR_OK;
}

/* What can be said of the options without looking at any file. *format is 0 when that needs the files. */
static weir_status check_options(const weir_options *o, file_format *format,
                                 weir_error *err) {
  const char *name = weir_options_string(o, "format");
  const char *compression = weir_options_string(o, "compression");
  weir_status status;
  *format = 0;
  if (weir_options_given(o, "on_loss") && !weir_options_bool(o, "follow"))
    return refuse(err, "on_loss", weir_options_string(o, "on_loss"),
                  "it goes with follow: true alone");
  if (strcmp(compression, "auto") != 0 && strcmp(compression, "gzip") != 0 &&
      strcmp(compression, "zstd") != 0 && strcmp(compression, "none") != 0) {
    return refuse(err, "compression", compression, "expected auto, gzip, zstd or none");
  }
  for (size_t i = 0; i < weir_options_count(o, "path"); i++) {
    const char *path = weir_options_item(o, "path", i);
    file_format one = 0;
    if (file_path_is_stream(path)) {
      status = check_stream(o, err);
      if (status != WEIR_OK) return status;
    }
    if (name == NULL) {
      one = format_by_path(path);
    } else {
      status = format_by_name(name, &one, err);
      if (status != WEIR_OK) return status;
    }
    if (one != 0 && *format != 0 && one != *format) {
      return refuse(
          err, "path", path,
          "another format than the paths before it; one source reads one format");
    }
    if (one != 0) *format = one;
  }
  const char *word = weir_options_string(o, "schema");
  if (weir_options_given(o, "schema") && weir_options_count(o, "schema") == 0 &&
      (word == NULL || strcmp(word, "infer") != 0)) {
    return refuse(err, "schema", word != NULL ? word : "not a mapping",
                  "expected a mapping column: type, one a line, or infer");
  }
  if (weir_options_count(o, "schema") > 0) {
    weir_schema *schema = NULL;
    status = given_schema(o, &schema, err);
    if (status == WEIR_OK && (*format == FILE_CSV || *format == FILE_TSV))
      status = file_rows_check(FILE_CSV, schema, err);
    if (status == WEIR_OK && *format == FILE_NDJSON)
      status = file_rows_check(FILE_NDJSON, schema, err);
    weir_schema_unref(schema);
    if (status != WEIR_OK) return status;
  }
  return WEIR_OK;
}

/* The same with the files at hand: all of one format. */
static weir_status find_format(const weir_options *o, const file_list *files,
                               file_format *format, weir_error *err) {
  weir_status status = check_options(o, format, err);
  if (status != WEIR_OK || weir_options_given(o, "format")) return status;
  for (size_t i = 0; i < files->n; i++) {
    const char *path = files->items[i].path;
    file_format one = format_by_path(path);
    if (one == 0) {
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "path %s: its name does not tell the format; give option format: %s", path,
          formats_text);
    }
    if (*format != 0 && one != *format) {
      return refuse(
          err, "path", path,
          "another format than the files before it; one source reads one format");
    }
    *format = one;
  }
  if (*format == 0) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "no file to tell the format by; give option format: %s",
                          formats_text);
  }
  return WEIR_OK;
}

static bool has_schema(file_format format) {
  return format == FILE_ARROW || format == FILE_PARQUET;
}

static weir_status find_schema(file_source *s, const weir_options *o,
                               const file_list *files, const weir_call *call,
                               file_reader_options *ro, weir_error *err) {
  s->infers = false;
  if (weir_options_count(o, "schema") > 0) return given_schema(o, &ro->schema, err);
  if (!has_schema(ro->format)) {
    s->infers = ro->inferred = true;
    if (s->inferred == NULL && files->n == 0) {
      return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                            "no file to infer the schema from; write it down in option "
                            "schema, or start when a first file is there");
    }
    if (s->inferred == NULL) {
      weir_status status = file_infer_schema(files, ro, call, &s->inferred, err);
      if (status != WEIR_OK) return status;
    }
    ro->schema = weir_schema_ref(s->inferred);
    return WEIR_OK;
  }
  if (files->n == 0) {
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "no file to take the schema from; give option schema");
  }
  return file_own_schema(&files->items[0], ro->format, ro->compression, &ro->schema, err);
}

/* Options of csv; a delimiter that is not given is told by the files' names. */
static weir_status csv_options(const weir_options *o, const file_list *files,
                               file_reader_options *ro, weir_error *err) {
  static const char *const names[] = {"csv.header", "csv.delimiter", "csv.quote",
                                      "csv.null"};
  bool csv = ro->format == FILE_CSV || ro->format == FILE_TSV;
  for (size_t i = 0; !csv && i < sizeof(names) / sizeof(names[0]); i++) {
    if (weir_options_given(o, names[i])) {
      return refuse(err, names[i], "given", "it goes with format csv alone");
    }
  }
  if (!csv) return WEIR_OK;
  ro->csv.no_header = !weir_options_bool(o, "csv.header");
  ro->csv.delimiter = weir_options_string(o, "csv.delimiter");
  ro->csv.quote = weir_options_string(o, "csv.quote");
  ro->csv.null_text = weir_options_string(o, "csv.null");
  bool tabs = ro->format == FILE_TSV;
  for (size_t i = 0; i < files->n; i++) {
    bool one = has_extension(files->items[i].path, ".tsv");
    if (i == 0) tabs = one;
    if (ro->csv.delimiter != NULL || one == tabs) continue;
    return refuse(err, "path", files->items[i].path,
                  "another delimiter than the files before it; give csv.delimiter, or "
                  "one source to each");
  }
  if (ro->csv.delimiter == NULL && tabs) ro->csv.delimiter = "\t";
  ro->format = FILE_CSV;
  ro->csv.struct_size = sizeof(ro->csv);
  weir_status status = weir_csv_options_check(&ro->csv, err);
  return status == WEIR_OK ? status : weir_error_prefix(err, status, "option csv");
}

/* A text that stays. */
static const char *compression_text(const char *name) {
  static const char *const known[] = {"gzip", "zstd", "none"};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (strcmp(name, known[i]) == 0) return known[i];
  return "auto";
}

static weir_status make_reader(file_source *s, const weir_options *o,
                               const file_list *files, const weir_call *call,
                               file_reader **reader, weir_schema **schema,
                               weir_error *err) {
  file_reader_options ro = {
      .batch_rows = weir_options_int(o, "batch_rows"),
      .follow = weir_options_bool(o, "follow"),
      .slice = weir_options_given(o, "batch_rows"),
      .max_line = (uint64_t)weir_options_int(o, "max_line"),
      .stream = file_path_is_stream(weir_options_item(o, "path", 0)),
      .set_aside = s->set_aside,
      .compression = compression_text(weir_options_string(o, "compression"))};
  weir_status status = find_format(o, files, &ro.format, err);
  if (status == WEIR_OK) status = csv_options(o, files, &ro, err);
  if (status == WEIR_OK) status = find_schema(s, o, files, call, &ro, err);
  if (status == WEIR_OK) status = file_reader_new(&ro, reader, err);
  if (status == WEIR_OK) {
    *schema = ro.schema;
    s->follows = ro.follow;
    s->follow = (file_follow){
        .options = o,
        .host = s->host,
        .whole = has_schema(ro.format),
        .compression = ro.compression,
        .skip_losses = strcmp(weir_options_string(o, "on_loss"), "skip") == 0};
  } else {
    weir_schema_unref(ro.schema);
  }
  return status;
}

static weir_status create(const weir_host *host, weir_source *out, weir_error *err) {
  file_source *s = calloc(1, sizeof(*s));
  if (s == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a file source");
  s->host = host;
  out->ops = &weir_file_source_ops;
  out->state = s;
  return WEIR_OK;
}

static void drop(file_source *s) {
  file_reader_free(s->reader);
  s->reader = NULL;
  weir_schema_unref(s->schema);
  s->schema = NULL;
  file_list_done(&s->files);
  file_list_done(&s->gone);
  s->at = 0;
}

static void release(weir_source *source) {
  file_source *s = source->state;
  if (s != NULL) {
    drop(s);
    weir_schema_unref(s->inferred);
  }
  free(s);
  source->state = NULL;
  source->ops = NULL;
}

static weir_status contract(weir_source *source, const weir_options *o,
                            weir_source_contract *out, weir_error *err) {
  file_source *s = source->state;
  file_format format = 0;
  weir_status status = check_options(o, &format, err);
  if (status != WEIR_OK) return status;
  s->infers = !has_schema(format) && weir_options_count(o, "schema") == 0;
  out->replay = file_path_is_stream(weir_options_item(o, "path", 0))
                    ? WEIR_SOURCE_EPHEMERAL
                    : WEIR_SOURCE_REPLAYABLE;
  out->keyed = 0;
  return WEIR_OK;
}

static weir_status resolve_schema(weir_source *source, const weir_call *call,
                                  const weir_options *o, weir_schema **out,
                                  weir_error *err) {
  file_list files = {0}, missing = {0};
  file_reader *reader = NULL;
  weir_status status = file_source_list(o, &files, &missing, err);
  if (status == WEIR_OK)
    status = make_reader(source->state, o, &files, call, &reader, out, err);
  file_reader_free(reader);
  file_list_done(&files);
  file_list_done(&missing);
  return status;
}

/* A path that is not there is fine once its file is done and gone. */
static weir_status check_missing(const file_list *gone, const file_list *missing,
                                 weir_error *err) {
  for (size_t i = 0; i < missing->n; i++) {
    bool known = false;
    for (size_t k = 0; k < gone->n; k++)
      known |= gone->items[k].name == missing->items[i].name;
    if (!known) {
      return weir_error_set(err, WEIR_E_NOT_FOUND, 0, "path %s: there is no such file",
                            missing->items[i].path);
    }
  }
  return WEIR_OK;
}

/* Gives the listed files the progress of `position`. */
static weir_status apply(const weir_bytes *position, file_list *files,
                         const file_list *missing, file_list *gone, weir_error *err) {
  weir_status status = WEIR_OK;
  if (position != NULL && position->release != NULL) {
    status = file_position_read(position, gone, err);
    if (status == WEIR_OK) status = file_position_match(files, gone, err);
  }
  return status == WEIR_OK ? check_missing(gone, missing, err) : status;
}

/* A log that is compressed after it was read is another file with the same rows. */
static weir_status check_packing(const file_source *s, const file_list *named,
                                 weir_error *err) {
  const char *first = named->items[0].path;
  for (size_t i = 1; i < named->n; i++) {
    const char *path = named->items[i].path;
    bool packed = file_packing_of(s->follow.compression, path) != FILE_PLAIN;
    if (packed == (file_packing_of(s->follow.compression, first) != FILE_PLAIN)) continue;
    return refuse(
        err, "path", packed ? path : first,
        "one of what is followed is compressed and another is not; if it is what "
        "rotation makes of files that were read, its rows would come twice. "
        "Narrow the path to one kind");
  }
  return WEIR_OK;
}

/* Files that came must be of the source's format, as those were that it began with. */
static weir_status check_format(const file_source *s, weir_error *err) {
  const weir_options *o = s->follow.options;
  file_list named = {0};
  file_reader_options ro = {0};
  weir_status status = WEIR_OK;
  bool fresh = false;
  named.items = calloc(s->files.n + 1, sizeof(*named.items));
  if (named.items == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for %zu files", s->files.n);
  for (size_t i = 0; i < s->files.n; i++) {
    const file_item *item = &s->files.items[i];
    if (item->path == NULL || item->seen.aside) continue;
    named.items[named.n++] = *item; /* borrowed */
    fresh |= item->progress.covered == 0;
  }
  if (fresh) status = check_packing(s, &named, err);
  if (fresh && status == WEIR_OK) status = find_format(o, &named, &ro.format, err);
  if (fresh && status == WEIR_OK) status = csv_options(o, &named, &ro, err);
  free(named.items);
  return status;
}

static int64_t processor_ns(void) {
  struct timespec t = {0};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Looks at a followed folder, knowing `files` and `gone`, and keeps what is found. */
static weir_status scan(file_source *s, const file_list *files, const file_list *gone,
                        weir_error *err) {
  const weir_host *host = s->host;
  file_list new_files = {0}, new_gone = {0};
  int64_t begun = processor_ns();
  weir_status status =
      file_follow_scan(&s->follow, files, gone, &new_files, &new_gone, err);
  if (status != WEIR_OK) return status;
  int64_t wait = SCAN_SHARE * (processor_ns() - begun);
  file_list_done(&s->files);
  file_list_done(&s->gone);
  s->files = new_files;
  s->gone = new_gone;
  s->at = 0;
  s->scan_at = host->monotonic_ns(host->ctx) + (wait > SCAN_NS ? wait : SCAN_NS);
  return WEIR_OK;
}

static weir_status scan_from(file_source *s, const weir_bytes *position,
                             weir_error *err) {
  file_list known = {0}, none = {0};
  weir_status status = WEIR_OK;
  if (position != NULL && position->release != NULL)
    status = file_position_read(position, &known, err);
  if (status == WEIR_OK) status = scan(s, &known, &none, err);
  file_list_done(&known);
  return status;
}

static weir_status open_source(weir_source *source, const weir_call *call,
                               const weir_options *o, const weir_bytes *position,
                               weir_error *err) {
  file_source *s = source->state,
              fresh = {
                  .host = s->host, .inferred = s->inferred, .set_aside = s->set_aside};
  file_list missing = {0};
  bool follow = weir_options_bool(o, "follow");
  weir_status status = file_source_list(o, &fresh.files, &missing, err);
  fresh.stream = file_path_is_stream(weir_options_item(o, "path", 0));
  if (status == WEIR_OK && !follow && !fresh.stream)
    status = apply(position, &fresh.files, &missing, &fresh.gone, err);
  if (status == WEIR_OK && !follow && fresh.files.n == 0 && fresh.gone.n == 0) {
    status = weir_error_set(err, WEIR_E_NOT_FOUND, 0, "path %s: no file matches",
                            weir_options_item(o, "path", 0));
  }
  if (status == WEIR_OK) {
    status =
        make_reader(&fresh, o, &fresh.files, call, &fresh.reader, &fresh.schema, err);
  }
  if (status == WEIR_OK && follow) status = scan_from(&fresh, position, err);
  if (status == WEIR_OK && follow) status = check_format(&fresh, err);
  s->inferred = fresh.inferred; /* it may have been inferred just now */
  if (status == WEIR_OK) {
    drop(s);
    *s = fresh;
  } else {
    drop(&fresh);
  }
  file_list_done(&missing);
  return status;
}

/* Without `follow` the files are those found at open: what came since is for the next run. */
static weir_status seek(weir_source *source, const weir_call *call, const weir_bytes *to,
                        weir_error *err) {
  (void)call;
  file_source *s = source->state;
  file_list files = {0}, gone = {0}, missing = {0};
  if (s->stream) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "standard input cannot be read again");
  }
  if (s->follows) {
    file_reader_close(s->reader);
    return scan_from(s, to, err);
  }
  weir_status status = file_list_again(&s->files, &files, &missing, err);
  if (status == WEIR_OK) status = apply(to, &files, &missing, &gone, err);
  if (status == WEIR_OK) {
    file_reader_close(s->reader);
    file_list_done(&s->files);
    file_list_done(&s->gone);
    s->files = files;
    s->gone = gone;
    s->at = 0;
  } else {
    file_list_done(&files);
    file_list_done(&gone);
  }
  file_list_done(&missing);
  return status;
}

static weir_status look_again(file_source *s, weir_error *err) {
  weir_status status = scan(s, &s->files, &s->gone, err);
  return status == WEIR_OK ? check_format(s, err) : status;
}

/* Reads the file at s->at. WEIR_READ_END: it is done, for now. */
static weir_status read_file(file_source *s, const weir_call *call, int32_t *what,
                             weir_batch **out, weir_error *err) {
  file_item *item = &s->files.items[s->at];
  weir_status status = WEIR_OK;
  int32_t got = WEIR_READ_END;
  if (!file_reader_is_open(s->reader)) {
    bool more =
        s->follows ? file_follow_has_more(item) : !(item->progress.flags & FILE_DONE);
    if (more) status = file_reader_open(s->reader, item, err);
    if (status != WEIR_OK) return status;
    if (more && !file_reader_is_open(s->reader)) got = FILE_READ_CHANGED;
  }
  if (file_reader_is_open(s->reader))
    status = file_reader_next(s->reader, call, &got, out, err);
  if (status != WEIR_OK) return status;
  if (got == FILE_READ_CHANGED) {
    item->seen.wait = true;
    got = WEIR_READ_END;
  }
  if (got == WEIR_READ_END) s->at++;
  *what = got;
  return WEIR_OK;
}

static weir_status read_batch(weir_source *source, const weir_call *call, int32_t *what,
                              weir_batch **out, weir_error *err) {
  file_source *s = source->state;
  const weir_host *host = s->host;
  for (;;) {
    if (s->follows && !file_reader_is_open(s->reader) &&
        host->monotonic_ns(host->ctx) >= s->scan_at) {
      weir_status status = look_again(s, err);
      if (status != WEIR_OK) return status;
    }
    if (s->at == s->files.n) break;
    int32_t got = 0;
    weir_status status = read_file(s, call, &got, out, err);
    if (status != WEIR_OK) return status;
    /* What was set aside in one file does not wait for what the next one has. */
    bool aside = file_reader_take_set_aside(s->reader);
    if (got == WEIR_READ_END && (aside || weir_call_cancelled(call)))
      got = WEIR_READ_NOTHING;
    if (got != WEIR_READ_END) {
      *what = got;
      return WEIR_OK;
    }
  }
  *what = s->follows ? WEIR_READ_NOTHING : WEIR_READ_END;
  return WEIR_OK;
}

static weir_status position(weir_source *source, weir_bytes *out, weir_error *err) {
  file_source *s = source->state;
  return file_position_write(&s->files, &s->gone, out, err);
}

static int32_t schema_is_inferred(weir_source *source) {
  const file_source *s = source->state;
  return s->infers;
}

static weir_status use_schema(weir_source *source, weir_schema *schema, weir_error *err) {
  (void)err;
  file_source *s = source->state;
  weir_schema_unref(s->inferred);
  s->inferred = weir_schema_ref(schema);
  return WEIR_OK;
}

static weir_status set_aside(weir_source *source, const weir_bad_rows *to,
                             weir_error *err) {
  (void)err;
  file_source *s = source->state;
  s->set_aside = to;
  return WEIR_OK;
}

static weir_status close_source(weir_source *source, const weir_call *call,
                                weir_error *err) {
  (void)call;
  (void)err;
  drop(source->state);
  return WEIR_OK;
}

const weir_source_ops weir_file_source_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_source_ops),
    .name = "file",
    .text =
        "Rows of NDJSON, CSV, Arrow IPC and Parquet files; each file is known by its "
        "inode and "
        "its "
        "bytes.",
    .options = options,
    .create = create,
    .release = release,
    .contract = contract,
    .resolve_schema = resolve_schema,
    .open = open_source,
    .read = read_batch,
    .position = position,
    .seek = seek,
    .close = close_source,
    .schema_is_inferred = schema_is_inferred,
    .use_schema = use_schema,
    .describe_position = file_position_describe,
    .set_aside = set_aside,
};
