/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters: rows that were set aside, as batches for the sink that takes them. */
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "connector/connector.h"

/* docs/guarantees.md names them; users' targets have them. No time: a row that is read again after a crash gives
 * the same letter. */
static const char *const letter_names[] = {"kind",   "name",   "part", "offset", "line",
                                           "column", "reason", "text", "bytes"};
static const char *const letter_types[] = {"utf8 not null", "utf8 not null", "utf8",
                                           "int64",         "int64",         "utf8",
                                           "utf8 not null", "utf8",          "binary"};

struct connector_letters {
  weir_schema *schema;
  char *kind, *name;
  struct ArrowArray array; /* released: no letter is in it */
};

weir_status connector_letters_schema(weir_schema **out, weir_error *err) {
  return weir_schema_from_types(letter_names, letter_types, BASE_COUNT(letter_names), out,
                                err);
}

weir_status connector_letters_new(const char *where, connector_letters **out,
                                  weir_error *err) {
  size_t kind = strcspn(where, " ");
  connector_letters *l = base_calloc(1, sizeof(*l), err);
  if (!l) return WEIR_E_NOMEM;
  weir_status status = connector_letters_schema(&l->schema, err);
  if (!status) l->kind = base_strndup(where, kind, err);
  if (!status) l->name = base_strdup(where + kind + (where[kind] == ' '), err);
  if (!status && (!l->kind || !l->name)) status = WEIR_E_NOMEM;
  if (status)
    connector_letters_free(l);
  else
    *out = l;
  return status;
}

void connector_letters_drop(connector_letters *l) {
  if (l->array.release) l->array.release(&l->array);
  l->array = (struct ArrowArray){0};
}

void connector_letters_free(connector_letters *l) {
  if (!l) return;
  connector_letters_drop(l);
  weir_schema_unref(l->schema);
  free(l->kind);
  free(l->name);
  free(l);
}

static ArrowErrorCode start(connector_letters *l) {
  /* ArrowArrayInitFromSchema loses its own on failure */
  struct ArrowArrayView view = {0};
  ArrowErrorCode code =
      ArrowArrayViewInitFromSchema(&view, weir_schema_arrow(l->schema), NULL);
  if (code == NANOARROW_OK) code = ArrowArrayInitFromArrayView(&l->array, &view, NULL);
  ArrowArrayViewReset(&view);
  return code == NANOARROW_OK ? ArrowArrayStartAppending(&l->array) : code;
}

/* Not every target takes texts that are no UTF-8, as a file's name may be: all but ASCII becomes U+FFFD there. */
static ArrowErrorCode append_text(struct ArrowArray *column, const char *text) {
  if (!text) return ArrowArrayAppendNull(column, 1);
  size_t size = strlen(text), n = 0;
  if (base_utf8_valid(text, size))
    return ArrowArrayAppendString(column, ArrowCharView(text));
  char *clean = malloc(3 * size);
  if (!clean) return ENOMEM;
  for (size_t i = 0; i < size; i++) {
    bool ascii = (uint8_t)text[i] < 0x80;
    memcpy(clean + n, ascii ? &text[i] : "\xef\xbf\xbd", ascii ? 1 : 3);
    n += ascii ? 1 : 3;
  }
  ArrowErrorCode code = ArrowArrayAppendString(
      column, (struct ArrowStringView){.data = clean, .size_bytes = (int64_t)n});
  free(clean);
  return code;
}

static ArrowErrorCode append_number(struct ArrowArray *column, int64_t number) {
  return number < 0 ? ArrowArrayAppendNull(column, 1)
                    : ArrowArrayAppendInt(column, number);
}

/* The row itself, in `text` where it is one. */
static ArrowErrorCode append_row(struct ArrowArray *text, struct ArrowArray *bytes,
                                 const void *data, size_t size) {
  struct ArrowBufferView view = {{data ? data : ""}, (int64_t)size};
  bool is_text = base_utf8_valid(view.data.data, size);
  NANOARROW_RETURN_NOT_OK(ArrowArrayAppendNull(is_text ? bytes : text, 1));
  return ArrowArrayAppendBytes(is_text ? text : bytes, view);
}

static ArrowErrorCode append(connector_letters *l, const weir_bad_row *row) {
  struct ArrowArray **c = l->array.children;
  NANOARROW_RETURN_NOT_OK(append_text(c[0], l->kind));
  NANOARROW_RETURN_NOT_OK(append_text(c[1], l->name));
  NANOARROW_RETURN_NOT_OK(append_text(c[2], row->part));
  NANOARROW_RETURN_NOT_OK(append_number(c[3], row->offset));
  NANOARROW_RETURN_NOT_OK(append_number(c[4], row->line));
  NANOARROW_RETURN_NOT_OK(append_text(c[5], row->column));
  NANOARROW_RETURN_NOT_OK(
      append_text(c[6], row->reason ? row->reason : "no reason told"));
  NANOARROW_RETURN_NOT_OK(append_row(c[7], c[8], row->data, row->size));
  return ArrowArrayFinishElement(&l->array);
}

weir_status connector_letters_add(connector_letters *l, const weir_bad_row *row,
                                  weir_error *err) {
  ArrowErrorCode code = l->array.release ? NANOARROW_OK : start(l);
  if (code == NANOARROW_OK) code = append(l, row);
  if (code == NANOARROW_OK) return WEIR_OK;
  connector_letters_drop(l);
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory to set a row of %zu bytes aside",
                        row->size);
}

weir_status connector_letters_take(connector_letters *l, weir_batch **out,
                                   weir_error *err) {
  weir_batch *batch = NULL;
  weir_status status = WEIR_OK;
  if (l->array.release) {
    status = ArrowArrayFinishBuilding(&l->array, NANOARROW_VALIDATION_LEVEL_NONE, NULL)
                 ? weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for dead letters")
                 : weir_batch_new(l->schema, &l->array, &batch, err);
  }
  connector_letters_drop(l);
  if (!status) *out = batch;
  return status;
}
