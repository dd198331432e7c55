/* SPDX-License-Identifier: Apache-2.0 */
/* check, status, version: what can be told without delivering anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "cli.h"

/* ---- check ----------------------------------------------------------------------------------- */

enum { COLUMNS = 9 };

/* The cells of one route, in the order of the table's head. */
static void route_cells(yyjson_val *route, char writers[16], const char *cells[COLUMNS]) {
  snprintf(writers, 16, "%llu", cli_number_of(route, "writers"));
  cells[0] = cli_text_of(route, "source");
  cells[1] = cli_text_of(route, "replay");
  cells[2] = cli_text_of(route, "sink");
  cells[3] = cli_text_of(route, "consistency");
  cells[4] = cli_text_of(route, "topology");
  cells[5] = cli_text_of(route, "input");
  cells[6] = writers;
  cells[7] = cli_text_of(route, "delivers");
  cells[8] = yyjson_get_bool(yyjson_obj_get(route, "admitted")) ? "admitted" : "refused";
}

static void print_row(const char *const cells[COLUMNS], const int widths[COLUMNS]) {
  for (int c = 0; c < COLUMNS; c++) {
    if (c + 1 < COLUMNS) {
      printf("  %-*s", widths[c], cells[c]);
    } else {
      printf("  %s\n", cells[c]);
    }
  }
}

static void print_routes(yyjson_val *routes) {
  static const char *const head[COLUMNS] = {"SOURCE",      "REPLAY",   "SINK",
                                            "CONSISTENCY", "TOPOLOGY", "INPUT",
                                            "WRITERS",     "DELIVERS", "VERDICT"};
  int widths[COLUMNS];
  char writers[16];
  const char *cells[COLUMNS];
  size_t i, n;
  yyjson_val *route;
  for (int c = 0; c < COLUMNS; c++) widths[c] = (int)strlen(head[c]);
  yyjson_arr_foreach(routes, i, n, route) {
    route_cells(route, writers, cells);
    for (int c = 0; c < COLUMNS; c++) {
      if ((int)strlen(cells[c]) > widths[c]) widths[c] = (int)strlen(cells[c]);
    }
  }
  print_row(head, widths);
  yyjson_arr_foreach(routes, i, n, route) {
    route_cells(route, writers, cells);
    print_row(cells, widths);
    if (*cli_text_of(route, "reason"))
      printf("    refused: %s\n", cli_text_of(route, "reason"));
  }
}

static void print_check(yyjson_val *root) {
  size_t i, n;
  yyjson_val *routes = yyjson_obj_get(root, "routes"), *item;
  bool admitted = yyjson_get_bool(yyjson_obj_get(root, "admitted"));
  printf("pipeline %s: %s, %s\n", cli_text_of(root, "pipeline"),
         cli_text_of(root, "guarantee"), admitted ? "admitted" : "refused");
  if (strcmp(cli_text_of(root, "store"), "sqlite") == 0)
    printf("state in %s\n\n", cli_text_of(root, "state"));
  else
    printf("state in the PostgreSQL database that `store` names\n\n");
  print_routes(routes);
  fputs("\nWhat a kill -9 means here:\n", stdout);
  yyjson_arr_foreach(routes, i, n, item) {
    printf("  %s -> %s: %s\n", cli_text_of(item, "source"), cli_text_of(item, "sink"),
           cli_text_of(item, "crash"));
  }
  yyjson_val *schemas = yyjson_obj_get(root, "schemas"), *key;
  if (yyjson_obj_size(schemas))
    fputs("\nInferred schemas, as they can be written down:\n", stdout);
  yyjson_obj_foreach(schemas, i, n, key, item) {
    printf("  %s:%s\n    schema: %s\n", cli_text(key),
           yyjson_get_bool(yyjson_obj_get(item, "kept"))
               ? "  # since this deployment began"
               : "",
           cli_text_of(item, "yaml"));
  }
  yyjson_val *targets = yyjson_obj_get(root, "targets");
  if (targets)
    fputs("\nTargets, as they answer now (nothing was changed there):\n", stdout);
  yyjson_obj_foreach(targets, i, n, key, item) {
    char columns[48];
    size_t n_columns = yyjson_obj_size(yyjson_obj_get(item, "columns"));
    if (yyjson_is_null(item))
      printf("  %s: refuses, see below\n", cli_text(key));
    else
      printf("  %s: takes %s%s%s\n", cli_text(key),
             cli_format_count(n_columns, "column", "columns", columns),
             *cli_text_of(item, "identity") ? "; " : "", cli_text_of(item, "identity"));
  }
  yyjson_arr_foreach(yyjson_obj_get(root, "notes"), i, n, item) {
    cli_log(NULL, WEIR_LOG_WARN, NULL, cli_text(item));
  }
}

int cli_check(const cli_args *args) {
  weir_config *config = NULL;
  weir_bytes json = {0};
  weir_error err = {0};
  weir_status status = cli_config_open(args, &config, &err);
  if (!status)
    status = (args->connect ? weir_pipeline_check_targets : weir_pipeline_check)(
        config, &json, &err);
  bool document = json.release != NULL;
  if (document) cli_show_document(args, &json, print_check);
  weir_bytes_release(&json);
  weir_config_free(config);
  return status ? cli_fail(args, &err, cli_exit_status(&err, true), document) : EXIT_DONE;
}

/* ---- status ---------------------------------------------------------------------------------- */

static void print_value(yyjson_val *value) {
  if (yyjson_is_str(value)) {
    fputs(cli_text(value), stdout);
    return;
  }
  char *json = yyjson_val_write(value, 0, NULL);
  fputs(json ? json : "?", stdout);
  free(json);
}

static void print_status(yyjson_val *root) {
  size_t i, n;
  yyjson_val *key, *item, *unresolved = yyjson_obj_get(root, "unresolved");
  printf("pipeline %s, deployment %s\n", cli_text_of(root, "pipeline"),
         cli_text_of(root, "deployment"));
  printf("decided %llu, committed %llu\n", cli_number_of(root, "decided"),
         cli_number_of(root, "committed"));
  fputs("sinks:\n", stdout);
  yyjson_obj_foreach(yyjson_obj_get(root, "sinks"), i, n, key, item) {
    char bytes[32], rows[48];
    yyjson_val *cursor = yyjson_obj_get(item, "cursor");
    cli_format_bytes((double)cli_number_of(item, "bytes"), bytes, sizeof(bytes));
    printf("  %s: ", cli_text(key));
    if (yyjson_is_obj(cursor)) {
      printf("at %llu (token %llu), ", cli_number_of(cursor, "checkpoint"),
             cli_number_of(cursor, "token"));
    } else {
      fputs("no cursor yet, ", stdout);
    }
    printf("%s, %s\n", cli_format_count(cli_number_of(item, "rows"), "row", "rows", rows),
           bytes);
  }
  if (cli_number_of(root, "dead_letters"))
    printf("dead letters: %llu\n", cli_number_of(root, "dead_letters"));
  fputs("sources:\n", stdout);
  yyjson_obj_foreach(yyjson_obj_get(root, "sources"), i, n, key, item) {
    char rows[48];
    yyjson_val *position = yyjson_obj_get(item, "position");
    printf("  %s: ", cli_text(key));
    if (yyjson_is_null(position) || !position) {
      fputs("at the start", stdout);
    } else {
      print_value(position);
    }
    if (cli_number_of(item, "lost"))
      printf(", %s lost",
             cli_format_count(cli_number_of(item, "lost"), "row", "rows", rows));
    fputc('\n', stdout);
  }
  cli_print_resolved(root);
  if (!yyjson_arr_size(unresolved)) {
    fputs("nothing is unresolved\n", stdout);
    return;
  }
  fputs("unresolved (`weir recover` settles what can be settled):\n", stdout);
  yyjson_arr_foreach(unresolved, i, n, item) {
    fputs("  ", stdout);
    print_value(item);
    fputc('\n', stdout);
  }
}

int cli_status(const cli_args *args) {
  weir_config *config = NULL;
  weir_bytes json = {0};
  weir_error err = {0};
  weir_status status = cli_config_open(args, &config, &err);
  if (!status) status = weir_pipeline_status(config, &json, &err);
  if (!status) cli_show_document(args, &json, print_status);
  weir_bytes_release(&json);
  weir_config_free(config);
  return status ? cli_fail(args, &err, cli_exit_status(&err, true), false) : EXIT_DONE;
}

/* ---- version --------------------------------------------------------------------------------- */

int cli_version(const cli_args *args) {
  if (args->json) {
    printf("{\"version\":\"%s\",\"library\":\"%s\",\"abi\":%u}\n", WEIR_VERSION,
           weir_version(), WEIR_ABI_VERSION);
  } else if (strcmp(WEIR_VERSION, weir_version()) == 0) {
    printf("weir %s\n", WEIR_VERSION);
  } else {
    printf("weir %s, library %s\n", WEIR_VERSION, weir_version());
  }
  return EXIT_DONE;
}
