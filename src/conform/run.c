/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children: forked, timed, and, when asked, watched call by call and killed at one of them.
 *
 * Watching is ptrace: it needs no help from the sink, and the kill comes before the call has happened and
 * after the one before it has. `memory->inside` tells a hook's calls from the kit's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include "conform/conform.h"

enum { EXIT_WRONG = 10, EXIT_REFUSED = 11 };

/* Ends the process when no step follows in time: SIGALRM's default. 0: never. */
static void alarm_in(int64_t ns) {
  struct itimerval in = {
      .it_value = {.tv_sec = ns / BASE_NS_PER_S, .tv_usec = ns % BASE_NS_PER_S / 1000}};
  setitimer(ITIMER_REAL, &in, NULL);
}

void conform_step(conform_rig *rig, const char *hook) {
  atomic_store(&rig->memory->hook, hook);
  if (atomic_fetch_add(&rig->memory->step, 1) + 1 == rig->plan.kill_step) {
    kill(getpid(), SIGKILL);
    pause();
  }
  alarm_in(rig->c->patience_ns);
  atomic_store(&rig->memory->inside, true);
}

void conform_step_done(conform_rig *rig) {
  atomic_store(&rig->memory->inside, false);
}

void conform_wrong(conform_rig *rig, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(rig->memory->reason, sizeof(rig->memory->reason), fmt, args);
  va_end(args);
  rig->memory->failed = true;
  _exit(EXIT_WRONG);
}

void conform_must(conform_rig *rig, weir_status status, const char *hook,
                  const weir_error *err) {
  if (status)
    conform_wrong(rig, "%s: %s: %s", hook, weir_status_name(status), err->message);
}

void conform_pause(conform_rig *rig) {
  atomic_store(&rig->memory->hook, "a pause");
  alarm_in(0);
  raise(SIGSTOP);
  alarm_in(rig->c->patience_ns);
}

/* ---- in the child ------------------------------------------------------------------------------ */

static _Noreturn void child(conform *c, const conform_plan *plan, conform_script script) {
  static conform_rig rig; /* zeroed in each child */
  sigset_t none;
  sigemptyset(&none);
  signal(SIGALRM, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0)
    dup2(null, STDOUT_FILENO); /* a sink may write there; the kit's is for its caller */
  if (null >= 0) close(null);
  rig.c = c;
  rig.plan = *plan;
  rig.memory = c->memory;
  rig.store = &c->memory->store;
  connector_call_arm(&rig.call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  alarm_in(c->patience_ns);
  if (plan->watch || plan->kill_call) {
    if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(EXIT_REFUSED);
    raise(SIGSTOP);
  }
  script(&rig);
  _exit(0);
}

/* ---- in the kit -------------------------------------------------------------------------------- */

/* What an ended process says. */
static conform_end judge(conform *c, conform_child *child_, int status) {
  const char *hook = atomic_load(&c->memory->hook);
  bool planned = child_->plan.kill_step || child_->plan.kill_call;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return CONFORM_ENDED;
  if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REFUSED) {
    child_->refused = true;
    return CONFORM_ENDED;
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && planned)
    return CONFORM_KILLED;
  if (c->memory->failed) {
    conform_fails(c, "%s", c->memory->reason);
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    conform_fails(c, "%s has not come back after %.1f s", hook,
                  (double)c->patience_ns / (double)BASE_NS_PER_S);
  } else if (WIFSIGNALED(status)) {
    conform_fails(c, "%s ended the process with signal %d (%s)", hook, WTERMSIG(status),
                  strsignal(WTERMSIG(status)));
  } else {
    conform_fails(c, "%s ended the process with exit status %d", hook,
                  WEXITSTATUS(status));
  }
  return CONFORM_WRONG;
}

static conform_end wait_plain(conform *c, conform_child *child_) {
  int status = 0;
  while (waitpid(child_->pid, &status, WUNTRACED) < 0) {
    if (errno == EINTR) continue;
    conform_fails(c, "waitpid: %s", strerror(errno));
    return CONFORM_WRONG;
  }
  return WIFSTOPPED(status) ? CONFORM_PAUSED : judge(c, child_, status);
}

/* A stop at the entry of a system call. True: the child is to be killed here. */
static bool at_call(conform *c, conform_child *child_, pid_t thread) {
  struct __ptrace_syscall_info info = {0};
  if (!atomic_load(&c->memory->inside)) return false;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0 ||
      info.op != PTRACE_SYSCALL_INFO_ENTRY)
    return false;
  const conform_call *call =
      conform_find_call((long)info.entry.nr, (const uint64_t *)info.entry.args);
  if (!call) return false;
  if (call->opens && !child_->opened[0])
    snprintf(child_->opened, sizeof(child_->opened), "%s in %s", call->name,
             atomic_load(&c->memory->hook));
  if (call->changes) child_->calls++;
  return call->changes && child_->calls == child_->plan.kill_call;
}

/* Every thread of the child stops at every call; what is waited for is the end of the first one. */
static conform_end wait_watched(conform *c, conform_child *child_) {
  int status = 0,
      options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE;
  bool begun = false;
  for (;;) {
    pid_t thread = waitpid(begun ? -1 : child_->pid, &status, __WALL);
    if (thread < 0 && errno == EINTR) continue;
    if (thread < 0) {
      conform_fails(c, "waitpid: %s", strerror(errno));
      return CONFORM_WRONG;
    }
    if (!WIFSTOPPED(status)) {
      if (thread == child_->pid) return judge(c, child_, status);
      continue;
    }
    int signal_ = WSTOPSIG(status);
    if (!begun && ptrace(PTRACE_SETOPTIONS, thread, 0, options)) child_->refused = true;
    if (signal_ == (SIGTRAP | 0x80)) {
      if (at_call(c, child_, thread)) kill(child_->pid, SIGKILL);
      signal_ = 0;
    } else if (!begun || signal_ == SIGTRAP || signal_ == SIGSTOP) {
      signal_ = 0; /* our own, and new threads' first */
    }
    begun = true;
    /* One that is just being killed is no longer there: waitpid tells. */
    ptrace(PTRACE_SYSCALL, thread, 0, signal_);
  }
}

conform_end conform_run(conform *c, const conform_plan *plan, conform_script script,
                        conform_child *out) {
  memset(out, 0, sizeof(*out));
  out->plan = *plan;
  c->memory->failed = false;
  atomic_store(&c->memory->step, 0);
  atomic_store(&c->memory->inside, false);
  atomic_store(&c->memory->hook, "the start");
  fflush(NULL); /* or the child would write it too */
  out->pid = fork();
  if (out->pid == 0) child(c, plan, script);
  if (out->pid < 0) {
    weir_error_errno(&c->error, errno, "cannot start a process");
    return CONFORM_WRONG;
  }
  return plan->watch || plan->kill_call ? wait_watched(c, out) : wait_plain(c, out);
}

conform_end conform_resume(conform *c, conform_child *child_) {
  c->memory->failed = false;
  kill(child_->pid, SIGCONT);
  return wait_plain(c, child_);
}

bool conform_through(conform *c, conform_script script) {
  conform_child child_;
  return conform_run(c, &(conform_plan){0}, script, &child_) == CONFORM_ENDED;
}
