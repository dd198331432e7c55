/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and values of CSV, looked at for their types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/infer.h"

#define MAX_FIELDS 65536

static bool is_word(const uint8_t *text, size_t n, const char *word) {
  return n == strlen(word) && strncasecmp((const char *)text, word, n) == 0;
}

static bool is_bool(const uint8_t *text, size_t n) {
  static const char *const words[] = {"false", "true", "False", "True", "FALSE", "TRUE"};
  for (size_t i = 0; i < BASE_COUNT(words); i++) {
    if (n == strlen(words[i]) && memcmp(text, words[i], n) == 0) return true;
  }
  return false;
}

static bool names_float(const uint8_t *text, size_t n) {
  if (n > 0 && (*text == '-' || *text == '+')) text++, n--;
  return is_word(text, n, "nan") || is_word(text, n, "inf") ||
         is_word(text, n, "infinity");
}

static void note_field(const csv_dialect *dialect, infer_node *node, const uint8_t *text,
                       size_t n) {
  /* in quotes it is null but for texts: so it says nothing of the type */
  if (n == dialect->null_len && memcmp(text, dialect->null_text, n) == 0) return;
  unsigned may = 0, seen = INFER_SEEN_SCALAR;
  while (n > 0 && (text[0] == ' ' || text[0] == '\t')) text++, n--;
  while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t')) n--;
  if (n == 0 || node->may == 0) {
    may = 0;
  } else if (is_bool(text, n)) {
    may = INFER_BOOL;
  } else if (names_float(text, n)) {
    may = INFER_FLOAT;
  } else {
    may = infer_number(text, n, true);
    if (may != 0) seen |= INFER_SEEN_NUMBER;
    if (may == 0) may = infer_chrono(text, n);
  }
  infer_note(node, may, seen);
}

/* Room for a field more; it doubles at each power of two. */
static weir_status more_fields(weir_inference *inference, size_t n, weir_error *err) {
  if (n == MAX_FIELDS) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "line %llu: more than %d fields; is the delimiter right?",
                          (unsigned long long)inference->line + 1, MAX_FIELDS);
  }
  if (n & (n - 1)) return WEIR_OK;
  uint32_t *fields = base_realloc(inference->fields, n ? n * 2 : 1, sizeof(*fields), err);
  if (fields == NULL) return WEIR_E_NOMEM;
  inference->fields = fields;
  return WEIR_OK;
}

static const char advice[] =
    "give each kind of file a source of its own, or " INFER_ADVICE;

/* Field `i` of a header. */
static weir_status name_field(weir_inference *inference, size_t i, const char *name,
                              size_t n, weir_error *err) {
  infer_node *root = &inference->root, *node = NULL;
  size_t known = root->n;
  BASE_TRY(more_fields(inference, i, err));
  weir_status status = infer_child(inference, root, name, n, i, &node, err);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "header");
  if (inference->named && root->n > known) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "the header has column '%s', unlike the files before; %s",
                          node->name, advice);
  }
  if (node->seen & INFER_SEEN_HEADER) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "the header names column '%s' twice, the second time as field "
                          "%zu; rename one, or say csv: {header: false}",
                          node->name, i + 1);
  }
  node->seen |= INFER_SEEN_HEADER;
  inference->fields[i] = (uint32_t)(node - root->children);
  return WEIR_OK;
}

static weir_status read_header(weir_inference *inference, const uint8_t *record,
                               size_t size, weir_error *err) {
  infer_node *root = &inference->root;
  size_t at = 0, n = 0;
  for (size_t i = 0; i < root->n; i++)
    root->children[i].seen &= ~(unsigned)INFER_SEEN_HEADER;
  for (bool more = true; more; n++) {
    csv_field field = {0};
    bool nomem = false;
    const char *wrong = csv_field_read(&inference->dialect, record, size, &at,
                                       &inference->text, &field, &more, &nomem);
    if (nomem) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for the header");
    if (wrong != NULL) {
      return weir_error_set(err, WEIR_E_SCHEMA, 0, "header: line %llu, field %zu: %s",
                            (unsigned long long)inference->line + 1, n + 1, wrong);
    }
    BASE_TRY(
        name_field(inference, n, (const char *)inference->text.data, field.size, err));
  }
  for (size_t i = 0; i < root->n; i++) {
    if (root->children[i].seen & INFER_SEEN_HEADER) continue;
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "the header lacks column '%s', unlike the files before; %s",
                          root->children[i].name, advice);
  }
  inference->n_fields = n;
  inference->named = true;
  inference->awaits_header = false;
  return WEIR_OK;
}

/* The number of fields; 0 when the record is malformed. */
static size_t count_fields(weir_inference *inference, const uint8_t *record, size_t size,
                           bool *nomem) {
  size_t at = 0, n = 0;
  for (bool more = true; more && !*nomem; n++) {
    csv_field field = {0};
    if (csv_field_read(&inference->dialect, record, size, &at, &inference->text, &field,
                       &more, nomem) != NULL)
      return 0;
  }
  return n;
}

/* Names the columns of a file without header. */
static weir_status number_columns(weir_inference *inference, size_t n, weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    char name[32];
    infer_node *node = NULL;
    int size = snprintf(name, sizeof(name), "column_%zu", i + 1);
    BASE_TRY(more_fields(inference, i, err));
    BASE_TRY(infer_child(inference, &inference->root, name, (size_t)size, i, &node, err));
    inference->fields[i] = (uint32_t)i;
  }
  inference->n_fields = n;
  inference->named = true;
  return WEIR_OK;
}

static weir_status look_at(weir_inference *inference, const uint8_t *record, size_t size,
                           weir_error *err) {
  bool nomem = false, more = true;
  size_t at = 0, n = count_fields(inference, record, size, &nomem);
  if (!nomem && n > 0 && !inference->named) BASE_TRY(number_columns(inference, n, err));
  bool whole = n > 0 && n == inference->n_fields;
  for (size_t i = 0; whole && !nomem && i < n; i++) {
    csv_field field = {0};
    csv_field_read(&inference->dialect, record, size, &at, &inference->text, &field,
                   &more, &nomem);
    if (!nomem)
      note_field(&inference->dialect, &inference->root.children[inference->fields[i]],
                 inference->text.data, field.size);
  }
  if (nomem) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a record");
  inference->rows += whole;
  return WEIR_OK;
}

/* An empty line, which is no record unless there is but one column; its size. */
static size_t empty_line(const weir_inference *inference, const uint8_t *data,
                         size_t size) {
  bool record = !inference->awaits_header && inference->named && inference->n_fields == 1;
  if (record || size == 0) return 0;
  if (data[0] == '\n') return 1;
  return size > 1 && data[0] == '\r' && data[1] == '\n' ? 2 : 0;
}

weir_status infer_csv_feed(weir_inference *inference, const uint8_t *data, size_t size,
                           int last, int64_t rows, size_t *used, weir_error *err) {
  size_t done = 0;
  for (int64_t n = 0; n < rows && done < size;) {
    csv_record record = {0};
    size_t blank = empty_line(inference, data + done, size - done);
    if (blank > 0) {
      inference->line++;
      done += blank;
      continue;
    }
    bool found =
        csv_record_find(&inference->dialect, data + done, size - done, last, &record);
    if ((found ? record.size : size - done) > inference->max_line)
      return infer_too_long(inference, err);
    if (!found) break;
    if (inference->awaits_header) {
      BASE_TRY(read_header(inference, data + done, record.size, err));
    } else {
      if (!record.unclosed) BASE_TRY(look_at(inference, data + done, record.size, err));
      n++;
    }
    inference->line += record.lines;
    done += record.whole;
  }
  *used = done;
  return WEIR_OK;
}
