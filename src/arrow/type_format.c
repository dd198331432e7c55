/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a field's type: what weir_type_parse reads back as the same type. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "arrow/arrow.h"

typedef struct text {
  char *buf;
  size_t size, used;
} text;

static void put(text *t, const char *fmt, ...) WEIR_PRINTF(2, 3);
static void put(text *t, const char *fmt, ...) {
  va_list args;
  if (t->used + 1 >= t->size) return;
  va_start(args, fmt);
  int n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, args);
  va_end(args);
  if (n > 0) t->used += (size_t)n;
  if (t->used >= t->size) t->used = t->size - 1;
}

static void put_type(text *t, const struct ArrowSchema *field, int depth);

/* Bare where the parser can find its end, else in quotes. */
static void put_name(text *t, const char *name) {
  if (name == NULL) name = "";
  size_t n = strlen(name);
  bool bare = n > 0 && strpbrk(name, ":<>[](),=\"\\") == NULL &&
              (unsigned char)name[0] > ' ' && (unsigned char)name[n - 1] > ' ';
  if (bare) {
    put(t, "%s", name);
    return;
  }
  put(t, "\"");
  for (; *name != '\0'; name++)
    put(t, *name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
  put(t, "\"");
}

static void put_child(text *t, const struct ArrowSchema *child, int depth) {
  put_type(t, child, depth + 1);
  if (!(child->flags & ARROW_FLAG_NULLABLE)) put(t, " not null");
}

static void put_fields(text *t, const char *name, const struct ArrowSchema *field,
                       const char *union_ids, int depth) {
  put(t, "%s<", name);
  for (int64_t i = 0; i < field->n_children; i++) {
    put(t, "%s", i == 0 ? "" : ", ");
    put_name(t, field->children[i]->name);
    put(t, ": ");
    put_child(t, field->children[i], depth);
    if (union_ids == NULL) continue;
    size_t n = strcspn(union_ids, ",");
    put(t, "=%.*s", (int)n, union_ids);
    union_ids += n + (union_ids[n] == ',');
  }
  put(t, ">");
}

static void put_list(text *t, const char *name, const struct ArrowSchema *field,
                     int depth) {
  put(t, "%s<", name);
  put_child(t, field->children[0], depth);
  put(t, ">");
}

static const char *unit_name(enum ArrowTimeUnit unit) {
  switch (unit) {
    case NANOARROW_TIME_UNIT_SECOND:
      return "s";
    case NANOARROW_TIME_UNIT_MILLI:
      return "ms";
    case NANOARROW_TIME_UNIT_MICRO:
      return "us";
    default:
      return "ns";
  }
}

static const char *plain_name(enum ArrowType type) {
  switch (type) {
    case NANOARROW_TYPE_NA:
      return "null";
    case NANOARROW_TYPE_HALF_FLOAT:
      return "float16";
    case NANOARROW_TYPE_FLOAT:
      return "float32";
    case NANOARROW_TYPE_DOUBLE:
      return "float64";
    case NANOARROW_TYPE_STRING:
      return "utf8";
    case NANOARROW_TYPE_LARGE_STRING:
      return "large_utf8";
    case NANOARROW_TYPE_STRING_VIEW:
      return "utf8_view";
    default:
      return ArrowTypeString(
          type); /* bool, intN, uintN, binary..., dateN, interval_... */
  }
}

static void put_map(text *t, const struct ArrowSchema *field, int depth) {
  const struct ArrowSchema *entries = field->children[0];
  put(t, "map<");
  put_type(t, entries->children[0], depth + 2);
  put(t, ", ");
  put_child(t, entries->children[1], depth + 1);
  put(t, "%s>", field->flags & ARROW_FLAG_MAP_KEYS_SORTED ? ", keys_sorted" : "");
}

static void put_plain(text *t, const struct ArrowSchemaView *view) {
  switch (view->type) {
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      put(t, "fixed_size_binary(%" PRId32 ")", view->fixed_size);
      break;
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64:
    case NANOARROW_TYPE_DURATION:
      put(t, "%s[%s]", ArrowTypeString(view->type), unit_name(view->time_unit));
      break;
    case NANOARROW_TYPE_TIMESTAMP:
      put(t, "timestamp[%s%s%s]", unit_name(view->time_unit),
          view->timezone[0] == '\0' ? "" : ", ", view->timezone);
      break;
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      put(t, "decimal%" PRId32 "(%" PRId32 ", %" PRId32 ")", view->decimal_bitwidth,
          view->decimal_precision, view->decimal_scale);
      break;
    default:
      put(t, "%s", plain_name(view->type));
  }
}

static void put_view(text *t, const struct ArrowSchemaView *view, int depth) {
  const struct ArrowSchema *field = view->schema;
  switch (view->type) {
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_LARGE_LIST:
    case NANOARROW_TYPE_LIST_VIEW:
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
      put_list(t, ArrowTypeString(view->type), field, depth);
      break;
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      put(t, "fixed_size_list<");
      put_child(t, field->children[0], depth);
      put(t, ", %" PRId32 ">", view->fixed_size);
      break;
    case NANOARROW_TYPE_STRUCT:
      put_fields(t, "struct", field, NULL, depth);
      break;
    case NANOARROW_TYPE_MAP:
      put_map(t, field, depth);
      break;
    case NANOARROW_TYPE_SPARSE_UNION:
    case NANOARROW_TYPE_DENSE_UNION:
      put_fields(t, ArrowTypeString(view->type), field, view->union_type_ids, depth);
      break;
    case NANOARROW_TYPE_RUN_END_ENCODED:
      put(t, "run_end_encoded<");
      put_type(t, field->children[0], depth + 1);
      put(t, ", ");
      put_child(t, field->children[1], depth);
      put(t, ">");
      break;
    default:
      put_plain(t, view);
  }
}

static void put_type(text *t, const struct ArrowSchema *field, int depth) {
  struct ArrowSchemaView view = {0};
  if (depth > ARROW_MAX_DEPTH) {
    put(t, "...");
  } else if (ArrowSchemaViewInit(&view, field, NULL) != NANOARROW_OK) {
    put(t, "(unknown format '%s')",
        field == NULL || field->format == NULL ? "" : field->format);
  } else if (view.type == NANOARROW_TYPE_DICTIONARY) {
    put(t, "dictionary<");
    view.type = view.storage_type;
    put_plain(t, &view);
    put(t, ", ");
    put_type(t, field->dictionary, depth + 1);
    put(t, "%s>", field->flags & ARROW_FLAG_DICTIONARY_ORDERED ? ", ordered" : "");
  } else {
    put_view(t, &view, depth);
  }
}

void weir_type_format(const struct ArrowSchema *field, char *buf, size_t size) {
  text t = {.buf = buf, .size = size};
  if (size == 0) return;
  buf[0] = '\0';
  put_type(&t, field, 0);
}
