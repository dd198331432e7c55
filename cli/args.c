/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli.h"

enum {
  FLAG_JSON,
  FLAG_HELP,
  FLAG_NEW,
  FLAG_LOG_LEVEL,
  FLAG_LOG_FORMAT,
  FLAG_SET,
  FLAG_PROGRESS,
  FLAG_CONFIG,
  FLAG_COUNT,
  FLAG_ONLY,
  FLAG_CONNECT,
  FLAG_DEEP,
  FLAG_DRY_RUN,
  FLAG_OLDER_THAN,
  FLAG_ALL,
  FLAG_SINK,
  FLAG_ATTEMPT,
  FLAG_AS,
  FLAG_WHY,
  FLAG_CONFIRM,
  FLAG_SET_ASIDE
};

const cli_flag cli_flags[] = {
    {"--new-deployment", FLAG_NEW, NULL, NULL, "run",
     "leave the old state aside and deliver everything again"},
    {"--config", FLAG_CONFIG, "", "FILE", "conform",
     "the sink's options, as they stand under `sinks: NAME:`"},
    {"--count", FLAG_COUNT, "", "COMMAND", "conform",
     "shell command that prints how many rows the target has"},
    {"--only", FLAG_ONLY, "", "CHECK", "conform", "one check, or one group of checks"},
    {"--connect", FLAG_CONNECT, NULL, NULL, "check",
     "also ask sources and targets for their schemas; changes nothing there"},
    {"--deep", FLAG_DEEP, NULL, NULL, "verify",
     "read every published byte and compare its SHA-256, too"},
    {"--dry-run", FLAG_DRY_RUN, NULL, NULL, "clean|adopt",
     "only say what would be done; also beside a live run"},
    {"--older-than", FLAG_OLDER_THAN, "", "AGE", "clean",
     "keep what is younger by the target's clock: 7d, 24h, 30m, 0 (default 1h)"},
    {"--all", FLAG_ALL, NULL, NULL, "clean",
     "also what replaced deployments left; with --older-than 24h or more"},
    {"--sink", FLAG_SINK, "", "SINK", "resolve",
     "whose attempt; without it all are listed"},
    {"--attempt", FLAG_ATTEMPT, "", "N", "resolve", "which one"},
    {"--as", FLAG_AS, "published|given-up", NULL, "resolve",
     "published: its rows are at the target all the same; given-up: they never will be"},
    {"--why", FLAG_WHY, "", "TEXT", "resolve", "kept with the answer"},
    {"--confirm", FLAG_CONFIRM, "", "PIPELINE", "resolve",
     "the pipeline's name, typed out; asked for on a terminal"},
    {"--set-aside", FLAG_SET_ASIDE, NULL, NULL, "adopt",
     "keep a state that the targets do not agree with under another name"},
    {"--json", FLAG_JSON, NULL, NULL, NULL,
     "one JSON document on standard output, errors included"},
    {"--set", FLAG_SET, "", "NAME=VALUE", NULL,
     "set one value over the file, as in --set checkpoint.interval=1s"},
    {"--log-level", FLAG_LOG_LEVEL, "error|warn|info|debug", "LEVEL", NULL,
     "error, warn, info (default) or debug, to standard error"},
    {"--log-format", FLAG_LOG_FORMAT, "text|json", "FORM", NULL,
     "text (default) or json, one object a line"},
    {"--progress", FLAG_PROGRESS, "auto|bar|log|none", "HOW", NULL,
     "auto (default: bar on a terminal, else log), bar, log or none"},
    {"--help", FLAG_HELP, NULL, NULL, NULL, "help on a command"},
    {0},
};
enum { FLAGS = sizeof(cli_flags) / sizeof(cli_flags[0]) };

/* ---- names ----------------------------------------------------------------------------------- */

enum { NAME_MAX_COMPARED = 64 };

/* Edits from one name to the other, case ignored (Levenshtein). */
static size_t distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b), row[NAME_MAX_COMPARED + 1];
  if (n > NAME_MAX_COMPARED || m > NAME_MAX_COMPARED) return SIZE_MAX;
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t best = diagonal + (strncasecmp(a + i - 1, b + j - 1, 1) != 0);
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[m];
}

/* The name nearest to `given`, or NULL. */
static const char *nearest_name(const char *given, const char *const *names) {
  const char *nearest = NULL;
  size_t best = 3 + strlen(given) / 4; /* one more than may differ */
  for (; *names; names++) {
    size_t d = distance(given, *names);
    if (d >= best || d >= strlen(*names)) continue;
    best = d;
    nearest = *names;
  }
  return nearest;
}

weir_status cli_unknown(const char *what, const char *given, const char *const *names,
                        const char *lister, weir_error *err) {
  const char *nearest = names ? nearest_name(given, names) : NULL;
  if (nearest) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "there is no %s '%.80s'; did you mean '%s'? `%s` lists them",
                          what, given, nearest, lister);
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "there is no %s '%.80s'; `%s` lists them", what, given, lister);
}

weir_status cli_find_command(const char *name, const cli_command **out, weir_error *err) {
  const char *names[16] = {0};
  for (size_t i = 0; cli_commands[i].name && i + 1 < sizeof(names) / sizeof(names[0]);
       i++) {
    names[i] = cli_commands[i].name;
    if (strcmp(names[i], name) != 0) continue;
    *out = &cli_commands[i];
    return WEIR_OK;
  }
  return cli_unknown("command", name, names, "weir help", err);
}

static weir_status unknown_flag(const char *given, weir_error *err) {
  const char *names[FLAGS] = {0};
  for (size_t i = 0; cli_flags[i].name; i++) names[i] = cli_flags[i].name;
  return cli_unknown("flag", given, names, "weir help", err);
}

/* ---- flags ----------------------------------------------------------------------------------- */

/* Position of `value` among the names in "a|b|c", from 0; -1: none of them. */
static int32_t choice(const char *choices, const char *value) {
  size_t n = strlen(value);
  for (int32_t i = 0; choices; i++) {
    if (n && strncmp(choices, value, n) == 0 && (choices[n] == '|' || !choices[n]))
      return i;
    choices = strchr(choices, '|');
    if (choices) choices++;
  }
  return -1;
}

bool cli_flag_is_of(const cli_flag *flag, const char *command) {
  return choice(flag->command, command) >= 0;
}

static weir_status add_setting(cli_args *args, const char *value, weir_error *err) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "--set takes NAME=VALUE, as in --set checkpoint.interval=1s");
  }
  cli_setting *grown = realloc(args->settings, (args->n_settings + 1) * sizeof(*grown));
  char *text = strdup(value);
  if (grown) args->settings = grown;
  if (!grown || !text) {
    free(text);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  }
  text[equals - value] = 0;
  grown[args->n_settings++] =
      (cli_setting){.name = text, .value = text + (equals - value) + 1, .text = text};
  return WEIR_OK;
}

static weir_status apply_flag(cli_args *args, const cli_flag *flag, const char *value,
                              weir_error *err) {
  int32_t chosen = flag->values && *flag->values ? choice(flag->values, value) : 0;
  if (chosen < 0) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s takes one of %s, not '%.80s'", flag->name, flag->values,
                          value);
  }
  switch (flag->id) {
    case FLAG_JSON:
      args->json = true;
      return WEIR_OK;
    case FLAG_HELP:
      args->help = true;
      return WEIR_OK;
    case FLAG_NEW:
      args->new_deployment = true;
      return WEIR_OK;
    case FLAG_LOG_LEVEL:
      args->log_level = WEIR_LOG_ERROR + chosen;
      return WEIR_OK;
    case FLAG_LOG_FORMAT:
      args->log_json = chosen == 1;
      return WEIR_OK;
    case FLAG_PROGRESS:
      args->progress = chosen;
      return WEIR_OK;
    case FLAG_CONFIG:
      args->config = value;
      return WEIR_OK;
    case FLAG_COUNT:
      args->count = value;
      return WEIR_OK;
    case FLAG_ONLY:
      args->only = value;
      return WEIR_OK;
    case FLAG_CONNECT:
      args->connect = true;
      return WEIR_OK;
    case FLAG_DEEP:
      args->deep = true;
      return WEIR_OK;
    case FLAG_DRY_RUN:
      args->dry_run = true;
      return WEIR_OK;
    case FLAG_OLDER_THAN:
      args->older_than = value;
      return WEIR_OK;
    case FLAG_SINK:
      args->sink = value;
      return WEIR_OK;
    case FLAG_ATTEMPT:
      args->attempt = value;
      return WEIR_OK;
    case FLAG_AS:
      args->as = value;
      return WEIR_OK;
    case FLAG_WHY:
      args->why = value;
      return WEIR_OK;
    case FLAG_SET_ASIDE:
      args->set_aside = true;
      return WEIR_OK;
    case FLAG_CONFIRM:
      args->confirm = value;
      return WEIR_OK;
    case FLAG_ALL:
      args->all = true;
      return WEIR_OK;
    default:
      return add_setting(args, value, err);
  }
}

/* One flag at argv[*at], with its value there or in the next one. */
static weir_status parse_flag(int argc, char **argv, int *at, cli_args *args,
                              const cli_flag **last, weir_error *err) {
  const char *given = argv[*at];
  size_t n = strcspn(given, "=");
  if (strcmp(given, "-h") == 0) {
    args->help = true;
    return WEIR_OK;
  }
  for (const cli_flag *flag = cli_flags; flag->name; flag++) {
    if (strncmp(given, flag->name, n) != 0 || flag->name[n]) continue;
    const char *value = given[n] ? given + n + 1 : NULL;
    if (value && !flag->values) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "%s takes no value",
                            flag->name);
    }
    if (!value && flag->values) value = ++*at < argc ? argv[*at] : NULL;
    if (!value && flag->values) {
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0, "%s needs a value%s%s", flag->name,
          *flag->values          ? ": one of "
          : flag->id == FLAG_SET ? ", as in --set checkpoint.interval=1s"
                                 : ": ",
          *flag->values || flag->id == FLAG_SET ? flag->values : flag->value_name);
    }
    if (flag->command) *last = flag;
    return apply_flag(args, flag, value, err);
  }
  return unknown_flag(given, err);
}

/* ---- the line -------------------------------------------------------------------------------- */

static weir_status take_word(cli_args *args, const char *word, weir_error *err) {
  if (!args->command) return cli_find_command(word, &args->command, err);
  if (args->operand || !*args->command->operand) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "`weir %s` takes %s; '%.80s' is too much", args->command->name,
                          *args->command->operand ? "one argument" : "no argument", word);
  }
  args->operand = word;
  return WEIR_OK;
}

static weir_status check_complete(const cli_args *args, const cli_flag *own,
                                  weir_error *err) {
  if (args->help) return WEIR_OK;
  if (!args->command) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "no command given; `weir help` lists the commands");
  }
  if (own && !cli_flag_is_of(own, args->command->name)) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s belongs to `weir %s`, not to `weir %s`", own->name,
                          own->command, args->command->name);
  }
  if (!args->operand && *args->command->operand && *args->command->operand != '[') {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0, "`weir %s` needs a %s: %s", args->command->name,
        args->command->operand,
        strcmp(args->command->operand, "FILE") == 0
            ? "the path of a pipeline file, or - for standard input"
            : "a sink of `weir connectors`, or the path of a shared object");
  }
  return WEIR_OK;
}

weir_status cli_args_parse(int argc, char **argv, cli_args *out, weir_error *err) {
  const cli_flag *own = NULL;
  weir_status status = WEIR_OK, first = WEIR_OK;
  bool words_only = false;
  out->log_level = WEIR_LOG_INFO;
  for (int i = 1; i < argc; i++) {
    weir_error *where =
        first ? NULL : err; /* the first error counts; --json still has to be seen */
    const char *word = argv[i];
    if (!words_only && strcmp(word, "--") == 0) {
      words_only = true;
    } else if (!words_only && strcmp(word, "--version") == 0) {
      status = take_word(out, "version", where);
    } else if (!words_only && word[0] == '-' && word[1]) {
      status = parse_flag(argc, argv, &i, out, &own, where);
    } else {
      status = first ? WEIR_OK : take_word(out, word, where);
    }
    if (status && !first) first = status;
  }
  return first ? first : check_complete(out, own, err);
}

void cli_args_done(cli_args *args) {
  for (size_t i = 0; i < args->n_settings; i++) free(args->settings[i].text);
  free(args->settings);
  *args = (cli_args){0};
}
