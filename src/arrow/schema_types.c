/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas from the names and types that a user writes. */
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"

static const char suffix[] = " not null";

void arrow_column_format(const struct ArrowSchema *column, char *buf, size_t size) {
  weir_type_format(column, buf, size - sizeof(suffix));
  if (!(column->flags & ARROW_FLAG_NULLABLE))
    memcpy(buf + strlen(buf), suffix, sizeof(suffix));
}

static weir_status column_init(struct ArrowSchema *column, const char *name,
                               const char *type, weir_error *err) {
  bool required = base_ends_with(type, suffix);
  char *text =
      base_strndup(type, strlen(type) - (required ? sizeof(suffix) - 1 : 0), err);
  if (text == NULL) return WEIR_E_NOMEM;
  if (!base_utf8_valid(name, strlen(name))) {
    free(text);
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "a column's name is not valid UTF-8");
  }
  if (column->release) column->release(column); /* what the struct's type made */
  weir_status status = weir_type_parse(text, column, err);
  free(text);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "column '%s'", name);
  if (required) column->flags &= ~ARROW_FLAG_NULLABLE;
  if (ArrowSchemaSetName(column, name) != NANOARROW_OK) {
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a schema");
  }
  return WEIR_OK;
}

weir_status weir_schema_from_types(const char *const *names, const char *const *types,
                                   size_t n, weir_schema **out, weir_error *err) {
  struct ArrowSchema schema = {0};
  weir_status status = WEIR_OK;
  ArrowSchemaInit(&schema);
  if (n > ARROW_MAX_FIELDS ||
      ArrowSchemaSetTypeStruct(&schema, (int64_t)n) != NANOARROW_OK) {
    status =
        weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a schema of %zu columns", n);
    goto out;
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) {
      if (strcmp(names[i], names[k]) == 0) {
        status = weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                                "column '%s' is given twice", names[i]);
        goto out;
      }
    }
    BASE_GOTO(status, column_init(schema.children[i], names[i], types[i], err));
  }
  status = weir_schema_new(&schema, out, err);
out:
  if (schema.release) schema.release(&schema);
  return status;
}
