/* SPDX-License-Identifier: Apache-2.0 */
/* resolve: what is decided and not published, what each answer to it means, and the answer. adopt. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yyjson.h>

#include "cli.h"

enum { LINE = 400 };

static void print_answers(void) {
  fputs(
      "What a target took back or cannot be asked for any more is published by `weir "
      "recover`, or by the\n"
      "next run: try that first. Only where a target refuses an epoch for good, for that "
      "sink alone:\n"
      "  --as published   its rows are at the target in some other way. weir publishes "
      "nothing of it\n"
      "                   and counts it as delivered. Said wrongly, these rows are "
      "missing there.\n"
      "  --as given-up    its rows will never be at the target. weir publishes nothing "
      "of "
      "it; what was\n"
      "                   staged for it is left to `weir clean`. Said wrongly, these "
      "rows "
      "are missing there.\n"
      "Either way the next run goes on behind it, at no other sink anything changes, and "
      "who said so, when\n"
      "and why is kept. It cannot be taken back. To answer:\n"
      "  weir resolve FILE --sink SINK --attempt N --as ANSWER --why TEXT --confirm "
      "PIPELINE\n",
      stdout);
}

static void print_list(yyjson_val *root) {
  size_t i, n;
  yyjson_val *item;
  char bytes[32], rows[48];
  bool any = false;
  printf("pipeline %s, deployment %s\n", cli_text_of(root, "pipeline"),
         cli_text_of(root, "deployment"));
  yyjson_arr_foreach(yyjson_obj_get(root, "unresolved"), i, n, item) {
    unsigned long long attempt = cli_number_of(item, "attempt");
    if (strcmp(cli_text_of(item, "state"), "decided") != 0) {
      printf(
          "  epoch %llu: not decided. Nothing of it is published, nothing is to be "
          "answered: `weir recover` settles it\n",
          attempt);
      continue;
    }
    any = true;
    cli_format_bytes((double)cli_number_of(item, "bytes"), bytes, sizeof(bytes));
    printf("  %s, epoch %llu: decided and not published; %s, %s\n",
           cli_text_of(item, "sink"), attempt,
           cli_format_count(cli_number_of(item, "rows"), "row", "rows", rows), bytes);
  }
  cli_print_resolved(root);
  if (any)
    print_answers();
  else
    puts("nothing is to be resolved");
}

static void print_left(yyjson_val *root) {
  printf("pipeline %s, deployment %s\n", cli_text_of(root, "pipeline"),
         cli_text_of(root, "deployment"));
  cli_print_resolved(root);
  puts("the next run, or `weir recover`, goes on behind it");
}

/* ---- the answer ------------------------------------------------------------------------------------ */

/* On a terminal what was not given is asked for; *text is `line`, or what was given. */
static weir_status ask(const char **text, const char *flag, const char *question,
                       char line[LINE], weir_error *err) {
  if (*text) return WEIR_OK;
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "an answer needs %s: %s", flag,
                          question);
  fprintf(stderr, "%s: ", question);
  if (!fgets(line, LINE, stdin)) line[0] = 0;
  line[strcspn(line, "\n")] = 0;
  *text = line;
  return WEIR_OK;
}

static weir_status check_confirmed(const cli_args *args, const weir_config *config,
                                   const char **why, char line[LINE], weir_error *err) {
  char name[LINE];
  const char *confirm = args->confirm;
  weir_bytes json = {0};
  weir_status status = weir_pipeline_resolve(config, NULL, &json, err);
  if (!status)
    status = ask(&confirm, "--confirm PIPELINE",
                 "the name of the pipeline, typed out, since this cannot be taken back",
                 name, err);
  yyjson_doc *doc = yyjson_read((const char *)json.data, json.size, YYJSON_READ_NOFLAG);
  const char *pipeline = cli_text_of(yyjson_doc_get_root(doc), "pipeline");
  if (!status && strcmp(confirm, pipeline) != 0)
    status = weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "this is pipeline %s, not '%.80s': nothing was changed",
                            pipeline, confirm);
  *why = args->why;
  if (!status) status = ask(why, "--why TEXT", "why, to be kept with it", line, err);
  yyjson_doc_free(doc);
  weir_bytes_release(&json);
  return status;
}

static void name_user(char out[LINE]) {
  char buf[1024], host[100] = {0};
  struct passwd entry, *found = NULL;
  if (gethostname(host, sizeof(host) - 1)) snprintf(host, sizeof(host), "unknown");
  if (!getpwuid_r(getuid(), &entry, buf, sizeof(buf), &found) && found)
    snprintf(out, LINE, "%.100s@%s", found->pw_name, host);
  else
    snprintf(out, LINE, "uid %ld@%s", (long)getuid(), host);
}

static weir_status answer(const cli_args *args, const weir_config *config,
                          weir_bytes *json, weir_error *err) {
  char who[LINE], line[LINE], *end = NULL;
  const char *why = NULL;
  if (!args->sink || !args->attempt || !args->as)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "an answer needs --sink, --attempt and --as; `weir resolve` "
                          "without them lists what is to be resolved");
  weir_resolution word = {.struct_size = sizeof(word),
                          .as = strcmp(args->as, "published") == 0
                                    ? WEIR_RESOLVE_PUBLISHED
                                    : WEIR_RESOLVE_GIVEN_UP,
                          .sink = args->sink,
                          .attempt = strtoull(args->attempt, &end, 10),
                          .who = who};
  if (*args->attempt < '0' || *args->attempt > '9' || *end || !word.attempt)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "--attempt takes the number of an epoch, not '%.40s'",
                          args->attempt);
  weir_status status = check_confirmed(args, config, &why, line, err);
  if (status) return status;
  name_user(who);
  word.why = why;
  return weir_pipeline_resolve(config, &word, json, err);
}

int cli_resolve(const cli_args *args) {
  weir_config *config = NULL;
  weir_bytes json = {0};
  weir_error err = {0};
  bool answers = args->sink || args->attempt || args->as || args->why || args->confirm;
  weir_status status = cli_config_open(args, &config, &err);
  if (!status && answers) status = answer(args, config, &json, &err);
  if (!status && !answers) status = weir_pipeline_resolve(config, NULL, &json, &err);
  if (!status) cli_show_document(args, &json, answers ? print_left : print_list);
  weir_bytes_release(&json);
  weir_config_free(config);
  return status ? cli_fail(args, &err, cli_exit_status(&err, true), false) : EXIT_DONE;
}

/* ---- adopt ------------------------------------------------------------------------------------------- */

static void print_adopted(yyjson_val *root) {
  size_t i, n;
  yyjson_val *key, *item;
  bool agreed = yyjson_get_bool(yyjson_obj_get(root, "agreed"));
  bool dry = yyjson_get_bool(yyjson_obj_get(root, "dry_run"));
  printf("pipeline %s, deployment %s%s\n", cli_text_of(root, "pipeline"),
         cli_text_of(root, "deployment"), dry ? ": nothing is made (--dry-run)" : "");
  yyjson_obj_foreach(yyjson_obj_get(root, "sinks"), i, n, key, item) {
    char rows[48];
    yyjson_val *cursor = yyjson_obj_get(item, "cursor");
    printf("  %s: ", cli_text(key));
    if (yyjson_is_obj(cursor))
      printf("at epoch %llu; %s in its records\n", cli_number_of(cursor, "checkpoint"),
             cli_format_count(cli_number_of(item, "rows"), "row", "rows", rows));
    else
      puts("nothing published");
  }
  yyjson_obj_foreach(yyjson_obj_get(root, "sources"), i, n, key, item) {
    yyjson_val *position = yyjson_obj_get(item, "position");
    printf("  %s: goes on at %s\n", cli_text(key),
           yyjson_is_str(position) ? cli_text(position) : "the start");
  }
  if (*cli_text_of(root, "set_aside"))
    printf("the old state is kept: %s\n", cli_text_of(root, "set_aside"));
  if (agreed)
    puts("the state agrees with the targets: there is nothing to adopt");
  else
    puts(dry ? "a state could be made of this"
             : "a state was made of this: `weir run` goes on");
}

int cli_adopt(const cli_args *args) {
  weir_config *config = NULL;
  weir_bytes json = {0};
  weir_error err = {0};
  uint32_t flags = (args->dry_run ? WEIR_ADOPT_DRY_RUN : 0u) |
                   (args->set_aside ? WEIR_ADOPT_SET_ASIDE : 0u);
  weir_status status = cli_config_open(args, &config, &err);
  if (!status) status = weir_pipeline_adopt(config, flags, &json, &err);
  if (!status) cli_show_document(args, &json, print_adopted);
  weir_bytes_release(&json);
  weir_config_free(config);
  return status ? cli_fail(args, &err, cli_exit_status(&err, true), false) : EXIT_DONE;
}
