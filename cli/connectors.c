/* SPDX-License-Identifier: Apache-2.0 */
/* The connectors there are, and every option of one, from the tables that also check them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "cli.h"

typedef struct listing {
  const char *only; /* NULL: all */
  bool json;
  size_t found;
  int32_t kind; /* of the group under way */
  char **names; /* NULL-terminated, for the nearest one */
  size_t n_names;
  yyjson_mut_doc *doc;
  yyjson_mut_val *array;
} listing;

static const char *type_name(int32_t type) {
  static const char *const names[] = {
      [WEIR_OPT_STRING] = "text", [WEIR_OPT_INT] = "int",
      [WEIR_OPT_BOOL] = "bool",   [WEIR_OPT_FLOAT] = "float",
      [WEIR_OPT_SIZE] = "size",   [WEIR_OPT_DURATION] = "duration",
      [WEIR_OPT_ENUM] = "enum",   [WEIR_OPT_PATH] = "path",
      [WEIR_OPT_LIST] = "list",   [WEIR_OPT_PATHS] = "paths",
      [WEIR_OPT_MAP] = "map"};
  bool known =
      type > 0 && type < (int32_t)(sizeof(names) / sizeof(names[0])) && names[type];
  return known ? names[type] : "?";
}

static const char *kind_name(int32_t kind) {
  return kind == WEIR_CONNECTOR_SOURCE ? "source" : "sink";
}

/* A bound as a user would write it. */
static void format_bound(const weir_option *row, int64_t value, char *buf, size_t size) {
  static const struct {
    int32_t type;
    int64_t factor;
    const char *name;
  } units[] = {{WEIR_OPT_SIZE, INT64_C(1) << 40, "TiB"},
               {WEIR_OPT_SIZE, 1 << 30, "GiB"},
               {WEIR_OPT_SIZE, 1 << 20, "MiB"},
               {WEIR_OPT_SIZE, 1 << 10, "KiB"},
               {WEIR_OPT_DURATION, INT64_C(3600000000000), "h"},
               {WEIR_OPT_DURATION, 1000000000, "s"},
               {WEIR_OPT_DURATION, 1000000, "ms"},
               {WEIR_OPT_DURATION, 1000, "us"},
               {WEIR_OPT_DURATION, 1, "ns"}};
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && value; i++) {
    if (units[i].type != row->type || value % units[i].factor) continue;
    snprintf(buf, size, "%" PRId64 "%s", value / units[i].factor, units[i].name);
    return;
  }
  snprintf(buf, size, "%" PRId64, value);
}

/* "size, default 64MiB, at least 1KiB" */
static void print_facts(const weir_option *row) {
  char min[40], max[40];
  printf("    %s", type_name(row->type));
  if (row->flags & WEIR_OPT_REQUIRED) fputs(", required", stdout);
  if (row->flags & WEIR_OPT_SECRET) fputs(", secret", stdout);
  if (row->default_value) {
    printf(", default %s", *row->default_value ? row->default_value : "\"\"");
  }
  if (row->choices) {
    fputs(", one of ", stdout);
    for (const char *c = row->choices; *c; c++)
      fputs((char[]){*c == '|' ? ' ' : *c, 0}, stdout);
  }
  if (row->min || row->max) {
    format_bound(row, row->min, min, sizeof(min));
    format_bound(row, row->max, max, sizeof(max));
    if (row->max < row->min || row->max == INT64_MAX) {
      printf(", at least %s", min);
    } else {
      printf(", %s to %s", min, max);
    }
  }
  fputc('\n', stdout);
}

static void print_options(const weir_option *table) {
  for (const weir_option *row = table; row && row->name; row++) {
    printf("  %s\n", row->name);
    print_facts(row);
    if (row->text) printf("    %s\n", row->text);
  }
}

static void add_options(yyjson_mut_doc *doc, yyjson_mut_val *entry, const char *key,
                        const weir_option *table) {
  yyjson_mut_val *array = yyjson_mut_arr(doc);
  for (const weir_option *row = table; row && row->name; row++) {
    yyjson_mut_val *option = yyjson_mut_arr_add_obj(doc, array);
    yyjson_mut_obj_add_str(doc, option, "name", row->name);
    yyjson_mut_obj_add_str(doc, option, "type", type_name(row->type));
    yyjson_mut_obj_add_bool(doc, option, "required", row->flags & WEIR_OPT_REQUIRED);
    yyjson_mut_obj_add_bool(doc, option, "secret", row->flags & WEIR_OPT_SECRET);
    if (row->default_value)
      yyjson_mut_obj_add_str(doc, option, "default", row->default_value);
    if (row->min || row->max) {
      yyjson_mut_obj_add_sint(doc, option, "min", row->min);
      if (row->max >= row->min) yyjson_mut_obj_add_sint(doc, option, "max", row->max);
    }
    if (row->choices) {
      yyjson_mut_val *choices = yyjson_mut_obj_add_arr(doc, option, "choices");
      for (const char *c = row->choices; c && *c;) {
        size_t n = strcspn(c, "|");
        yyjson_mut_arr_add_strn(doc, choices, c, n);
        c += n + (c[n] == '|');
      }
    }
    if (row->text) yyjson_mut_obj_add_str(doc, option, "text", row->text);
  }
  yyjson_mut_obj_add_val(doc, entry, key, array);
}

static void add_connector(listing *l, const weir_connector_info *info) {
  yyjson_mut_val *entry = yyjson_mut_arr_add_obj(l->doc, l->array);
  yyjson_mut_obj_add_str(l->doc, entry, "kind", kind_name(info->kind));
  yyjson_mut_obj_add_str(l->doc, entry, "name", info->name);
  yyjson_mut_obj_add_str(l->doc, entry, "text", info->text);
  if (info->origin) yyjson_mut_obj_add_strcpy(l->doc, entry, "origin", info->origin);
  add_options(l->doc, entry, "options", info->options);
  add_options(l->doc, entry, "common", weir_connectors_common(info->kind));
}

static void print_connector(listing *l, const weir_connector_info *info) {
  if (!l->only) {
    if (l->kind != info->kind)
      printf("%s%ss:\n", l->kind ? "\n" : "", kind_name(info->kind));
    printf("  %-12s  %s%s%s%s\n", info->name, info->text, info->origin ? " (" : "",
           info->origin ? info->origin : "", info->origin ? ")" : "");
    return;
  }
  printf("%s%s %s: %s\n", l->found > 1 ? "\n" : "", kind_name(info->kind), info->name,
         info->text);
  if (info->origin) printf("from %s\n", info->origin);
  fputs("\nIts options:\n", stdout);
  print_options(info->options);
  printf("\nOptions of every %s:\n", kind_name(info->kind));
  print_options(weir_connectors_common(info->kind));
}

/* Keeps the name for the nearest one; without memory the message only lacks it. */
static void remember(listing *l, const char *name) {
  char **names = realloc(l->names, (l->n_names + 2) * sizeof(char *));
  if (!names) return;
  l->names = names;
  names[l->n_names] = strdup(name);
  if (names[l->n_names]) names[++l->n_names] = NULL;
}

static weir_status visit(void *ctx, const weir_connector_info *info) {
  listing *l = ctx;
  if (info->problem) {
    cli_logf(WEIR_LOG_WARN, info->origin, "cannot be used: %s", info->problem);
    return WEIR_OK;
  }
  if (l->only && strcmp(l->only, info->name) != 0) {
    remember(l, info->name);
    return WEIR_OK;
  }
  l->found++;
  if (l->json) {
    add_connector(l, info);
  } else {
    print_connector(l, info);
  }
  l->kind = info->kind;
  return WEIR_OK;
}

static weir_status print_document(listing *l, weir_error *err) {
  yyjson_mut_doc *doc = l->doc;
  l->doc = NULL;
  if (!l->only)
    add_options(doc, yyjson_mut_doc_get_root(doc), "pipeline", weir_connectors_common(0));
  return cli_print_json(doc) ? WEIR_OK
                             : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

int cli_connectors(const cli_args *args) {
  listing l = {
      .only = args->operand, .json = args->json, .doc = yyjson_mut_doc_new(NULL)};
  yyjson_mut_val *root = yyjson_mut_obj(l.doc);
  yyjson_mut_doc_set_root(l.doc, root);
  l.array = yyjson_mut_obj_add_arr(l.doc, root, "connectors");
  weir_error err = {0};
  weir_status status = weir_connectors_each(visit, &l, &err);
  if (!status && l.only && !l.found) {
    status = cli_unknown("connector", l.only, (const char *const *)l.names,
                         "weir connectors", &err);
  }
  if (!status && l.json) status = print_document(&l, &err);
  for (size_t i = 0; i < l.n_names; i++) free(l.names[i]);
  free(l.names);
  yyjson_mut_doc_free(l.doc);
  return status ? cli_fail(args, &err, cli_exit_status(&err, true), false) : EXIT_DONE;
}
