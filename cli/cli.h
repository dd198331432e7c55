/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command: a host like any other, on the public headers alone.
 *
 * stdout is for results (tables, one JSON document), stderr for everything else. A command returns the
 * exit status; what went wrong is told once, by cli_fail.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/weir.h>

enum {                   /* exit statuses: scripts and service managers depend on them */
       EXIT_DONE = 0,    /* all delivered and committed */
       EXIT_FAILED = 1,  /* failed at run time */
       EXIT_USAGE = 2,   /* usage or configuration */
       EXIT_REFUSED = 3, /* refused by admission */
       EXIT_FENCED = 4,  /* fenced, or a target that does not agree with the store */
       EXIT_UNFINISHED =
           5, /* stopped before all was committed, or with an epoch in doubt */
       EXIT_BAD_DATA = 6
};

enum {
  CLI_PROGRESS_AUTO = 0,
  CLI_PROGRESS_BAR = 1,
  CLI_PROGRESS_LOG = 2,
  CLI_PROGRESS_NONE = 3
};

typedef struct cli_setting {
  const char *name; /* dotted; points into `text` */
  const char *value;
  char *text;
} cli_setting;

/* What was typed. */
typedef struct cli_args {
  const struct cli_command *command; /* NULL: none */
  const char *operand;               /* FILE or NAME; NULL: none */
  bool json, help, new_deployment;
  bool log_json;
  int32_t log_level; /* WEIR_LOG_* */
  int32_t progress;  /* CLI_PROGRESS_* */
  cli_setting *settings;
  size_t n_settings;
  const char *config, *count, *only; /* of `conform`; NULL: not given */
  bool connect;                      /* of `check` */
  bool deep;                         /* of `verify` */
  bool dry_run;                      /* of `clean` and `adopt` */
  bool all;                          /* of `clean` */
  bool set_aside;                    /* of `adopt` */
  const char *older_than;            /* of `clean`; NULL: not given */
  /* of `resolve`; NULL: not given */
  const char *sink, *attempt, *as, *why, *confirm;
} cli_args;

/* A flag: parsed, explained and completed from one table. */
typedef struct cli_flag {
  const char *name;
  int32_t id;
  const char *values;     /* NULL: takes none; "": any; else one of these, "a|b" */
  const char *value_name; /* what help calls the value; NULL: `values` */
  const char *command;    /* NULL: every command; or some, "a|b" */
  const char *text;
} cli_flag;

typedef struct cli_command {
  const char *name;
  const char *operand; /* "FILE", "[NAME]"; "" takes none */
  const char *text;    /* one line */
  int (*run)(const cli_args *args);
} cli_command;

/* ---- main.c, args.c, help.c ------------------------------------------------------------------ */

extern const cli_command cli_commands[]; /* these end with a NULL name */
extern const cli_flag cli_flags[];

/* Fills *out from argv. WEIR_E_INVALID_CONFIG names what is wrong and what is nearest to it; *out holds
 * what was read before, so that the error can be told in the form asked for. */
weir_status cli_args_parse(int argc, char **argv, cli_args *out, weir_error *err);
void cli_args_done(cli_args *args);
/* The command of that name; WEIR_E_INVALID_CONFIG names the nearest one. */
weir_status cli_find_command(const char *name, const cli_command **out, weir_error *err);
/* "there is no WHAT 'given'; did you mean 'x'? `lister` lists them". `names` ends with NULL, or is NULL. */
weir_status cli_unknown(const char *what, const char *given, const char *const *names,
                        const char *lister, weir_error *err);

/* Whether that is a flag of the command's own. */
bool cli_flag_is_of(const cli_flag *flag, const char *command);

int cli_help(const cli_args *args);
void cli_help_print(const cli_command *command); /* NULL: of the whole command */

typedef struct cli_sample {
  const char *name;
  const char *yaml;
} cli_sample;

extern const cli_sample cli_samples[]; /* made from cli/samples/; ends with a NULL name */

/* ---- report.c -------------------------------------------------------------------------------- */

/* Sets the form of logs and errors for the process. */
void cli_report_init(const cli_args *args);
/* One line on stderr. Any thread. */
void cli_log(void *ctx, int32_t level, const char *where, const char *text);
/* As cli_log, unless --log-level leaves it out. */
void cli_logf(int32_t level, const char *where, const char *fmt, ...) WEIR_PRINTF(3, 4);
/* The live line below all others on a terminal, drawn anew; "" takes it away. */
void cli_bar(const char *text);
/* The host options that every pipeline is opened with. */
weir_host_options cli_host(const cli_args *args);
/* The exit status that an error stands for. `opening`: nothing was read or written yet. */
int cli_exit_status(const weir_error *err, bool opening);
/* Tells the error and what to do next, on stderr, and as a document on stdout with --json unless
 * `document` was printed already. Returns `status`. */
int cli_fail(const cli_args *args, const weir_error *err, int status, bool document);
/* Flushes stdout; a result that could not be written is a failure. */
int cli_finish(const cli_args *args, int status);

/* ---- documents.c ----------------------------------------------------------------------------- */

/* With --json the document as it is and a line break; else what `print` makes of it. */
struct yyjson_val;
void cli_show_document(const cli_args *args, const weir_bytes *json,
                       void (*print)(struct yyjson_val *root));
/* What documents hold: "" and 0 where there is no text, no number. */
const char *cli_text(struct yyjson_val *value);
const char *cli_text_of(struct yyjson_val *object, const char *key);
unsigned long long cli_number_of(struct yyjson_val *object, const char *key);
/* What people have resolved, a line each; nothing where there is nothing. */
void cli_print_resolved(struct yyjson_val *root);
/* Prints a document that was built here, and frees it; false without memory. */
struct yyjson_mut_doc;
bool cli_print_json(struct yyjson_mut_doc *doc);
/* "1 epoch", "2 epochs" */
const char *cli_format_count(uint64_t n, const char *one, const char *many, char buf[48]);
/* Size for people: "1.2 GB". */
void cli_format_bytes(double bytes, char *buf, size_t size);

/* What the progress line and the summary need of a pipeline's stats. */
typedef struct cli_run_stats {
  uint64_t rows, bytes, epochs, letters;
  double seconds;
  char sinks[512];  /* "; lake at 12, log at 11", or "" */
  char *run_json;   /* the document of `run --json`; free() */
  char *state_json; /* the document of `status --json`; free() */
} cli_run_stats;

weir_status cli_run_stats_read(weir_pipeline *pipeline, cli_run_stats *out,
                               weir_error *err);
void cli_run_stats_done(cli_run_stats *stats);
/* ", 3 dead letters", or "" */
const char *cli_format_letters(uint64_t n, char buf[48]);

/* ---- the commands ---------------------------------------------------------------------------- */

/* Reads the pipeline file (or standard input for "-") and applies --set. */
weir_status cli_config_open(const cli_args *args, weir_config **out, weir_error *err);

int cli_run(const cli_args *args);
int cli_recover(const cli_args *args);
int cli_check(const cli_args *args);
int cli_status(const cli_args *args);
int cli_verify(const cli_args *args);
int cli_clean(const cli_args *args);
int cli_resolve(const cli_args *args);
int cli_adopt(const cli_args *args);
int cli_connectors(const cli_args *args);
int cli_init(const cli_args *args);
int cli_conform(const cli_args *args);
int cli_version(const cli_args *args);

/* ---- signals.c ------------------------------------------------------------------------------- */

enum { CLI_SIGNAL_STOP = 1, CLI_SIGNAL_CHECKPOINT = 2 };

/* Handlers for SIGTERM, SIGINT and SIGUSR1; SIGPIPE is ignored. A second SIGTERM or SIGINT ends the
 * process in the handler, with EXIT_UNFINISHED, whatever it is waiting for. */
weir_status cli_signals_install(weir_error *err);
/* Around what blocks before there is a pipeline to drain: a first signal ends the process, with the same
 * status, once it has gone on for `timeout_ns` more. 0: over. */
void cli_signals_opening(int64_t timeout_ns);
int cli_signals_fd(void);          /* readable when cli_signals_take has something */
uint32_t cli_signals_take(void);   /* CLI_SIGNAL_* since the last call */
const char *cli_signal_name(void); /* of the one that asked to stop */

#endif
