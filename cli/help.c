/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static void print_flags(void) {
  fputs(
      "Flags of every command:\n"
      "  --json               one JSON document on standard output, errors included\n"
      "  --set NAME=VALUE     set one value over the file, as in --set "
      "checkpoint.interval=1s\n"
      "  --log-level LEVEL    error, warn, info (default) or debug, to standard error\n"
      "  --log-format FORM    text (default) or json, one object a line\n"
      "  --progress HOW       auto (default), bar, log or none\n"
      "  --help               help on a command\n",
      stdout);
}

static void print_statuses(void) {
  fputs(
      "Exit status:\n"
      "  0  all delivered and committed\n"
      "  1  failed at run time\n"
      "  2  usage or configuration\n"
      "  3  refused by admission: a guarantee that cannot be kept\n"
      "  4  fenced, or a target does not agree with the store\n"
      "  5  stopped before all was committed, or with an epoch in doubt: run again to go "
      "on\n"
      "  6  bad data\n",
      stdout);
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
    if (*command->own_flags) printf("Flags:\n%s\n", command->own_flags);
    print_flags();
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
  print_flags();
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
  cli_help_print(command);
  return EXIT_DONE;
}
