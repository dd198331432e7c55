/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static void error_clear(weir_error *err, weir_status code, uint32_t flags) {
  *err = (weir_error){.code = code, .flags = flags, .column = -1, .row = -1};
}

/* Drops an incomplete UTF-8 sequence that vsnprintf left at the end of a full buffer. */
static void error_trim(char *message, size_t size) {
  size_t start = size;
  while (start > 0 && size - start < 4 && ((uint8_t)message[start - 1] & 0xC0) == 0x80)
    start--;
  if (start == 0) return;
  uint8_t lead = (uint8_t)message[start - 1];
  if (lead < 0xC0) return;
  size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (size - (start - 1) < need) message[start - 1] = 0;
}

/* A password in a URI (RFC 3986, 3.2.1) stays out of every message, also where the text was cut before its
 * '@': then what follows the colon is no port. */
static void error_mask(char *message) {
  for (char *at = message; (at = strstr(at, "://")) != NULL;) {
    at += 3;
    size_t n = strcspn(at, " \t\r\n'\"`"), end = n;
    while (end > 0 && at[end - 1] != '@') end--;
    size_t colon = 0, stop = end > 0 ? end - 1 : n;
    while (colon < stop && at[colon] != ':') colon++;
    if (colon == stop) continue;
    size_t digits = strspn(at + colon + 1, "0123456789");
    bool port = end == 0 &&
                (at[0] == '[' || strchr("/?#'\"`, \t\r\n:;)", at[colon + 1 + digits]));
    if (port || stop - colon - 1 < sizeof("***") - 1) {
      if (!port) memset(at + colon + 1, '*', stop - colon - 1);
      continue;
    }
    memcpy(at + colon + 1, "***", 3);
    memmove(at + colon + 4, at + stop, strlen(at + stop) + 1);
  }
}

WEIR_PRINTF(3, 0)
static void error_vformat(weir_error *err, size_t at, const char *fmt, va_list args) {
  size_t room = sizeof(err->message) - at;
  int n = vsnprintf(err->message + at, room, fmt, args);
  if (n < 0) {
    err->message[at] = 0;
  } else if ((size_t)n >= room) {
    error_trim(err->message, sizeof(err->message) - 1);
  }
}

weir_status weir_error_set(weir_error *err, weir_status code, uint32_t flags,
                           const char *fmt, ...) {
  if (!err) return code;
  weir_error next;
  error_clear(&next, code, flags);
  va_list args;
  va_start(args, fmt);
  error_vformat(&next, 0, fmt,
                args); /* apart from *err, whose message may be an argument */
  va_end(args);
  error_mask(next.message);
  *err = next;
  return code;
}

weir_status weir_error_errno(weir_error *err, int errnum, const char *fmt, ...) {
  if (!err) return WEIR_E_IO;
  bool retriable = errnum == EINTR || errnum == EAGAIN || errnum == ENOSPC;
  weir_error next;
  error_clear(&next, WEIR_E_IO, retriable ? WEIR_ERR_RETRIABLE : 0);
  next.vendor_code = errnum;
  va_list args;
  va_start(args, fmt);
  error_vformat(&next, 0, fmt, args);
  va_end(args);
  char text[128];
  /* The GNU strerror_r: returns the text, which need not lie in the buffer. */
  const char *reason = strerror_r(errnum, text, sizeof(text));
  size_t used = strlen(next.message);
  size_t tail = strlen(reason) + 2;
  if (used + tail >= sizeof(next.message)) {
    used = sizeof(next.message) - 1 -
           tail; /* the reason matters more than the end of a long path */
    next.message[used] = 0;
    error_trim(next.message, used);
    used = strlen(next.message);
  }
  snprintf(next.message + used, sizeof(next.message) - used, ": %s", reason);
  error_mask(next.message);
  *err = next;
  return WEIR_E_IO;
}

weir_status weir_error_at(weir_error *err, weir_status code, int64_t row,
                          int32_t column) {
  if (!err) return code;
  err->row = row;
  err->column = column;
  return err->code;
}

weir_status weir_error_prefix(weir_error *err, weir_status code, const char *fmt, ...) {
  if (!err) return code;
  weir_error next = *err;
  next.message[0] = 0;
  va_list args;
  va_start(args, fmt);
  error_vformat(&next, 0, fmt, args);
  va_end(args);
  size_t used = strlen(next.message);
  int n =
      snprintf(next.message + used, sizeof(next.message) - used, ": %s", err->message);
  if (n > 0 && (size_t)n >= sizeof(next.message) - used) {
    error_trim(next.message, sizeof(next.message) - 1);
  }
  error_mask(next.message);
  *err = next;
  return err->code;
}

const char *weir_status_name(weir_status code) {
  switch (code) {
    case WEIR_OK:
      return "OK";
    case WEIR_E_INVALID_CONFIG:
      return "INVALID_CONFIG";
    case WEIR_E_INVALID_STATE:
      return "INVALID_STATE";
    case WEIR_E_NOT_IMPLEMENTED:
      return "NOT_IMPLEMENTED";
    case WEIR_E_ADMISSION:
      return "ADMISSION";
    case WEIR_E_SCHEMA:
      return "SCHEMA";
    case WEIR_E_IO:
      return "IO";
    case WEIR_E_TIMEOUT:
      return "TIMEOUT";
    case WEIR_E_CANCELLED:
      return "CANCELLED";
    case WEIR_E_FENCED:
      return "FENCED";
    case WEIR_E_CONFLICT:
      return "CONFLICT";
    case WEIR_E_CORRUPT:
      return "CORRUPT";
    case WEIR_E_NOMEM:
      return "NOMEM";
    case WEIR_E_INTERNAL:
      return "INTERNAL";
    case WEIR_E_BAD_DATA:
      return "BAD_DATA";
    case WEIR_E_NOT_FOUND:
      return "NOT_FOUND";
    case WEIR_E_EXISTS:
      return "EXISTS";
    case WEIR_E_REWOUND:
      return "REWOUND";
    case WEIR_E_ENDED:
      return "ENDED";
    default:
      return "UNKNOWN";
  }
}

const char *weir_version(void) {
  return WEIR_VERSION;
}
