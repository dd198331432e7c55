/* SPDX-License-Identifier: Apache-2.0 */
/* ${NAME} in a scalar: an environment variable. $${ stands for ${ itself. */
#include <stdlib.h>
#include <string.h>

#include "config/node.h"

static bool name_char(char c, bool first) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         (!first && c >= '0' && c <= '9');
}

/* Appends the variable that "${NAME}" at `p` names; *next is what follows it. */
static weir_status expand_one(const char *p, const char **next, base_buf *buf,
                              weir_error *err) {
  const char *start = p + 2, *end = start;
  while (name_char(*end, end == start)) end++;
  if (*end != '}' || end == start) {
    return config_error(
        err,
        "'${' must be followed by a variable's name and '}', as in ${HOME}; write "
        "'$${' for the characters themselves");
  }
  char *name = base_strndup(start, (size_t)(end - start), err);
  if (!name) return WEIR_E_NOMEM;
  const char *value = getenv(name);
  weir_status status = WEIR_OK;
  if (!value) {
    status = config_error(
        err,
        "the environment variable %s is not set; set it, or write '$${%s}' for "
        "the characters themselves",
        name, name);
  } else if (!base_utf8_valid(value, strlen(value))) {
    status = config_error(err, "the environment variable %s is not valid UTF-8", name);
  } else {
    status = base_buf_append_str(buf, value, err);
  }
  free(name);
  *next = end + 1;
  return status;
}

weir_status config_expand(char *text, char **out, char **raw, weir_error *err) {
  if (!strstr(text, "${")) {
    *out = text;
    return WEIR_OK;
  }
  weir_status status = WEIR_OK;
  base_buf buf = {0};
  char *expanded = NULL;
  const char *p = text;
  while (*p && !status) {
    if (base_starts_with(p, "$${")) {
      status = base_buf_append_str(&buf, "${", err);
      p += 3;
    } else if (base_starts_with(p, "${")) {
      status = expand_one(p, &p, &buf, err);
    } else {
      status = base_buf_append_byte(&buf, (uint8_t)*p++, err);
    }
  }
  if (!status && !(expanded = base_buf_steal_str(&buf, err))) status = WEIR_E_NOMEM;
  base_buf_done(&buf);
  if (status) {
    free(text);
    return status;
  }
  *out = expanded;
  *raw = text;
  return WEIR_OK;
}
