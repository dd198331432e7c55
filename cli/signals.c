/* SPDX-License-Identifier: Apache-2.0 */
/* Signals through a pipe of their own. Handlers, not signalfd: a second SIGTERM has to end the process
 * also while the main thread is inside a blocking call of the library. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static int wake[2] = {-1, -1};
static atomic_uint pending;
static atomic_int stop_signal; /* the first one that asked to stop */
static atomic_uint
    open_seconds; /* how long opening may go on after that; 0: nothing is being opened */

static void stop_at_once(const char *text, size_t size) {
  ssize_t ignored = write(STDERR_FILENO, text, size);
  (void)ignored;
  _exit(EXIT_UNFINISHED);
}

static void on_alarm(int signal) {
  static const char text[] =
      "weir: stopped by a signal: what an earlier run left could not be settled within "
      "checkpoint.timeout; run it again to go on: nothing is lost\n";
  (void)signal;
  if (atomic_load(&open_seconds)) stop_at_once(text, sizeof(text) - 1);
}

static void on_signal(int signal) {
  int saved = errno;
  int none = 0;
  if (signal == SIGUSR1) {
    atomic_fetch_or(&pending, CLI_SIGNAL_CHECKPOINT);
  } else if (atomic_compare_exchange_strong(&stop_signal, &none, signal)) {
    atomic_fetch_or(&pending, CLI_SIGNAL_STOP);
    unsigned seconds = atomic_load(&open_seconds);
    if (seconds) alarm(seconds);
  } else {
    static const char text[] =
        "weir: stopped at once by a second signal; run it again to go on: nothing is "
        "lost\n";
    stop_at_once(text, sizeof(text) - 1);
  }
  ssize_t ignored = write(wake[1], "", 1); /* full: it is readable anyway */
  (void)ignored;
  errno = saved;
}

weir_status cli_signals_install(weir_error *err) {
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK))
    return weir_error_errno(err, errno, "cannot make a pipe");
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, NULL);
  return WEIR_OK;
}

/* The library blocks while it opens a pipeline, for as long as a target refuses what an earlier run has
 * decided. Nothing was read yet then, so ending the process loses nothing. */
void cli_signals_opening(int64_t timeout_ns) {
  int64_t seconds = (timeout_ns + INT64_C(999999999)) / INT64_C(1000000000);
  atomic_store(&open_seconds, (unsigned)(seconds > INT_MAX ? INT_MAX : seconds));
  if (!seconds) {
    alarm(0);
  } else if (atomic_load(&stop_signal)) {
    alarm((unsigned)seconds); /* it came before */
  }
}

int cli_signals_fd(void) {
  return wake[0];
}

uint32_t cli_signals_take(void) {
  char bytes[64];
  while (read(wake[0], bytes, sizeof(bytes)) > 0) continue;
  return atomic_exchange(&pending, 0);
}

const char *cli_signal_name(void) {
  return atomic_load(&stop_signal) == SIGINT ? "SIGINT" : "SIGTERM";
}
