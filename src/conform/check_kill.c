/* SPDX-License-Identifier: Apache-2.0 */
/* Killed at every step and within; calls that are over before they begin. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conform/conform.h"

enum { KILLS_INSIDE = 40 }; /* at most, spread over all calls */

static void session(conform_rig *rig) {
  size_t writers = rig->c->memory->contract.topology == WEIR_MULTI_WRITER ? 2 : 1;
  conform_start(rig, writers);
  conform_recover(rig);
  conform_epoch(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  conform_prepare(rig, n);
  conform_rollback(rig, n);
  conform_decided(rig);
  n = conform_begin(rig);
  conform_fill(rig, n, 1);
  conform_publish(rig);
  conform_prepare(rig, n);
  conform_decide(rig, n);
  conform_publish(rig);
  conform_stop(rig);
}

/* Dies with an attempt decided and the next one half written. */
static void leave_work(conform_rig *rig) {
  conform_open(rig);
  conform_decided(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
}

/* One victim and its successor. True: the victim was killed. */
static bool kill_once(conform *c, const conform_plan *plan, conform_script before,
                      conform_script victim) {
  conform_child child;
  char when[160], hook[64];
  if (before && !conform_through(c, before)) return false;
  conform_end end = conform_run(c, plan, victim, &child);
  if (end != CONFORM_KILLED) return false;
  snprintf(hook, sizeof(hook), "%s", atomic_load(&c->memory->hook));
  if (plan->kill_step) {
    snprintf(when, sizeof(when), "after a kill before step %llu, %s",
             (unsigned long long)plan->kill_step, hook);
  } else {
    snprintf(when, sizeof(when), "after a kill at a system call within %s", hook);
  }
  if (!conform_through(c, conform_only_recover)) {
    size_t n = strlen(c->reason);
    snprintf(c->reason + n, sizeof(c->reason) - n, "; %s", when);
    return false;
  }
  return conform_count_is(c, conform_decided_rows(c), when);
}

/* The store has room for so many attempts. */
static bool renew(conform *c) {
  return c->memory->store.n + 16 < CONFORM_ATTEMPTS || conform_new_world(c);
}

static void kill_between(conform *c, conform_script before, conform_script victim) {
  for (uint64_t step = 1; renew(c); step++) {
    if (!kill_once(c, &(conform_plan){.kill_step = step}, before, victim)) break;
  }
}

static void kill_inside(conform *c, conform_script before, conform_script victim) {
  conform_child child;
  if (before && !conform_through(c, before)) return;
  if (conform_run(c, &(conform_plan){.watch = true}, victim, &child) != CONFORM_ENDED)
    return;
  if (child.refused) {
    conform_unshown(c, "this system does not let a process be watched (ptrace)");
    return;
  }
  uint64_t calls = child.calls, stride = calls / KILLS_INSIDE + 1;
  for (uint64_t n = 1; n <= calls && renew(c); n += stride) {
    conform_plan plan = {.kill_call = n};
    if (!kill_once(c, &plan, before, victim) && c->outcome == WEIR_CONFORM_FAILED) return;
  }
}

void conform_check_kill_between(conform *c) {
  kill_between(c, NULL, session);
}

void conform_check_kill_inside(conform *c) {
  kill_inside(c, NULL, session);
}

void conform_check_kill_recovery(conform *c) {
  kill_between(c, leave_work, conform_only_recover);
  if (c->outcome != WEIR_CONFORM_FAILED) kill_inside(c, leave_work, conform_only_recover);
}

/* ---- at least once ----------------------------------------------------------------------------- */

static void durable(conform_rig *rig) {
  weir_bytes none = {0};
  weir_error err = {0};
  conform_attempt *a = conform_attempt_of(rig, 1);
  conform_start(rig, 1);
  conform_write(rig, 0, rig->store->next_row, CONFORM_ROWS);
  conform_step(rig, "pre_commit");
  conform_must(rig, connector_sink_pre_commit(rig->sinks[0], &rig->call, 1, &none, &err),
               "pre_commit", &err);
  conform_step_done(rig);
  *a = (conform_attempt){.state = CONFORM_DECIDED, .rows = CONFORM_ROWS};
  rig->store->n = 1;
  kill(getpid(), SIGKILL);
}

void conform_check_durable(conform *c) {
  conform_child child;
  if (conform_run(c, &(conform_plan){.kill_step = UINT64_MAX}, durable, &child) ==
      CONFORM_KILLED)
    conform_count_is(c, CONFORM_ROWS, "after pre_commit and a kill");
}

/* ---- calls that are over ----------------------------------------------------------------------- */

enum {
  LATE_OPEN,
  LATE_INTENT,
  LATE_BEGIN,
  LATE_WRITE,
  LATE_PRE_COMMIT,
  LATE_ROLLBACK,
  LATE_OBSERVE,
  LATE_TAKE_OVER,
  LATE_COMMIT,
  LATE_FLUSH,
  LATE_CLOSE,
  LATES
};

static weir_status late_write(conform_rig *rig, weir_error *err) {
  weir_batch *batch = NULL;
  uint64_t taken = 0;
  const conform_row row = {rig->store->next_row, 'U'};
  conform_must(rig,
               conform_rows(&rig->c->key, connector_sink_schema(rig->sinks[0]), &row, 1,
                            &batch, err),
               "the kit's rows", err);
  weir_status status = conform_try_write(rig, 0, batch, &taken, err);
  weir_batch_unref(batch);
  return status;
}

static weir_status call_late(conform_rig *rig, int which, uint64_t n, weir_error *err) {
  connector_sink *sink = rig->sinks[0];
  weir_cursor cursor;
  weir_bytes bytes = {0};
  conform_batch batch;
  weir_status status = WEIR_OK;
  connector_call_arm(&rig->call, base_clock_mono() - 1, base_clock_mono() - 1);
  if (which == LATE_WRITE) return late_write(rig, err);
#define LATE(hook, call)   \
  conform_step(rig, hook); \
  status = (call);         \
  break
  switch (which) {
    case LATE_OPEN:
      LATE("open", connector_sink_open(sink, &rig->call, &rig->binding, err));
    case LATE_INTENT:
      LATE("checkpoint_artifact_intent",
           connector_sink_intent(sink, &rig->call, n + 1, &bytes, err));
    case LATE_BEGIN:
      LATE("begin_epoch", connector_sink_begin_epoch(sink, &rig->call, n, err));
    case LATE_PRE_COMMIT:
      LATE("pre_commit",
           connector_sink_pre_commit(sink, &rig->call, n ? n : 1, &bytes, err));
    case LATE_ROLLBACK:
      LATE("rollback_epoch", connector_sink_rollback_epoch(sink, &rig->call, n, err));
    case LATE_OBSERVE:
      LATE("observe_cursor",
           connector_sink_observe_cursor(sink, &rig->call, &cursor, err));
    case LATE_TAKE_OVER:
      LATE("take_over", connector_sink_take_over(sink, &rig->call, err));
    case LATE_COMMIT:
      conform_make_batch(rig, n, n, &batch);
      LATE("commit_aggregated",
           connector_sink_commit(sink, &rig->call, &batch.batch, &cursor, err));
    case LATE_FLUSH:
      LATE("flush", connector_sink_flush(sink, &rig->call, err));
    default:
      LATE("close", connector_sink_close(sink, &rig->call, err));
  }
#undef LATE
  conform_step_done(rig);
  return status;
}

static int late; /* which hook */

/* Up to the hook, which finds its deadline passed. Then the process ends: what a runtime would do next
 * depends on the answer, and any is allowed. */
static void late_hook(conform_rig *rig) {
  bool commits = rig->c->memory->contract.consistency == WEIR_COMMITTABLE;
  weir_error err = {0};
  uint64_t n = 0;
  if (late == LATE_OPEN) {
    rig->token = ++rig->store->token;
    rig->sinks[rig->n++] = conform_create(rig, 1);
    conform_must(rig, conform_prepare_target(rig, &err), "prepare_schema", &err);
  } else {
    conform_start(rig, 1);
    if (commits) conform_recover(rig);
  }
  if (commits && late == LATE_BEGIN) {
    conform_begin(rig); /* for its intent */
    conform_rollback(rig, rig->store->n);
    n = rig->store->n + 1;
  } else if (commits && late > LATE_BEGIN) {
    n = conform_begin(rig);
    conform_fill(rig, n, 0);
    if (late == LATE_COMMIT) {
      conform_prepare(rig, n);
      conform_decide(rig, n);
    }
  }
  if (call_late(rig, late, n, &err))
    conform_look(rig->c, "an error", err.message, strlen(err.message));
}

void conform_check_expired(conform *c) {
  bool commits = c->memory->contract.consistency == WEIR_COMMITTABLE;
  for (late = 0; late < LATES; late++) {
    bool weaker = late == LATE_OPEN || late == LATE_WRITE || late == LATE_PRE_COMMIT ||
                  late == LATE_FLUSH || late == LATE_CLOSE;
    if (commits ? late == LATE_FLUSH : !weaker) continue;
    if (!conform_through(c, late_hook)) return;
  }
  if (commits && conform_through(c, conform_one_epoch))
    conform_count_is(c, conform_decided_rows(c), "after hooks whose deadline had passed");
}

/* The same generation goes on after a write that was cancelled. */
static void cancelled(conform_rig *rig) {
  weir_error err = {0};
  bool commits = rig->c->memory->contract.consistency == WEIR_COMMITTABLE;
  conform_start(rig, 1);
  if (commits) conform_recover(rig);
  uint64_t n = commits ? conform_begin(rig) : 0;
  weir_status status = call_late(rig, LATE_WRITE, n, &err);
  connector_call_arm(&rig->call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  if (commits) {
    if (status && n) conform_rollback(rig, n);
    if (!status) {
      conform_attempt_of(rig, n)->rows = 1;
      conform_prepare(rig, n);
      conform_decide(rig, n);
    }
    conform_epoch(rig);
  } else {
    conform_write(rig, 0, rig->store->next_row + 1, CONFORM_ROWS);
  }
  conform_stop(rig);
}

void conform_check_cancel_safe(conform *c) {
  if (!conform_through(c, cancelled)) return;
  if (c->memory->contract.consistency == WEIR_COMMITTABLE)
    conform_count_is(c, conform_decided_rows(c),
                     "after a cancelled write and an epoch of the same generation");
}

/* ---- secrets ----------------------------------------------------------------------------------- */

void conform_check_secrets(conform *c) {
  if (c->memory->leak[0])
    conform_fails(c, "the value of a secret option stands in %s", c->memory->leak);
}
