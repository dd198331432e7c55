/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

static int64_t clock_read(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * BASE_NS_PER_S + now.tv_nsec;
}

int64_t base_clock_mono(void) {
  return clock_read(CLOCK_MONOTONIC);
}

int64_t base_clock_wall(void) {
  return clock_read(CLOCK_REALTIME);
}

int64_t base_deadline(int64_t span_ns) {
  int64_t deadline = 0;
  if (span_ns < 0) span_ns = 0;
  if (__builtin_add_overflow(base_clock_mono(), span_ns, &deadline)) return BASE_FOREVER;
  return deadline;
}

static struct timespec timespec_of(int64_t ns) {
  return (struct timespec){.tv_sec = ns / BASE_NS_PER_S, .tv_nsec = ns % BASE_NS_PER_S};
}

void base_sleep(int64_t span_ns) {
  struct timespec until = timespec_of(base_deadline(span_ns));
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
}

weir_status base_thread_start(pthread_t *out, const char *name, void *(*run)(void *),
                              void *arg, weir_error *err) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  /* A new thread inherits the mask, so there is no moment in which it could take a
   * signal. */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&thread, NULL, run, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) return weir_error_errno(err, failed, "cannot start the thread '%s'", name);
  char kept[16] = {0};
  strncpy(kept, name, sizeof(kept) - 1);
  pthread_setname_np(thread, kept);
  *out = thread;
  return WEIR_OK;
}

weir_status base_mutex_init(pthread_mutex_t *mutex, weir_error *err) {
  int failed = pthread_mutex_init(mutex, NULL);
  if (failed) return weir_error_errno(err, failed, "cannot make a mutex");
  return WEIR_OK;
}

weir_status base_cond_init(pthread_cond_t *cond, weir_error *err) {
  pthread_condattr_t attributes;
  int failed = pthread_condattr_init(&attributes);
  if (!failed) {
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!failed) failed = pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  if (failed) return weir_error_errno(err, failed, "cannot make a condition variable");
  return WEIR_OK;
}

bool base_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
                          int64_t deadline_ns) {
  if (deadline_ns == BASE_FOREVER) {
    pthread_cond_wait(cond, mutex);
    return true;
  }
  struct timespec until = timespec_of(deadline_ns);
  return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}
