/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include "cli.h"

static const struct {
  int32_t status;
  const char *text;
} statuses[] = {
    {EXIT_DONE, "all delivered and committed"},
    {EXIT_FAILED, "failed at run time"},
    {EXIT_USAGE, "usage or configuration"},
    {EXIT_REFUSED, "refused by admission: a guarantee that cannot be kept"},
    {EXIT_FENCED, "fenced, or a target does not agree with the store"},
    {EXIT_UNFINISHED,
     "stopped before all was committed, or with an epoch in doubt: run again to go on"},
    {EXIT_BAD_DATA, "bad data"},
};
enum { STATUSES = sizeof(statuses) / sizeof(statuses[0]) };

/* Whether a flag is one of that command alone, or, with NULL, one of all. */
static bool is_of(const cli_flag *flag, const char *command) {
  if (!flag->command || !command) return flag->command == command;
  return cli_flag_is_of(flag, command);
}

/* How many there are. */
static size_t print_flags(const char *command, const char *title) {
  size_t printed = 0;
  for (const cli_flag *f = cli_flags; f->name; f++) {
    char usage[40];
    if (!is_of(f, command)) continue;
    if (!printed++) printf("%s:\n", title);
    snprintf(usage, sizeof(usage), "%s %s", f->name, f->value_name ? f->value_name : "");
    printf("  %-19s  %s\n", usage, f->text);
  }
  return printed;
}

static void print_statuses(void) {
  fputs("Exit status:\n", stdout);
  for (size_t i = 0; i < STATUSES; i++)
    printf("  %d  %s\n", statuses[i].status, statuses[i].text);
}

static void add_flags(yyjson_mut_doc *doc, yyjson_mut_val *to, const char *command) {
  yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, to, "flags");
  for (const cli_flag *f = cli_flags; f->name; f++) {
    if (!is_of(f, command)) continue;
    yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_str(doc, entry, "name", f->name);
    if (f->value_name) yyjson_mut_obj_add_str(doc, entry, "value", f->value_name);
    if (f->values && *f->values) yyjson_mut_obj_add_str(doc, entry, "choices", f->values);
    yyjson_mut_obj_add_str(doc, entry, "text", f->text);
  }
}

/* {"commands": [{"name", "operand", "text", "flags"}], "flags": [{"name", "value", "choices", "text"}],
 * "exit": [{"status", "text"}]}: what manual pages and completions are made of. */
static int print_document(void) {
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = yyjson_mut_obj(doc), *list = NULL;
  yyjson_mut_doc_set_root(doc, root);
  list = yyjson_mut_obj_add_arr(doc, root, "commands");
  for (const cli_command *c = cli_commands; c->name; c++) {
    yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_str(doc, entry, "name", c->name);
    yyjson_mut_obj_add_str(doc, entry, "operand", c->operand);
    yyjson_mut_obj_add_str(doc, entry, "text", c->text);
    add_flags(doc, entry, c->name);
  }
  add_flags(doc, root, NULL);
  list = yyjson_mut_obj_add_arr(doc, root, "exit");
  for (size_t i = 0; i < STATUSES; i++) {
    yyjson_mut_val *entry = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_int(doc, entry, "status", statuses[i].status);
    yyjson_mut_obj_add_str(doc, entry, "text", statuses[i].text);
  }
  return cli_print_json(doc) ? EXIT_DONE : EXIT_FAILED;
}

void cli_help_print(const cli_command *command) {
  if (command) {
    printf("weir %s%s%s: %s.\n\n", command->name, *command->operand ? " " : "",
           command->operand, command->text);
    if (strcmp(command->operand, "FILE") == 0) {
      fputs(
          "FILE is a pipeline file in YAML, or - for standard input. Relative paths in "
          "it start at its "
          "own folder.\n\n",
          stdout);
    }
    if (print_flags(command->name, "Flags")) fputc('\n', stdout);
    print_flags(NULL, "Flags of every command");
    return;
  }
  fputs(
      "weir COMMAND [FLAGS] [ARGUMENT]\n\nDelivers streams of Arrow record batches "
      "exactly once.\n\n"
      "Commands:\n",
      stdout);
  for (const cli_command *c = cli_commands; c->name; c++) {
    char usage[40];
    snprintf(usage, sizeof(usage), "%s %s", c->name, c->operand);
    printf("  %-19s  %s\n", usage, c->text);
  }
  fputc('\n', stdout);
  print_flags(NULL, "Flags of every command");
  fputs(
      "\nSignals of `weir run`: the first SIGTERM or SIGINT asks for one last checkpoint "
      "and waits for\n"
      "it as long as `checkpoint.timeout`; a second one stops at once, which is safe. "
      "SIGUSR1:\n"
      "checkpoint now.\n\n",
      stdout);
  print_statuses();
}

int cli_help(const cli_args *args) {
  const cli_command *command = NULL;
  weir_error err = {0};
  if (args->operand && cli_find_command(args->operand, &command, &err)) {
    return cli_fail(args, &err, EXIT_USAGE, false);
  }
  if (args->json) return print_document();
  cli_help_print(command);
  return EXIT_DONE;
}
