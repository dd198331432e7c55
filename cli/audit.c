/* SPDX-License-Identifier: Apache-2.0 */
/* verify and clean: targets beside the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "cli.h"

enum { SHOWN = 20 }; /* lines of one kind; --json has more */

/* "3 artifacts, 1.2 MB" */
static void print_amount(yyjson_val *of) {
  char bytes[32], count[48];
  cli_format_bytes((double)cli_number_of(of, "bytes"), bytes, sizeof(bytes));
  printf("%s, %s",
         cli_format_count(cli_number_of(of, "artifacts"), "artifact", "artifacts", count),
         bytes);
}

static void print_more(unsigned long long n) {
  if (n > SHOWN) printf("    and %llu more; --json lists them\n", n - SHOWN);
}

/* ---- verify ---------------------------------------------------------------------------------------- */

static bool was_checked(yyjson_val *sink, const char *what) {
  size_t i, n;
  yyjson_val *item;
  yyjson_arr_foreach(yyjson_obj_get(sink, "checked"), i, n, item) {
    if (yyjson_equals_str(item, what)) return true;
  }
  return false;
}

/* What was compared, and what could not be, in one line. */
static void print_checked(yyjson_val *sink) {
  char count[48];
  yyjson_val *cursor = yyjson_obj_get(sink, "cursor");
  if (yyjson_is_obj(cursor))
    printf("at epoch %llu", cli_number_of(cursor, "checkpoint"));
  else
    fputs("nothing published", stdout);
  if (was_checked(sink, "artifacts")) {
    fputs("; ", stdout);
    print_amount(sink);
    if (was_checked(sink, "content")) fputs(", every byte", stdout);
  } else if (yyjson_is_obj(cursor)) {
    fputs("; cannot tell its artifacts", stdout);
  }
  if (yyjson_is_obj(cursor) && was_checked(sink, "rows")) {
    printf("; %s", cli_format_count(cli_number_of(sink, "rows"), "row", "rows", count));
    if (cli_number_of(sink, "rows_since"))
      printf(" since epoch %llu", cli_number_of(sink, "rows_since"));
  } else if (yyjson_is_obj(cursor)) {
    fputs("; cannot tell its rows", stdout);
  }
  fputc('\n', stdout);
}

static void print_verified_sink(const char *name, yyjson_val *sink) {
  size_t i, n;
  char count[48];
  yyjson_val *fault, *orphans = yyjson_obj_get(sink, "orphans");
  unsigned long long faults = cli_number_of(sink, "fault_count");
  printf("  %s: ", name);
  if (yyjson_arr_size(yyjson_obj_get(sink, "checked")))
    print_checked(sink);
  else
    fputs(faults ? "was not looked at further\n"
                 : "cannot tell: this sink keeps nothing at its target to compare\n",
          stdout);
  yyjson_arr_foreach(yyjson_obj_get(sink, "faults"), i, n, fault) {
    if (i == SHOWN) break;
    const char *artifact = cli_text_of(fault, "artifact");
    const char *kind = cli_text_of(fault, "kind");
    const char *between = !*artifact ? "" : strcmp(kind, "foreign") == 0 ? ": " : " ";
    printf("    %s: %s%s%s\n", kind, artifact, between, cli_text_of(fault, "text"));
  }
  print_more(faults);
  if (cli_number_of(sink, "pending"))
    printf(
        "    decided and not published yet: %s (a live run, the next run or `weir "
        "recover` publishes them)\n",
        cli_format_count(cli_number_of(sink, "pending"), "epoch", "epochs", count));
  if (cli_number_of(orphans, "artifacts")) {
    fputs("    owned by no epoch: ", stdout);
    print_amount(orphans);
    fputs(" (`weir clean` removes them)\n", stdout);
  }
}

static void print_verified(yyjson_val *root) {
  size_t i, n;
  yyjson_val *key, *sink, *sinks = yyjson_obj_get(root, "sinks");
  unsigned long long verified = cli_number_of(root, "verified");
  const char *deployment = cli_text_of(root, "deployment");
  printf("pipeline %s, ", cli_text_of(root, "pipeline"));
  if (*deployment)
    printf("deployment %s\n", deployment);
  else
    printf("which has no state folder %s\n", cli_text_of(root, "state"));
  yyjson_obj_foreach(sinks, i, n, key, sink) {
    print_verified_sink(yyjson_get_str(key), sink);
  }
  cli_print_resolved(root);
  if (!yyjson_get_bool(yyjson_obj_get(root, "agreed")))
    puts("the targets do NOT agree with the store");
  else if (verified == n)
    puts("verified: the targets agree with the store");
  else
    printf("verified: %llu of %zu sinks; the others cannot tell\n", verified, n);
}

/* 0 or 4 for what the targets say; usage and what cannot be read keep their own. */
int cli_verify(const cli_args *args) {
  weir_config *config = NULL;
  weir_bytes json = {0};
  weir_error err = {0};
  weir_status status = cli_config_open(args, &config, &err);
  if (!status)
    status = weir_pipeline_verify(config, args->deep ? WEIR_VERIFY_DEEP : 0, &json, &err);
  bool document = json.release != NULL;
  if (document) cli_show_document(args, &json, print_verified);
  weir_bytes_release(&json);
  weir_config_free(config);
  return status ? cli_fail(args, &err, cli_exit_status(&err, true), document) : EXIT_DONE;
}

/* ---- clean ----------------------------------------------------------------------------------------- */

static weir_status parse_age(const char *text, int64_t *out, weir_error *err) {
  static const weir_option table[] = {
      {"older_than", WEIR_OPT_DURATION, 0, NULL, 0, INT64_MAX, NULL, ""}, {0}};
  static const char *const name = "older_than";
  weir_options *options = NULL;
  weir_status status =
      weir_options_new(table, "--older-than", &name, &text, 1, NULL, &options, err);
  if (!status) *out = weir_options_int(options, name);
  weir_options_free(options);
  return status;
}

static void print_age(unsigned long long seconds) {
  if (seconds >= 2 * 86400)
    printf("%llu days", seconds / 86400);
  else if (seconds >= 2 * 3600)
    printf("%llu hours", seconds / 3600);
  else if (seconds >= 2 * 60)
    printf("%llu minutes", seconds / 60);
  else
    printf("%llu s", seconds);
}

static void print_cleaned_sink(const char *name, yyjson_val *sink, bool dry_run) {
  size_t i, n;
  yyjson_val *item;
  unsigned long long artifacts = cli_number_of(sink, "artifacts"),
                     young = cli_number_of(sink, "young");
  printf("  %s: ", name);
  if (!yyjson_get_bool(yyjson_obj_get(sink, "looked"))) {
    puts("cannot tell: this sink does not say what lies at its target");
    return;
  }
  if (artifacts) {
    fputs(dry_run ? "would remove " : "removed ", stdout);
    print_amount(sink);
    fputc('\n', stdout);
  } else {
    puts("nothing to remove");
  }
  yyjson_arr_foreach(yyjson_obj_get(sink, "orphans"), i, n, item) {
    if (i == SHOWN) break;
    printf("    %s, %llu bytes, ", cli_text_of(item, "artifact"),
           cli_number_of(item, "bytes"));
    print_age(cli_number_of(item, "age_seconds"));
    puts(" old");
  }
  print_more(artifacts);
  if (young)
    printf("    kept for %s age: %llu (--older-than says how old is old enough)\n",
           young == 1 ? "its" : "their", young);
  yyjson_arr_foreach(yyjson_obj_get(sink, "unknown"), i, n, item) {
    if (i == SHOWN) break;
    printf("    kept: %s %s\n", cli_text_of(item, "artifact"), cli_text_of(item, "text"));
  }
}

static void print_cleaned(yyjson_val *root) {
  size_t i, n;
  yyjson_val *key, *sink;
  bool dry_run = yyjson_get_bool(yyjson_obj_get(root, "dry_run"));
  printf("pipeline %s, deployment %s%s\n", cli_text_of(root, "pipeline"),
         cli_text_of(root, "deployment"),
         dry_run ? ": nothing is removed (--dry-run)" : "");
  yyjson_obj_foreach(yyjson_obj_get(root, "sinks"), i, n, key, sink) {
    print_cleaned_sink(yyjson_get_str(key), sink, dry_run);
  }
}

int cli_clean(const cli_args *args) {
  weir_config *config = NULL;
  weir_bytes json = {0};
  weir_error err = {0};
  int64_t older_than_ns = -1; /* the library's default */
  uint32_t flags =
      (args->dry_run ? WEIR_CLEAN_DRY_RUN : 0u) | (args->all ? WEIR_CLEAN_ALL : 0u);
  weir_status status = WEIR_OK;
  if (args->older_than) status = parse_age(args->older_than, &older_than_ns, &err);
  if (!status) status = cli_config_open(args, &config, &err);
  if (!status) status = weir_pipeline_clean(config, flags, older_than_ns, &json, &err);
  if (!status) cli_show_document(args, &json, print_cleaned);
  weir_bytes_release(&json);
  weir_config_free(config);
  return status ? cli_fail(args, &err, cli_exit_status(&err, true), false) : EXIT_DONE;
}
