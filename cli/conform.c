/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a sink keeps what its contract promises: the kit of <weir/conform.h>. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <weir/conform.h>
#include <yyjson.h>

#include "cli.h"

typedef struct trial {
  const cli_args *args;
  char *config; /* text of the file; NULL: none */
  size_t size;
  yyjson_mut_doc *doc; /* with --json */
  yyjson_mut_val *checks;
} trial;

static const char *outcome_name(int32_t outcome) {
  static const char *const names[] = {[WEIR_CONFORM_PASSED] = "passed",
                                      [WEIR_CONFORM_FAILED] = "failed",
                                      [WEIR_CONFORM_NOT_SHOWN] = "not_shown",
                                      [WEIR_CONFORM_NOT_CLAIMED] = "not_claimed",
                                      [WEIR_CONFORM_NOT_RUN] = "not_run"};
  return names[outcome];
}

static void tell(void *ctx, const weir_conform_check *check) {
  trial *t = ctx;
  if (t->doc) {
    yyjson_mut_val *entry = yyjson_mut_arr_add_obj(t->doc, t->checks);
    yyjson_mut_obj_add_str(t->doc, entry, "group", check->group);
    yyjson_mut_obj_add_str(t->doc, entry, "name", check->name);
    yyjson_mut_obj_add_str(t->doc, entry, "outcome", outcome_name(check->outcome));
    yyjson_mut_obj_add_str(t->doc, entry, "text", check->text);
    yyjson_mut_obj_add_strcpy(t->doc, entry, "reason", check->reason);
    return;
  }
  char name[64];
  snprintf(name, sizeof(name), "%s/%s", check->group, check->name);
  printf("%-11s  %-26s  %s\n", outcome_name(check->outcome), name, check->text);
  if (*check->reason) printf("%-11s  %-26s  %s\n", "", "", check->reason);
  fflush(stdout);
}

/* The user's own command, for the shell as documented. What it prints must be one number. */
static weir_status count(void *ctx, uint64_t *rows, weir_error *err) {
  const trial *t = ctx;
  char text[64] = {0}, *end = NULL;
  FILE *pipe = popen(t->args->count, "re"); /* NOLINT(bugprone-command-processor) */
  if (!pipe) return weir_error_errno(err, errno, "cannot run the --count command");
  size_t n = fread(text, 1, sizeof(text) - 1, pipe);
  int status = pclose(pipe);
  errno = 0;
  uint64_t value = strtoull(text, &end, 10);
  if (status || errno || end == text || end[strspn(end, " \t\r\n")] ||
      n == sizeof(text) - 1) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "--count: expected a command that prints one number and ends "
                          "with status 0; it printed '%.60s' and ended with %d",
                          text, WIFEXITED(status) ? WEXITSTATUS(status) : status);
  }
  *rows = value;
  return WEIR_OK;
}

static weir_status read_config(trial *t, weir_error *err) {
  enum { MOST = 1 << 20 };
  FILE *file = fopen(t->args->config, "re");
  t->config = malloc(MOST);
  if (file && t->config) t->size = fread(t->config, 1, MOST, file);
  bool read = file && t->config && !ferror(file) && t->size < MOST;
  int errnum = errno;
  if (file) fclose(file);
  if (read) return WEIR_OK;
  weir_error_errno(err, file ? EFBIG : errnum, "cannot read '%s'", t->args->config);
  return err->code = WEIR_E_INVALID_CONFIG;
}

static void add_summary(trial *t, const weir_conform_summary *sum) {
  yyjson_mut_doc *doc = t->doc;
  yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
  yyjson_mut_val *contract = yyjson_mut_obj_add_obj(doc, root, "contract");
  yyjson_mut_obj_add_int(doc, contract, "consistency", sum->contract.consistency);
  yyjson_mut_obj_add_int(doc, contract, "topology", sum->contract.topology);
  yyjson_mut_obj_add_int(doc, contract, "input", sum->contract.input);
  yyjson_mut_obj_add_int(doc, contract, "staging", sum->contract.staging);
  yyjson_mut_obj_add_bool(doc, contract, "overlap", sum->contract.overlap);
  yyjson_mut_obj_add_bool(doc, contract, "cas_commit", sum->contract.cas_commit);
  yyjson_mut_obj_add_bool(doc, contract, "claims", sum->contract.claims);
  yyjson_mut_obj_add_uint(doc, root, "passed", sum->passed);
  yyjson_mut_obj_add_uint(doc, root, "failed", sum->failed);
  yyjson_mut_obj_add_uint(doc, root, "not_shown", sum->not_shown);
  yyjson_mut_obj_add_uint(doc, root, "not_claimed", sum->not_claimed);
  yyjson_mut_obj_add_uint(doc, root, "not_run", sum->not_run);
  yyjson_mut_obj_add_bool(doc, root, "certified", sum->certified);
}

static void print_summary(const trial *t, const weir_conform_summary *sum) {
  static const char *const keeps[] = {"ephemeral", "durable at least once",
                                      "committable"};
  static const char *const places[] = {"singleton", "multi-writer", "node-local"};
  printf("\n%s: sink %s, which claims to be %s, %s: %" PRIu64 " passed, %" PRIu64
         " failed, %" PRIu64 " not shown, %" PRIu64 " not run\n",
         sum->certified ? "certified" : "not certified", t->args->operand,
         keeps[sum->contract.consistency], places[sum->contract.topology], sum->passed,
         sum->failed, sum->not_shown, sum->not_run);
  if (sum->not_shown && !t->args->count && sum->contract.consistency != WEIR_EPHEMERAL)
    puts(
        "what is not shown needs --count COMMAND, which prints how many rows the target "
        "has");
}

int cli_conform(const cli_args *args) {
  trial t = {.args = args};
  weir_conform_summary sum = {.struct_size = sizeof(sum)};
  weir_error err = {0};
  char *folder = NULL;
  weir_status status = args->config ? read_config(&t, &err) : WEIR_OK;
  if (args->config) {
    const char *slash = strrchr(args->config, '/');
    folder =
        slash ? strndup(args->config, (size_t)(slash - args->config) + 1) : strdup(".");
  }
  if (args->json) {
    t.doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(t.doc);
    yyjson_mut_doc_set_root(t.doc, root);
    yyjson_mut_obj_add_str(t.doc, root, "sink", args->operand);
    t.checks = yyjson_mut_obj_add_arr(t.doc, root, "checks");
  }
  weir_conform_options options = {.struct_size = sizeof(options),
                                  .type = args->operand,
                                  .config = t.config,
                                  .config_size = t.size,
                                  .config_name = args->config,
                                  .base_dir = folder,
                                  .ctx = &t,
                                  .count = args->count ? count : NULL,
                                  .check = tell,
                                  .only = args->only};
  if (!status) status = weir_conform(&options, &sum, &err);
  free(t.config);
  free(folder);
  if (status) {
    yyjson_mut_doc_free(t.doc);
    return cli_fail(args, &err, cli_exit_status(&err, true), false);
  }
  if (t.doc) {
    add_summary(&t, &sum);
    if (!cli_print_json(t.doc)) return EXIT_FAILED;
  } else {
    print_summary(&t, &sum);
  }
  return sum.certified ? EXIT_DONE : EXIT_FAILED;
}
