/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

enum { MAX_FILE = 16 << 20 };

/* Rows cannot come from there as well: a source that tries fails, and does not find an end without rows. */
static weir_status seal_stdin(weir_error *err) {
  int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  weir_status status = WEIR_OK;
  if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
    status = weir_error_errno(err, errno, "cannot open /dev/null");
  if (fd > STDIN_FILENO) close(fd);
  return status;
}

/* All of standard input; one byte more than is allowed is left for the library to refuse. */
static weir_status read_stdin(weir_config *config, weir_error *err) {
  size_t size = 0, capacity = 64 << 10;
  char *text = malloc(capacity);
  weir_status status = WEIR_OK;
  for (;;) {
    if (text && size == capacity && capacity <= MAX_FILE) {
      capacity *= 2;
      char *grown = realloc(text, capacity);
      if (!grown) free(text);
      text = grown;
    }
    if (!text) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    if (size > MAX_FILE) break;
    ssize_t n = read(STDIN_FILENO, text + size, capacity - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      status =
          weir_error_errno(err, errno, "cannot read the pipeline from standard input");
    if (n <= 0) break;
    size += (size_t)n;
  }
  if (!status) status = weir_config_read(config, text, size, "standard input", ".", err);
  free(text);
  if (!status) status = seal_stdin(err);
  return status;
}

weir_status cli_config_open(const cli_args *args, weir_config **out, weir_error *err) {
  weir_config *config = NULL;
  weir_status status = weir_config_new(&config, err);
  if (!status) {
    status = strcmp(args->operand, "-") == 0
                 ? read_stdin(config, err)
                 : weir_config_read_file(config, args->operand, err);
  }
  /* A file that is not there or cannot be read is wrong usage, not a failed run. */
  if ((status == WEIR_E_NOT_FOUND || status == WEIR_E_IO) && err) {
    status = err->code = WEIR_E_INVALID_CONFIG;
  }
  for (size_t i = 0; i < args->n_settings && !status; i++) {
    status =
        weir_config_set(config, args->settings[i].name, args->settings[i].value, err);
  }
  if (status) {
    weir_config_free(config);
    return status;
  }
  *out = config;
  return WEIR_OK;
}
