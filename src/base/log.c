/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/plugin.h>

#include "base/base.h"

void base_log_printf(const base_log *log, int32_t level, const char *where,
                     const char *fmt, ...) {
  if (!log || !log->write || level > log->level) return;
  char text[2048]; /* longer messages are cut: logging must not fail for want of memory */
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  log->write(log->ctx, level, where, text);
}

_Static_assert(WEIR_LOG_ERROR == 1 && WEIR_LOG_DEBUG == 4,
               "the names below follow the public levels");
static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

const char *base_log_level_name(int32_t level) {
  if (level < 0 || (size_t)level >= BASE_COUNT(level_names)) return "unknown";
  return level_names[level];
}

bool base_log_level_parse(const char *name, int32_t *out) {
  for (size_t i = 0; i < BASE_COUNT(level_names); i++) {
    if (strcmp(name, level_names[i]) == 0) {
      *out = (int32_t)i;
      return true;
    }
  }
  return false;
}
