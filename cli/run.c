/* SPDX-License-Identifier: Apache-2.0 */
/* run and recover: open, wait for events and signals, tell how it went. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define NS_PER_S INT64_C(1000000000)

static const int64_t FIRST_LINE_NS = NS_PER_S, LINE_NS = 5 * NS_PER_S,
                     BAR_NS = NS_PER_S / 5;
enum { STANDBY_MS = 1000 };

typedef struct session {
  const cli_args *args;
  weir_pipeline *pipeline;
  char name[72];       /* of the pipeline's file, for progress lines */
  int64_t timeout_ns;  /* checkpoint.timeout */
  int64_t drain_until; /* monotonic; 0: nobody asked to stop */
  int64_t next_line;   /* when the next progress line is due; 0: none */
  int64_t last_commit; /* monotonic; 0: none yet */
  uint64_t last_rows, last_bytes;
  int64_t last_line;
  bool ended;
  bool bar; /* progress as a live line */
} session;

static int64_t now_ns(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* ---- progress -------------------------------------------------------------------------------- */

/* "12345 rows, 3 dead letters, 1000 rows/s, 1.2 MB/s, 12 epochs, last commit 0.4 s ago; lake at 12" */
static void progress_text(const session *s, const cli_run_stats *stats, int64_t now,
                          char *buf, size_t size) {
  char speed[32], rows[48], letters[48], epochs[48], since[40] = "no commit yet";
  double seconds = (double)(now - s->last_line) / NS_PER_S;
  if (seconds <= 0) seconds = 1;
  cli_format_bytes((double)(stats->bytes - s->last_bytes) / seconds, speed,
                   sizeof(speed));
  if (s->last_commit) {
    snprintf(since, sizeof(since), "last commit %.1f s ago",
             (double)(now - s->last_commit) / NS_PER_S);
  }
  snprintf(buf, size, "%s%s, %.0f rows/s, %s/s, %s, %s%s",
           cli_format_count(stats->rows, "row", "rows", rows),
           cli_format_letters(stats->letters, letters),
           (double)(stats->rows - s->last_rows) / seconds, speed,
           cli_format_count(stats->epochs, "epoch", "epochs", epochs), since,
           stats->sinks);
}

static void show_progress(session *s, int64_t now) {
  cli_run_stats stats = {0};
  char text[700], line[800];
  s->next_line = now + (s->bar ? BAR_NS : LINE_NS);
  if (cli_run_stats_read(s->pipeline, &stats, NULL)) return;
  progress_text(s, &stats, now, text, sizeof(text));
  if (s->bar) {
    snprintf(line, sizeof(line), "%s: %s", s->name, text);
    cli_bar(line);
  } else {
    cli_logf(WEIR_LOG_INFO, s->name, "%s", text);
  }
  /* A speed over the last second or more: the bar comes too often to take its own span. */
  if (!s->bar || now - s->last_line >= NS_PER_S) {
    s->last_rows = stats.rows;
    s->last_bytes = stats.bytes;
    s->last_line = now;
  }
  cli_run_stats_done(&stats);
}

/* ---- events ---------------------------------------------------------------------------------- */

static weir_status take_signals(session *s, weir_error *err) {
  uint32_t signals = cli_signals_take();
  if (signals & CLI_SIGNAL_STOP) {
    s->drain_until = now_ns() + s->timeout_ns;
    cli_logf(WEIR_LOG_INFO, s->name,
             "%s: one last checkpoint, at most %.0f s; a second signal stops at once, "
             "which is safe",
             cli_signal_name(), (double)s->timeout_ns / NS_PER_S);
    weir_status status = weir_pipeline_drain(s->pipeline, err);
    if (status) return status;
  }
  if (signals & CLI_SIGNAL_CHECKPOINT) {
    uint64_t id = 0;
    weir_error why = {0};
    if (weir_pipeline_checkpoint(s->pipeline, &id, &why)) {
      cli_logf(WEIR_LOG_WARN, s->name, "SIGUSR1: no checkpoint: %s", why.message);
    } else {
      cli_logf(WEIR_LOG_INFO, s->name, "SIGUSR1: checkpoint %llu",
               (unsigned long long)id);
    }
  }
  return WEIR_OK;
}

/* Takes every event that waits. The error of a FAILED one becomes the result. */
static weir_status take_events(session *s, weir_error *err) {
  for (;;) {
    weir_event event = {.struct_size = sizeof(event)};
    weir_status status = weir_pipeline_next(s->pipeline, &event, 0, err);
    if (status) return status;
    switch (event.type) {
      case WEIR_EVENT_NONE:
        return WEIR_OK;
      case WEIR_EVENT_COMMITTED:
        s->last_commit = now_ns();
        break;
      case WEIR_EVENT_ENDED:
        s->ended = true;
        return WEIR_OK;
      case WEIR_EVENT_FAILED:
        *err = event.error;
        return event.error.code;
      default: /* of push inputs, which this host has none of */
        break;
    }
  }
}

static int wait_ms(const session *s, int64_t now) {
  int64_t until = now + NS_PER_S;
  if (s->next_line && s->next_line < until) until = s->next_line;
  if (s->drain_until && s->drain_until < until) until = s->drain_until;
  return until <= now ? 0 : (int)((until - now) / 1000000 + 1);
}

/* Until ENDED (WEIR_OK), a failure, or the end of the time for the last checkpoint. */
static weir_status wait_for_end(session *s, weir_error *err) {
  struct pollfd fds[2] = {{.fd = cli_signals_fd(), .events = POLLIN},
                          {.fd = weir_pipeline_fd(s->pipeline), .events = POLLIN}};
  for (;;) {
    weir_status status = take_signals(s, err);
    if (!status) status = take_events(s, err);
    if (status || s->ended) return status;
    int64_t now = now_ns();
    if (s->drain_until && now >= s->drain_until) {
      return weir_error_set(
          err, WEIR_E_CANCELLED, WEIR_ERR_IN_DOUBT,
          "the last checkpoint was not committed within checkpoint.timeout (%.0f s); "
          "see the log for what held it",
          (double)s->timeout_ns / NS_PER_S);
    }
    if (s->next_line && now >= s->next_line) show_progress(s, now);
    if (poll(fds, 2, wait_ms(s, now)) < 0 && errno != EINTR) {
      return weir_error_errno(err, errno, "cannot wait for events");
    }
  }
}

/* ---- the end --------------------------------------------------------------------------------- */

static void print_summary(const session *s, const cli_run_stats *stats, bool recover,
                          int status) {
  char bytes[32], rows[48], letters[48], epochs[48];
  const char *how = s->drain_until ? "stopped as asked; what was read is committed"
                                   : "all delivered and committed";
  if (status || s->args->progress == CLI_PROGRESS_NONE) return;
  cli_format_bytes((double)stats->bytes, bytes, sizeof(bytes));
  if (recover) {
    cli_logf(WEIR_LOG_INFO, s->name, "settled%s", stats->sinks);
    return;
  }
  cli_logf(WEIR_LOG_INFO, s->name, "%s: %s%s, %s in %.1f s, %s%s", how,
           cli_format_count(stats->rows, "row", "rows", rows),
           cli_format_letters(stats->letters, letters), bytes, stats->seconds,
           cli_format_count(stats->epochs, "epoch", "epochs", epochs), stats->sinks);
}

/* Closes the pipeline and tells the result; frees it in any case. */
static int finish(session *s, bool recover, weir_status result, weir_error *err) {
  cli_run_stats stats = {0};
  weir_error unread = {0}, closing = {0};
  weir_status read = cli_run_stats_read(s->pipeline, &stats, &unread);
  weir_status closed = weir_pipeline_close(s->pipeline, 0, &closing);
  if (!result && closed) {
    result = closed;
    *err = closing;
  }
  if (!result && read) {
    result = read;
    *err = unread;
  }
  int status = result ? cli_exit_status(err, false) : EXIT_DONE;
  if (result && s->drain_until && status == EXIT_FAILED) status = EXIT_UNFINISHED;
  if (result) {
    cli_fail(s->args, err, status, false);
  } else if (s->args->json) {
    puts(recover ? stats.state_json : stats.run_json);
  }
  print_summary(s, &stats, recover, status);
  cli_run_stats_done(&stats);
  return status;
}

static weir_status check_host(const cli_args *args, const weir_config *config,
                              weir_error *err) {
  if (args->json && weir_config_uses(config, "sinks", "stdout")) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "--json and a sink of type stdout would put two documents on standard output; "
        "leave one of them out");
  }
  if (weir_config_uses(config, "sources", "push")) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "a source of type push takes what a program pushes (weir/pipeline.h); `weir run` "
        "has nothing to push, so give the source another type");
  }
  return WEIR_OK;
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* Whether a signal asked to stop within that time. */
static bool wait_for_stop(int ms) {
  struct pollfd fd = {.fd = cli_signals_fd(), .events = POLLIN};
  (void)poll(&fd, 1, ms);
  return cli_signals_take() & CLI_SIGNAL_STOP;
}

/* A live instance holds the lease and may lose it: `run` stands by until then. */
static bool stands_by(const weir_error *err, uint32_t flags) {
  return err->code == WEIR_E_FENCED && err->flags & WEIR_ERR_RETRIABLE &&
         !(flags & (WEIR_OPEN_RECOVER_ONLY | WEIR_OPEN_NEW_DEPLOYMENT));
}

static weir_status open_pipeline(session *s, const weir_config *config, uint32_t flags,
                                 weir_error *err) {
  bool told = false;
  for (;;) {
    weir_host_options host = cli_host(s->args);
    weir_error why = {0};
    cli_signals_opening(s->timeout_ns);
    weir_status status = weir_pipeline_open(config, &host, flags, &s->pipeline, &why);
    cli_signals_opening(0);
    if (!status && told)
      cli_logf(WEIR_LOG_INFO, s->name, "the lease is free: this instance takes over");
    if (status && stands_by(&why, flags)) {
      if (!told)
        cli_logf(WEIR_LOG_INFO, s->name, "standing by, to take over: %s", why.message);
      told = true;
      if (!wait_for_stop(STANDBY_MS)) continue;
      status = weir_error_set(
          &why, WEIR_E_CANCELLED, 0,
          "%s: stopped while standing by: this instance has delivered nothing",
          cli_signal_name());
    }
    if (status) *err = why;
    return status;
  }
}

/* A live line needs a terminal that can erase one, and to itself what it is drawn on. */
static bool wants_bar(const cli_args *args) {
  const char *term = getenv("TERM");
  if (args->progress != CLI_PROGRESS_AUTO) return args->progress == CLI_PROGRESS_BAR;
  return isatty(STDERR_FILENO) && !args->log_json && term && *term &&
         strcmp(term, "dumb") != 0;
}

static int run(const cli_args *args, uint32_t flags) {
  bool recover = flags & WEIR_OPEN_RECOVER_ONLY;
  session s = {.args = args};
  weir_config *config = NULL;
  weir_error err = {0};
  const char *slash = strrchr(args->operand, '/');
  snprintf(s.name, sizeof(s.name), "%.70s",
           strcmp(args->operand, "-") == 0 ? "standard input"
           : slash                         ? slash + 1
                                           : args->operand);
  weir_status status = cli_signals_install(&err);
  if (!status) status = cli_config_open(args, &config, &err);
  if (!status && !recover) status = check_host(args, config, &err);
  if (!status) status = weir_config_checkpoint_timeout(config, &s.timeout_ns, &err);
  if (!status) status = open_pipeline(&s, config, flags, &err);
  weir_config_free(config);
  if (status) return cli_fail(args, &err, cli_exit_status(&err, true), false);
  s.last_line = now_ns();
  s.bar = wants_bar(args);
  if (args->progress != CLI_PROGRESS_NONE)
    s.next_line = s.last_line + (s.bar ? BAR_NS : FIRST_LINE_NS);
  status = wait_for_end(&s, &err);
  if (s.bar) cli_bar("");
  int code = finish(&s, recover, status, &err);
  if (code == EXIT_UNFINISHED) {
    /* A thread may have been left behind in a connector: exit() would take libraries down under it. */
    fflush(NULL);
    _exit(code);
  }
  return code;
}

int cli_run(const cli_args *args) {
  return run(args, args->new_deployment ? WEIR_OPEN_NEW_DEPLOYMENT : 0);
}

int cli_recover(const cli_args *args) {
  return run(args, WEIR_OPEN_RECOVER_ONLY);
}
