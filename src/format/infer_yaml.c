/* SPDX-License-Identifier: Apache-2.0 */
/* A schema as a user would write it into a pipeline file. */
#include <stdlib.h>
#include <string.h>
#include <weir/infer.h>

#include "arrow/arrow.h"
#include "base/base.h"

/* Whether YAML takes the text bare between { , : and }, as a string and as nothing else. */
static bool is_bare(const char *text) {
  static const char *const words[] = {"true", "false", "yes", "no",  "on", "off",
                                      "null", "y",     "n",   "nan", "inf"};
  char lower[8] = {0};
  size_t n = strlen(text);
  if (n == 0 || (text[0] >= '0' && text[0] <= '9')) return false;
  for (size_t i = 0; i < n; i++) {
    char c = text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '_') return false;
    if (i < sizeof(lower) - 1) lower[i] = letter ? (char)(c | 0x20) : c;
  }
  for (size_t i = 0; n < sizeof(lower) && i < BASE_COUNT(words); i++) {
    if (strcmp(lower, words[i]) == 0) return false;
  }
  return true;
}

/* In double quotes where needed. `variables`: "${" would begin an environment variable's name. */
static weir_status put_scalar(base_buf *out, const char *text, bool variables,
                              weir_error *err) {
  if (is_bare(text)) return base_buf_append_str(out, text, err);
  BASE_TRY(base_buf_append_byte(out, '"', err));
  for (const uint8_t *p = (const uint8_t *)text; *p; p++) {
    if (*p == '"' || *p == '\\') {
      BASE_TRY(base_buf_printf(out, err, "\\%c", *p));
    } else if (*p < 0x20 || *p == 0x7f) {
      BASE_TRY(base_buf_printf(out, err, "\\x%02x", *p));
    } else {
      if (variables && p[0] == '$' && p[1] == '{')
        BASE_TRY(base_buf_append_byte(out, '$', err));
      BASE_TRY(base_buf_append_byte(out, *p, err));
    }
  }
  return base_buf_append_byte(out, '"', err);
}

weir_status weir_schema_yaml(const weir_schema *schema, weir_bytes *out,
                             weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  weir_status status = WEIR_OK;
  base_buf text = {0};
  char *type = base_calloc(1, ARROW_TYPE_TEXT, err);
  if (type == NULL) return WEIR_E_NOMEM;
  BASE_GOTO(status, base_buf_append_byte(&text, '{', err));
  for (int64_t i = 0; i < arrow->n_children; i++) {
    const struct ArrowSchema *column = arrow->children[i];
    arrow_column_format(column, type, ARROW_TYPE_TEXT);
    if (i > 0) BASE_GOTO(status, base_buf_append_str(&text, ", ", err));
    BASE_GOTO(status, put_scalar(&text, column->name ? column->name : "", false, err));
    BASE_GOTO(status, base_buf_append_str(&text, ": ", err));
    BASE_GOTO(status, put_scalar(&text, type, true, err));
  }
  BASE_GOTO(status, base_buf_append_byte(&text, '}', err));
  base_buf_steal(&text, out);
out:
  base_buf_done(&text);
  free(type);
  return status;
}
