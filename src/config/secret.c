/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: given in the file or through a variable, or better as `file:/path`, read when
 * used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/build.h"

weir_status config_note(weir_options *options, weir_error *err, const char *fmt, ...) {
  char text[600];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  char **notes = base_realloc(options->notes, options->n_notes + 1, sizeof(char *), err);
  if (!notes) return WEIR_E_NOMEM;
  options->notes = notes;
  notes[options->n_notes] = base_strdup(text, err);
  if (!notes[options->n_notes]) return WEIR_E_NOMEM;
  options->n_notes++;
  return WEIR_OK;
}

/* Reads the whole file into `buf` and checks what it is. */
static weir_status read_secret(config_build *b, const weir_option *row,
                               const config_node *at, const char *path, base_buf *buf,
                               weir_error *err) {
  struct stat st = {0};
  if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
    return config_build_fail(
        b, at, row->name, err,
        "the secret file '%s' is not a file; name one that holds the secret alone", path);
  }
  weir_error cause = {0};
  if (base_read_file(path, CONFIG_MAX_SECRET, buf, &cause)) {
    return config_build_fail(
        b, at, row->name, err,
        "cannot read the secret file: %s; it must be readable and have at most "
        "64 KiB",
        cause.message);
  }
  if (buf->size && buf->data[buf->size - 1] == '\n') buf->size--;
  if (buf->size && buf->data[buf->size - 1] == '\r') buf->size--;
  if (buf->size && memchr(buf->data, 0, buf->size)) {
    return config_build_fail(b, at, row->name, err,
                             "the secret file '%s' holds a NUL byte", path);
  }
  if (S_ISREG(st.st_mode) && (st.st_mode & (S_IRWXG | S_IRWXO))) {
    return config_note(
        b->out, err,
        "%s: option '%s': the secret file '%s' is open to others (mode %04o); chmod 600 "
        "closes it",
        b->out->where, row->name, path, (unsigned)(st.st_mode & 07777));
  }
  return WEIR_OK;
}

weir_status config_secret_read(config_build *b, const weir_option *row,
                               const config_node *at, const char *text, char **out,
                               weir_error *err) {
  char *secret = NULL;
  if (!base_starts_with(text, "file:")) {
    secret = base_strdup(text, err);
    if (!secret) return WEIR_E_NOMEM;
    *out = secret;
    return WEIR_OK;
  }
  base_buf buf = {0};
  char *path = config_resolve_path(b->base_dir, text + strlen("file:"), err);
  weir_status status = path ? read_secret(b, row, at, path, &buf, err) : WEIR_E_NOMEM;
  if (!status) {
    secret = base_strndup((const char *)buf.data, buf.size, err);
    status = secret ? WEIR_OK : WEIR_E_NOMEM;
  }
  if (buf.data) explicit_bzero(buf.data, buf.capacity);
  base_buf_done(&buf);
  free(path);
  if (!status) *out = secret;
  return status;
}
