/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"

const cli_command cli_commands[] = {
    {"run", "FILE", "deliver until the sources end, or SIGTERM / SIGINT", cli_run},
    {"check", "FILE",
     "read the config, print the admission table and what a kill -9 means here",
     cli_check},
    {"status", "FILE", "what the checkpoint store knows; also beside a live run",
     cli_status},
    {"verify", "FILE",
     "compare the targets with the store; read-only, also beside a live run", cli_verify},
    {"recover", "FILE", "settle what an earlier run left, then stop; reads no source",
     cli_recover},
    {"clean", "FILE", "remove artifacts at the targets that no epoch owns", cli_clean},
    {"resolve", "FILE",
     "the only way past a decided attempt that its target refuses for good", cli_resolve},
    {"adopt", "FILE",
     "make a lost checkpoint store anew of the cursor records at the targets", cli_adopt},
    {"connectors", "[NAME]", "the connectors there are; every option of one",
     cli_connectors},
    {"init", "[NAME]", "a commented sample pipeline; without NAME the list of samples",
     cli_init},
    {"conform", "NAME",
     "try whether a sink keeps what its contract promises; writes to its target",
     cli_conform},
    {"version", "", "the version of the command and the library", cli_version},
    {"help", "[COMMAND]", "this page, or that of a command", cli_help},
    {0},
};

/* Keeps the memory of batches for the batches to come: by its defaults malloc gives blocks of that size back
 * to the kernel, and each page of the next batch costs a fault again. */
static void keep_memory(void) {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

/* Standard streams that were closed: else the next file opened takes their place, and is read or written. */
static void hold_standard_streams(void) {
  int fd;
  do fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
  cli_args args = {0};
  weir_error err = {0};
  int status = EXIT_USAGE;
  hold_standard_streams();
  keep_memory();
  weir_status parsed = cli_args_parse(argc, argv, &args, &err);
  cli_report_init(&args);
  if (parsed) {
    status = cli_fail(&args, &err, EXIT_USAGE, false);
  } else if (args.help) {
    cli_help_print(args.command);
    status = EXIT_DONE;
  } else {
    status = args.command->run(&args);
  }
  status = cli_finish(&args, status);
  cli_args_done(&args);
  return status;
}
