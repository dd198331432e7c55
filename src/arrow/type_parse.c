/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a type, as Arrow people write it, into a schema. Besides weir's own
 * spelling (see type_format.c) it takes what pyarrow prints: "list<item: int32>",
 * "timestamp[us, tz=UTC]", "dictionary<values=string, indices=int32, ordered=0>",
 * "fixed_size_list<item: int8>[3]". */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"

typedef struct parser {
  const char *text, *at;
  int depth;
  weir_error *err;
} parser;

typedef enum shape {
  PLAIN,
  UNIT,
  DECIMAL,
  WIDTH,
  LIST,
  FIXED_LIST,
  STRUCT,
  MAP,
  UNION,
  DICTIONARY,
  RUNS
} shape;

typedef struct type_name {
  const char *name;
  shape shape;
  const char *format; /* UNIT: what stands before the unit's letter */
  const char *units;  /* UNIT: the letters allowed; DECIMAL: the bits */
} type_name;

/* Spellings of one type in a row, weir's own first. */
static const type_name types[] = {
    {"null", PLAIN, "n", NULL},
    {"bool", PLAIN, "b", NULL},
    {"boolean", PLAIN, "b", NULL},
    {"int8", PLAIN, "c", NULL},
    {"uint8", PLAIN, "C", NULL},
    {"int16", PLAIN, "s", NULL},
    {"uint16", PLAIN, "S", NULL},
    {"int32", PLAIN, "i", NULL},
    {"uint32", PLAIN, "I", NULL},
    {"int64", PLAIN, "l", NULL},
    {"uint64", PLAIN, "L", NULL},
    {"float16", PLAIN, "e", NULL},
    {"halffloat", PLAIN, "e", NULL},
    {"half_float", PLAIN, "e", NULL},
    {"float32", PLAIN, "f", NULL},
    {"float", PLAIN, "f", NULL},
    {"float64", PLAIN, "g", NULL},
    {"double", PLAIN, "g", NULL},
    {"utf8", PLAIN, "u", NULL},
    {"string", PLAIN, "u", NULL},
    {"large_utf8", PLAIN, "U", NULL},
    {"large_string", PLAIN, "U", NULL},
    {"utf8_view", PLAIN, "vu", NULL},
    {"string_view", PLAIN, "vu", NULL},
    {"binary", PLAIN, "z", NULL},
    {"large_binary", PLAIN, "Z", NULL},
    {"binary_view", PLAIN, "vz", NULL},
    {"fixed_size_binary", WIDTH, "w:", NULL},
    {"date32", UNIT, "tdD", "D"},
    {"date64", UNIT, "tdm", "m"},
    {"time32", UNIT, "tt", "sm"},
    {"time64", UNIT, "tt", "un"},
    {"timestamp", UNIT, "ts", "smun"},
    {"duration", UNIT, "tD", "smun"},
    {"interval_months", PLAIN, "tiM", NULL},
    {"month_interval", PLAIN, "tiM", NULL},
    {"interval_day_time", PLAIN, "tiD", NULL},
    {"day_time_interval", PLAIN, "tiD", NULL},
    {"interval_month_day_nano", PLAIN, "tin", NULL},
    {"month_day_nano_interval", PLAIN, "tin", NULL},
    {"decimal128", DECIMAL, "d:", "128"},
    {"decimal", DECIMAL, "d:", "128"},
    {"decimal32", DECIMAL, "d:", "32"},
    {"decimal64", DECIMAL, "d:", "64"},
    {"decimal256", DECIMAL, "d:", "256"},
    {"list", LIST, "+l", NULL},
    {"large_list", LIST, "+L", NULL},
    {"list_view", LIST, "+vl", NULL},
    {"large_list_view", LIST, "+vL", NULL},
    {"fixed_size_list", FIXED_LIST, "+w:", NULL},
    {"struct", STRUCT, "+s", NULL},
    {"map", MAP, "+m", NULL},
    {"sparse_union", UNION, "+us:", NULL},
    {"dense_union", UNION, "+ud:", NULL},
    {"dictionary", DICTIONARY, NULL, NULL},
    {"run_end_encoded", RUNS, "+r", NULL},
};

static weir_status parse_type(parser *p, struct ArrowSchema *out);

static void skip_space(parser *p) {
  while (isspace((unsigned char)*p->at)) p->at++;
}

/* Takes `c` if it comes next. */
static bool take(parser *p, char c) {
  skip_space(p);
  if (*p->at != c) return false;
  p->at++;
  return true;
}

static weir_status syntax(const parser *p, const char *expected) {
  if (*p->at == '\0')
    return weir_error_set(p->err, WEIR_E_INVALID_CONFIG, 0,
                          "type '%.200s': expected %s at its end", p->text, expected);
  return weir_error_set(p->err, WEIR_E_INVALID_CONFIG, 0,
                        "type '%.200s': expected %s at character %td, before '%.30s'",
                        p->text, expected, p->at - p->text + 1, p->at);
}

static weir_status want(parser *p, char c, const char *name) {
  return take(p, c) ? WEIR_OK : syntax(p, name);
}

/* Letters, digits and underscores from p->at on. */
static size_t word_length(const parser *p) {
  size_t n = 0;
  while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_') n++;
  return n;
}

/* Takes the word if it comes next, as a whole word. */
static bool take_word(parser *p, const char *word) {
  skip_space(p);
  size_t n = word_length(p);
  if (n != strlen(word) || strncmp(p->at, word, n) != 0) return false;
  p->at += n;
  return true;
}

/* Takes `word` and then `c`, or nothing. */
static bool take_label(parser *p, const char *word, char c) {
  const char *before = p->at;
  if (take_word(p, word) && take(p, c)) return true;
  p->at = before;
  return false;
}

static weir_status integer(parser *p, long least, long most, const char *what,
                           long *out) {
  char *end = NULL;
  char expected[80];
  skip_space(p);
  errno = 0;
  long value = strtol(p->at, &end, 10);
  if (end == p->at || errno != 0 || value < least || value > most) {
    snprintf(expected, sizeof expected, "%s from %ld to %ld", what, least, most);
    return syntax(p, expected);
  }
  p->at = end;
  *out = value;
  return WEIR_OK;
}

static weir_status from_errno(const parser *p, int code) {
  return arrow_errno(p->err, code, "type");
}

/* A fresh field of this format: no name, nullable. */
static weir_status start(parser *p, struct ArrowSchema *out, const char *format) {
  ArrowSchemaInit(out);
  weir_status status = from_errno(p, ArrowSchemaSetFormat(out, format));
  if (status == WEIR_OK) status = from_errno(p, ArrowSchemaSetName(out, ""));
  out->flags = ARROW_FLAG_NULLABLE;
  return status;
}

/* Opening '(' or '['; *close gets the other one, 0 when there is none. */
static char open_bracket(parser *p) {
  return take(p, '(') ? ')' : take(p, '[') ? ']' : '\0';
}

static weir_status parse_width(parser *p, const char *prefix, struct ArrowSchema *out) {
  long width = 0;
  char format[32];
  char close = open_bracket(p);
  if (close == '\0')
    return syntax(p, "'(' and a width in bytes, as in fixed_size_binary(16)");
  BASE_TRY(integer(p, 1, INT32_MAX, "a width", &width));
  BASE_TRY(want(p, close, "the closing bracket"));
  snprintf(format, sizeof format, "%s%ld", prefix, width);
  return start(p, out, format);
}

static weir_status parse_decimal(parser *p, const char *bits, struct ArrowSchema *out) {
  long digits = 0, scale = 0;
  char format[64];
  int width = (int)strtol(bits, NULL, 10);
  int most = width == 32 ? 9 : width == 64 ? 18 : width == 128 ? 38 : 76;
  char close = open_bracket(p);
  if (close == '\0')
    return syntax(p, "'(' and digits and scale, as in decimal128(38, 10)");
  BASE_TRY(integer(p, 1, most, "a number of digits", &digits));
  if (take(p, ',')) BASE_TRY(integer(p, -most, most, "a scale", &scale));
  BASE_TRY(want(p, close, "the closing bracket"));
  if (width == 128)
    snprintf(format, sizeof format, "d:%ld,%ld", digits, scale);
  else
    snprintf(format, sizeof format, "d:%ld,%ld,%d", digits, scale, width);
  return start(p, out, format);
}

static char unit_letter(const char *unit, size_t n) {
  static const struct {
    const char *name;
    char letter;
  } units[] = {{"s", 's'}, {"ms", 'm'}, {"us", 'u'}, {"ns", 'n'}, {"day", 'D'}};
  for (size_t i = 0; i < BASE_COUNT(units); i++)
    if (strlen(units[i].name) == n && memcmp(units[i].name, unit, n) == 0)
      return units[i].letter;
  return '\0';
}

/* ", UTC" or ", tz=UTC" up to the closing bracket, appended to `format`. */
static weir_status parse_zone(parser *p, char close, char *format, size_t size) {
  size_t used = strlen(format);
  skip_space(p);
  if (strncmp(p->at, "tz=", 3) == 0) p->at += 3;
  size_t n = 0;
  while (p->at[n] != '\0' && p->at[n] != close) n++;
  size_t zone = n;
  while (zone > 0 && isspace((unsigned char)p->at[zone - 1])) zone--;
  if (zone == 0) return syntax(p, "a time zone, as in timestamp[us, UTC]");
  if (zone + used + 1 > size) return syntax(p, "a time zone of less than 100 characters");
  memcpy(format + used, p->at, zone);
  format[used + zone] = '\0';
  p->at += n;
  return WEIR_OK;
}

/* What stands behind a type with a unit, with an example. */
static const char *unit_hint(const type_name *type) {
  switch (type->format[1]) {
    case 's':
      return "a unit of s, ms, us or ns, as in timestamp[us] or timestamp[us, UTC]";
    case 'D':
      return "a unit of s, ms, us or ns, as in duration[us]";
    case 't':
      return type->units[0] == 's' ? "a unit of s or ms, as in time32[ms]"
                                   : "a unit of us or ns, as in time64[us]";
    default:
      return type->units[0] == 'm' ? "the unit ms, as in date64[ms]"
                                   : "the unit day, as in date32[day]";
  }
}

static weir_status parse_unit(parser *p, const type_name *type, struct ArrowSchema *out) {
  bool date = type->format[1] == 'd', stamp = type->format[1] == 's';
  char format[120];
  char close = open_bracket(p);
  if (close == '\0' && date) return start(p, out, type->format);
  skip_space(p);
  size_t n = close == '\0' ? 0 : word_length(p);
  char letter = unit_letter(p->at, n);
  if (letter == '\0' || strchr(type->units, letter) == NULL)
    return syntax(p, unit_hint(type));
  p->at += n;
  snprintf(format, sizeof format, "%s%.*s%s", type->format, date ? 0 : 1, &letter,
           stamp ? ":" : "");
  if (stamp && take(p, ',')) BASE_TRY(parse_zone(p, close, format, sizeof format));
  BASE_TRY(want(p, close, "the closing bracket"));
  return start(p, out, format);
}

/* A quoted or bare name that ':' follows, taken with it into *name (to free); otherwise
 * nothing is taken and *name stays NULL. */
static weir_status take_name(parser *p, char **name) {
  const char *before = p->at;
  base_buf buf = {0};
  weir_status status = WEIR_OK;
  skip_space(p);
  bool quoted = take(p, '"');
  while (status == WEIR_OK && *p->at != '\0') {
    if (quoted ? *p->at == '"' : strchr(":<>[](),=\"", *p->at) != NULL) break;
    if (quoted && *p->at == '\\' && p->at[1] != '\0') p->at++;
    status = base_buf_append_byte(&buf, (uint8_t)*p->at++, p->err);
  }
  if (status == WEIR_OK && quoted && !take(p, '"')) status = syntax(p, "a closing quote");
  while (!quoted && buf.size > 0 && isspace(buf.data[buf.size - 1])) buf.size--;
  if (status == WEIR_OK && (quoted || buf.size > 0) && take(p, ':')) {
    *name = base_buf_steal_str(&buf, p->err);
    if (*name == NULL) status = WEIR_E_NOMEM;
  } else {
    p->at = before;
  }
  base_buf_done(&buf);
  return status;
}

/* [name:] type [not null]. `name` is the default; NULL: one must be given. */
static weir_status parse_field(parser *p, const char *name, struct ArrowSchema *out) {
  char *given = NULL;
  weir_status status = take_name(p, &given);
  if (status == WEIR_OK && given == NULL && name == NULL)
    status = syntax(p, "a field, as in a: int64");
  if (status == WEIR_OK) status = parse_type(p, out);
  if (status == WEIR_OK)
    status = from_errno(p, ArrowSchemaSetName(out, given != NULL ? given : name));
  free(given);
  if (status != WEIR_OK || !take_word(p, "not")) return status;
  if (!take_word(p, "null")) return syntax(p, "'null' behind 'not'");
  out->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
  return WEIR_OK;
}

static weir_status start_with_children(parser *p, struct ArrowSchema *out,
                                       const char *format, int64_t n) {
  BASE_TRY(start(p, out, format));
  return from_errno(p, ArrowSchemaAllocateChildren(out, n));
}

static weir_status parse_list(parser *p, const char *format, struct ArrowSchema *out) {
  BASE_TRY(want(p, '<', "'<' and the items' type, as in list<int32>"));
  BASE_TRY(start_with_children(p, out, format, 1));
  BASE_TRY(parse_field(p, "item", out->children[0]));
  return want(p, '>', "'>'");
}

static weir_status parse_fixed_list(parser *p, struct ArrowSchema *out) {
  long size = 0;
  char format[32];
  BASE_TRY(want(p, '<', "'<', as in fixed_size_list<int32, 3>"));
  BASE_TRY(start_with_children(p, out, "+w:0", 1));
  BASE_TRY(parse_field(p, "item", out->children[0]));
  if (take(p, ',')) {
    BASE_TRY(integer(p, 0, INT32_MAX, "a list size", &size));
    BASE_TRY(want(p, '>', "'>'"));
  } else {
    BASE_TRY(want(p, '>', "', SIZE>', as in fixed_size_list<int32, 3>"));
    char close = open_bracket(p);
    if (close == '\0') return syntax(p, "'[' and the list size");
    BASE_TRY(integer(p, 0, INT32_MAX, "a list size", &size));
    BASE_TRY(want(p, close, "the closing bracket"));
  }
  snprintf(format, sizeof format, "+w:%ld", size);
  return from_errno(p, ArrowSchemaSetFormat(out, format));
}

/* Fields up to '>', each with its "= id" in a union. On failure what was parsed is
 * released here. */
typedef struct field_list {
  struct ArrowSchema *fields;
  long *ids;
  size_t n, capacity;
} field_list;

static void field_list_done(field_list *list) {
  for (size_t i = 0; i < list->n; i++)
    if (list->fields[i].release != NULL) ArrowSchemaRelease(&list->fields[i]);
  free(list->fields);
  free(list->ids);
}

static weir_status field_list_grow(field_list *list, weir_error *err) {
  if (list->n < list->capacity) return WEIR_OK;
  size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
  struct ArrowSchema *fields = base_realloc(list->fields, capacity, sizeof *fields, err);
  if (fields == NULL) return WEIR_E_NOMEM;
  list->fields = fields;
  long *ids = base_realloc(list->ids, capacity, sizeof *ids, err);
  if (ids == NULL) return WEIR_E_NOMEM;
  list->ids = ids;
  list->capacity = capacity;
  return WEIR_OK;
}

static weir_status parse_fields(parser *p, bool with_ids, field_list *list) {
  BASE_TRY(want(p, '<', "'<' and fields, as in struct<a: int64, b: utf8>"));
  if (take(p, '>')) return WEIR_OK;
  do {
    BASE_TRY(field_list_grow(list, p->err));
    list->fields[list->n] = (struct ArrowSchema){0};
    list->ids[list->n] = (long)list->n;
    BASE_TRY(parse_field(p, NULL, &list->fields[list->n++]));
    if (with_ids && take(p, '='))
      BASE_TRY(integer(p, 0, 127, "a type id", &list->ids[list->n - 1]));
  } while (take(p, ','));
  return want(p, '>', "',' or '>'");
}

/* "+us:" and the ids. */
static weir_status union_format(parser *p, const char *prefix, const field_list *list,
                                base_buf *format) {
  bool seen[128] = {false};
  BASE_TRY(base_buf_append_str(format, prefix, p->err));
  for (size_t i = 0; i < list->n; i++) {
    if (list->ids[i] > 127 || seen[list->ids[i]])
      return syntax(p, "distinct type ids from 0 to 127");
    seen[list->ids[i]] = true;
    BASE_TRY(base_buf_printf(format, p->err, "%s%ld", i == 0 ? "" : ",", list->ids[i]));
  }
  return base_buf_terminate(format, p->err);
}

static weir_status parse_struct(parser *p, const type_name *type,
                                struct ArrowSchema *out) {
  field_list list = {0};
  base_buf format = {0};
  weir_status status = parse_fields(p, type->shape == UNION, &list);
  if (status == WEIR_OK && type->shape == UNION) {
    status = union_format(p, type->format, &list, &format);
    if (status == WEIR_OK)
      status = start_with_children(p, out, (const char *)format.data, (int64_t)list.n);
  } else if (status == WEIR_OK) {
    status = start_with_children(p, out, type->format, (int64_t)list.n);
  }
  for (size_t i = 0; status == WEIR_OK && i < list.n; i++)
    ArrowSchemaMove(&list.fields[i], out->children[i]);
  field_list_done(&list);
  base_buf_done(&format);
  return status;
}

static weir_status parse_map(parser *p, struct ArrowSchema *out) {
  BASE_TRY(want(p, '<', "'<', as in map<utf8, int64>"));
  BASE_TRY(start_with_children(p, out, "+m", 1));
  struct ArrowSchema *entries = out->children[0];
  BASE_TRY(start_with_children(p, entries, "+s", 2));
  BASE_TRY(from_errno(p, ArrowSchemaSetName(entries, "entries")));
  entries->flags = 0;
  BASE_TRY(parse_field(p, "key", entries->children[0]));
  entries->children[0]->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
  BASE_TRY(want(p, ',', "',' and the values' type"));
  BASE_TRY(parse_field(p, "value", entries->children[1]));
  if (take(p, ',')) {
    if (!take_word(p, "keys_sorted")) return syntax(p, "'keys_sorted'");
    out->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
  }
  return want(p, '>', "'>'");
}

static bool is_index(const struct ArrowSchema *schema) {
  return schema->dictionary == NULL && strlen(schema->format) == 1 &&
         strchr("cCsSiIlL", schema->format[0]) != NULL;
}

static weir_status parse_dictionary(parser *p, struct ArrowSchema *out) {
  struct ArrowSchema first = {0}, second = {0};
  long ordered = 0;
  BASE_TRY(want(p, '<', "'<', as in dictionary<int32, utf8>"));
  bool labels = take_label(p, "values", '=');
  weir_status status = parse_type(p, &first);
  if (status == WEIR_OK) status = want(p, ',', "','");
  if (status == WEIR_OK && labels && !take_label(p, "indices", '='))
    status = syntax(p, "'indices='");
  if (status == WEIR_OK) status = parse_type(p, &second);
  if (status == WEIR_OK && take(p, ',')) {
    if (take_label(p, "ordered", '='))
      status = integer(p, 0, 1, "a flag", &ordered);
    else if (take_word(p, "ordered"))
      ordered = 1;
    else
      status = syntax(p, "'ordered'");
  }
  if (status == WEIR_OK) status = want(p, '>', "'>'");
  struct ArrowSchema *index = labels ? &second : &first,
                     *values = labels ? &first : &second;
  if (status == WEIR_OK && !is_index(index))
    status = syntax(p, "an integer type for the indices");
  if (status == WEIR_OK && values->dictionary != NULL)
    status = syntax(p, "values that are not a dictionary");
  if (status == WEIR_OK) status = from_errno(p, ArrowSchemaAllocateDictionary(index));
  if (status == WEIR_OK) {
    ArrowSchemaMove(values, index->dictionary);
    ArrowSchemaMove(index, out);
    if (ordered) out->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
  }
  if (first.release != NULL) ArrowSchemaRelease(&first);
  if (second.release != NULL) ArrowSchemaRelease(&second);
  return status;
}

static weir_status parse_runs(parser *p, struct ArrowSchema *out) {
  BASE_TRY(want(p, '<', "'<', as in run_end_encoded<int32, utf8>"));
  BASE_TRY(start_with_children(p, out, "+r", 2));
  BASE_TRY(parse_field(p, "run_ends", out->children[0]));
  const char *ends = out->children[0]->format;
  if (!is_index(out->children[0]) || strchr("sil", ends[0]) == NULL)
    return syntax(p, "run ends of int16, int32 or int64");
  out->children[0]->flags = 0;
  BASE_TRY(want(p, ',', "',' and the values' type"));
  BASE_TRY(parse_field(p, "values", out->children[1]));
  return want(p, '>', "'>'");
}

static weir_status unknown(const parser *p, size_t n) {
  char given[64];
  const char *names[BASE_COUNT(types)];
  snprintf(given, sizeof given, "%.*s", (int)(n < 60 ? n : 60), p->at);
  for (size_t i = 0; i < BASE_COUNT(types); i++) names[i] = types[i].name;
  const char *near = base_nearest_name(given, names, BASE_COUNT(types));
  if (near != NULL)
    return weir_error_set(p->err, WEIR_E_INVALID_CONFIG, 0,
                          "type '%.200s': '%s' is not a type; the nearest is '%s'",
                          p->text, given, near);
  return weir_error_set(
      p->err, WEIR_E_INVALID_CONFIG, 0,
      "type '%.200s': '%s' is not a type; types are written as in int64, utf8, "
      "timestamp[us, UTC], decimal128(38, 10), list<int32>",
      p->text, given);
}

static weir_status parse_shape(parser *p, const type_name *type,
                               struct ArrowSchema *out) {
  switch (type->shape) {
    case PLAIN:
      return start(p, out, type->format);
    case UNIT:
      return parse_unit(p, type, out);
    case DECIMAL:
      return parse_decimal(p, type->units, out);
    case WIDTH:
      return parse_width(p, type->format, out);
    case LIST:
      return parse_list(p, type->format, out);
    case FIXED_LIST:
      return parse_fixed_list(p, out);
    case STRUCT:
    case UNION:
      return parse_struct(p, type, out);
    case MAP:
      return parse_map(p, out);
    case DICTIONARY:
      return parse_dictionary(p, out);
    case RUNS:
      return parse_runs(p, out);
  }
  return WEIR_E_INTERNAL;
}

/* On failure *out may be half built: the outermost caller releases it. */
static weir_status parse_type(parser *p, struct ArrowSchema *out) {
  skip_space(p);
  size_t n = word_length(p);
  if (n == 0) return syntax(p, "a type");
  for (size_t i = 0; i < BASE_COUNT(types); i++) {
    if (strlen(types[i].name) != n || strncmp(types[i].name, p->at, n) != 0) continue;
    int levels = types[i].shape == MAP ? 2 : 1; /* a map's entries are one */
    if (p->depth + levels > ARROW_MAX_DEPTH)
      return weir_error_set(p->err, WEIR_E_INVALID_CONFIG, 0,
                            "type: nested deeper than %d levels", ARROW_MAX_DEPTH);
    p->at += n;
    p->depth += levels;
    weir_status status = parse_shape(p, &types[i], out);
    p->depth -= levels;
    return status;
  }
  return unknown(p, n);
}

weir_status weir_type_parse(const char *text, struct ArrowSchema *out, weir_error *err) {
  parser p = {.text = text, .at = text, .err = err};
  struct ArrowSchema made = {0};
  weir_status status =
      base_utf8_valid(text, strlen(text)) ? parse_type(&p, &made) : syntax(&p, "UTF-8");
  if (status == WEIR_OK) {
    skip_space(&p);
    if (*p.at != '\0') status = syntax(&p, "nothing more");
  }
  if (status == WEIR_OK)
    *out = made;
  else if (made.release != NULL)
    ArrowSchemaRelease(&made);
  return status;
}
