/* SPDX-License-Identifier: Apache-2.0 */
#include "support/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static void name(const char *folder, const char *file, char *out, size_t size) {
  snprintf(out, size, "%s/%s", folder, file);
}

int target_lock(const char *folder) {
  char path[512];
  name(folder, "lock", path, sizeof(path));
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0 && flock(fd, LOCK_EX)) {
    close(fd);
    fd = -1;
  }
  return fd;
}

weir_status target_read(const char *folder, target_state *out, weir_error *err) {
  char path[512];
  name(folder, "target", path, sizeof(path));
  memset(out, 0, offsetof(target_state, rows));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return WEIR_OK;
  if (fd < 0) return weir_error_errno(err, errno, "cannot open the target");
  ssize_t n = read(fd, out, sizeof(*out));
  int errnum = n < 0 ? errno : EIO;
  close(fd);
  size_t head = offsetof(target_state, rows);
  if (n >= (ssize_t)head && (size_t)n == head + out->n_rows * sizeof(int64_t))
    return WEIR_OK;
  memset(out, 0, head);
  return weir_error_errno(err, errnum, "cannot read the target");
}

weir_status target_write(const char *folder, const target_state *state, weir_error *err) {
  char temp[512], path[512];
  name(folder, "target.tmp", temp, sizeof(temp));
  name(folder, "target", path, sizeof(path));
  int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return weir_error_errno(err, errno, "cannot make the target");
  size_t size = offsetof(target_state, rows) + state->n_rows * sizeof(int64_t);
  ssize_t n = write(fd, state, size);
  int errnum = n < 0 ? errno : ENOSPC;
  close(fd);
  if (n != (ssize_t)size) return weir_error_errno(err, errnum, "cannot write the target");
  return rename(temp, path) ? weir_error_errno(err, errno, "cannot publish") : WEIR_OK;
}

weir_cursor *target_cursor(target_state *state, const weir_namespace *ns) {
  for (size_t i = 0; i < state->n_claims; i++) {
    if (memcmp(state->claims[i], ns->deployment, WEIR_UUID_SIZE) == 0)
      return &state->cursors[i];
  }
  return NULL;
}

void target_apply(target_state *state, const target_row *row, bool keyed) {
  size_t at = 0;
  while (keyed && at < state->n_rows && state->rows[at] != row->id) at++;
  if (!keyed) at = state->n_rows;
  if (row->op == 'D') {
    if (at < state->n_rows) state->rows[at] = state->rows[--state->n_rows];
  } else if (at == state->n_rows && at < TARGET_ROWS) {
    state->rows[state->n_rows++] = row->id;
  }
}
