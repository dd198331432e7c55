/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and logs, for people and for programs. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

#include "cli.h"

static bool log_json;
static int32_t log_level = WEIR_LOG_INFO;

void cli_report_init(const cli_args *args) {
  log_json = args->log_json;
  log_level = args->log_level;
}

static const char *level_name(int32_t level) {
  static const char *const names[] = {"error", "error", "warn", "info", "debug"};
  return level >= 0 && level < (int32_t)(sizeof(names) / sizeof(names[0])) ? names[level]
                                                                           : "trace";
}

/* ---- the live line ---------------------------------------------------------------------------- */

static pthread_mutex_t bar_lock =
    PTHREAD_MUTEX_INITIALIZER; /* over what stands on stderr */
static char bar[512];          /* as drawn last; "": none */

static void write_all(const char *text, size_t size) {
  while (size) {
    ssize_t n = write(STDERR_FILENO, text, size);
    if (n <= 0) return;
    text += n;
    size -= (size_t)n;
  }
}

/* \r and EL, erase to the end of the line (ECMA-48, 8.3.41). */
static void erase_bar(void) {
  if (*bar) write_all("\r\033[K", 4);
}

void cli_bar(const char *text) {
  struct winsize window = {0};
  pthread_mutex_lock(&bar_lock);
  erase_bar();
  snprintf(bar, sizeof(bar), "%s", text);
  /* A line that wraps could not be erased. */
  if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &window) && window.ws_col &&
      strlen(bar) >= window.ws_col)
    bar[window.ws_col - 1] = 0;
  write_all(bar, strlen(bar));
  pthread_mutex_unlock(&bar_lock);
}

/* One write a line, so that lines of several processes stay whole; the live line moves below it. */
static void write_line(const char *text, size_t size) {
  pthread_mutex_lock(&bar_lock);
  erase_bar();
  write_all(text, size);
  write_all(bar, strlen(bar));
  pthread_mutex_unlock(&bar_lock);
}

/* ---- lines ------------------------------------------------------------------------------------ */

static void log_as_json(int32_t level, const char *where, const char *text) {
  char when[40];
  struct timespec now = {0};
  struct tm utc = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  size_t n = strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(when + n, sizeof(when) - n, ".%03ldZ", now.tv_nsec / 1000000);

  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = yyjson_mut_obj(doc);
  yyjson_mut_doc_set_root(doc, root);
  yyjson_mut_obj_add_str(doc, root, "time", when);
  yyjson_mut_obj_add_str(doc, root, "level", level_name(level));
  if (where && *where) yyjson_mut_obj_add_str(doc, root, "where", where);
  yyjson_mut_obj_add_str(doc, root, "text", text);
  size_t size = 0;
  char *line = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, &size);
  if (line) {
    line[size++] = '\n'; /* in the place of the NUL */
    write_line(line, size);
  }
  free(line);
  yyjson_mut_doc_free(doc);
}

void cli_log(void *ctx, int32_t level, const char *where, const char *text) {
  (void)ctx;
  if (log_json) {
    log_as_json(level, where, text);
    return;
  }
  char *line = NULL;
  bool placed = where && *where;
  int size = asprintf(&line, "weir: %s: %s%s%s\n", level_name(level), placed ? where : "",
                      placed ? ": " : "", text);
  if (size > 0) write_line(line, (size_t)size);
  if (size >= 0) free(line);
}

void cli_logf(int32_t level, const char *where, const char *fmt, ...) {
  if (level > log_level) return;
  char *text = NULL;
  va_list args;
  va_start(args, fmt);
  int size = vasprintf(&text, fmt, args);
  va_end(args);
  if (size < 0) return;
  cli_log(NULL, level, where, text);
  free(text);
}

weir_host_options cli_host(const cli_args *args) {
  return (weir_host_options){.struct_size = sizeof(weir_host_options),
                             .log_level = args->log_level,
                             .log = cli_log};
}

int cli_exit_status(const weir_error *err, bool opening) {
  switch (err->code) {
    case WEIR_E_FENCED:
    case WEIR_E_CONFLICT:
      return EXIT_FENCED;
    case WEIR_E_ADMISSION:
      return EXIT_REFUSED;
    case WEIR_E_INVALID_CONFIG:
      return EXIT_USAGE;
    case WEIR_E_BAD_DATA:
      return EXIT_BAD_DATA;
    default:
      break;
  }
  if (err->flags & WEIR_ERR_BAD_DATA) return EXIT_BAD_DATA;
  if (err->flags & WEIR_ERR_IN_DOUBT || err->code == WEIR_E_CANCELLED)
    return EXIT_UNFINISHED;
  /* Before anything ran, a schema that does not fit or a feature that is not there is the config's. */
  bool config = err->code == WEIR_E_SCHEMA || err->code == WEIR_E_NOT_IMPLEMENTED;
  if (config && opening) return EXIT_USAGE;
  return err->code == WEIR_E_SCHEMA ? EXIT_BAD_DATA : EXIT_FAILED;
}

static const char *next_step(int status, weir_status code) {
  switch (status) {
    case EXIT_FAILED:
      return "remove the cause and run it again: delivery goes on behind the last commit";
    case EXIT_REFUSED:
      return "lower `guarantee`, or choose a source or sink that can keep it; `weir "
             "check` shows what each "
             "can keep";
    case EXIT_FENCED:
      if (code == WEIR_E_CONFLICT)
        return "nothing more was written; `weir status` says what the state folder knows "
               "of each target";
      return "nothing more was written; see whether another instance runs and what `weir "
             "status` says "
             "before running it again";
    case EXIT_UNFINISHED:
      return "run it again to go on where the last commit stands";
    case EXIT_BAD_DATA:
      return "correct the data and run it again: delivery goes on behind the last commit";
    default: /* the message itself says what to write instead */
      return NULL;
  }
}

static void print_error_document(const weir_error *err, int status) {
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = yyjson_mut_obj(doc), *error = yyjson_mut_obj(doc);
  yyjson_mut_doc_set_root(doc, root);
  yyjson_mut_obj_add_val(doc, root, "error", error);
  yyjson_mut_obj_add_str(doc, error, "code", weir_status_name(err->code));
  yyjson_mut_obj_add_str(doc, error, "message", err->message);
  yyjson_mut_obj_add_bool(doc, error, "retriable", err->flags & WEIR_ERR_RETRIABLE);
  yyjson_mut_obj_add_bool(doc, error, "in_doubt", err->flags & WEIR_ERR_IN_DOUBT);
  yyjson_mut_obj_add_bool(doc, error, "bad_data", err->flags & WEIR_ERR_BAD_DATA);
  if (err->row >= 0) yyjson_mut_obj_add_sint(doc, error, "row", err->row);
  if (err->column >= 0) yyjson_mut_obj_add_sint(doc, error, "column", err->column);
  if (err->vendor_code)
    yyjson_mut_obj_add_sint(doc, error, "vendor_code", err->vendor_code);
  if (*err->sqlstate) yyjson_mut_obj_add_str(doc, error, "sqlstate", err->sqlstate);
  yyjson_mut_obj_add_int(doc, root, "exit", status);
  cli_print_json(doc);
}

int cli_fail(const cli_args *args, const weir_error *err, int status, bool document) {
  const char *next = next_step(status, err->code);
  fflush(stdout); /* results first, where both go to one terminal */
  cli_log(NULL, WEIR_LOG_ERROR, NULL, err->message);
  if (next && !log_json) {
    char line[300];
    int size = snprintf(line, sizeof(line), "weir: next: %s\n", next);
    write_line(line, (size_t)size);
  }
  if (args->json && !document) print_error_document(err, status);
  return status;
}

int cli_finish(const cli_args *args, int status) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  weir_error err = {0};
  weir_error_set(&err, WEIR_E_IO, 0, "standard output could not be written");
  return cli_fail(args, &err, status ? status : EXIT_FAILED, true);
}
