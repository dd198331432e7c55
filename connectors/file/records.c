/* SPDX-License-Identifier: Apache-2.0 */
#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"

weir_status file_records_read(int kind, const file_disk_folder *folder, const char *name,
                              file_owner_record *out, weir_error *err) {
  char *data = NULL, *where = NULL;
  size_t size = 0;
  FILE_TRY(file_disk_read(folder, name, RECORD_MAX, &data, &size, err));
  where = file_disk_join(folder->path, name, err);
  weir_status status =
      where ? file_record_read(kind, data, size, where, out, err) : WEIR_E_NOMEM;
  free(where);
  free(data);
  return status;
}

weir_status file_records_create(int kind, const file_disk_folder *folder,
                                const char *name, const weir_namespace *ns,
                                const weir_host *host, weir_error *err) {
  uint8_t random[2 * WEIR_INCARNATION_SIZE];
  char hex[2 * WEIR_INCARNATION_SIZE + 1], temp[64];
  weir_status status = WEIR_OK;
  char *data = NULL;
  size_t size = 0;
  FILE_TRY(host->random(host->ctx, random, sizeof(random), err));
  weir_hex_encode(random + WEIR_INCARNATION_SIZE, WEIR_INCARNATION_SIZE, hex);
  snprintf(temp, sizeof(temp), ".tmp-%s", hex);
  FILE_TRY(file_record_write(kind, ns, random, &data, &size, err));
  status = file_disk_write_new(folder, temp, data, size, err);
  free(data);
  if (status) return status;
  int failed = linkat(folder->fd, temp, folder->fd, name, 0) ? errno : 0;
  unlinkat(folder->fd, temp, 0);
  return failed ? file_disk_error(err, failed, "create", folder->path, name) : WEIR_OK;
}

static weir_status sweep_one(void *ctx, const char *name, weir_error *err) {
  const file_disk_folder *folder = ctx;
  return strncmp(name, ".tmp-", 5) == 0 ? file_disk_remove(folder, name, err) : WEIR_OK;
}

void file_records_sweep(const file_disk_folder *folder) {
  (void)file_disk_list(folder, sweep_one, (file_disk_folder *)(uintptr_t)folder, NULL);
}
