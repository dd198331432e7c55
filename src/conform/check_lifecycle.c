/* SPDX-License-Identifier: Apache-2.0 */
/* What the contract says, and the hooks in their order, up to every way out. */
#include <dirent.h>
#include <malloc.h>
#include <string.h>

#include "conform/conform.h"

static bool committable(const conform_rig *rig) {
  return rig->contract.consistency == WEIR_COMMITTABLE;
}

/* ---- contract ---------------------------------------------------------------------------------- */

/* What is asked before anything may be touched; the contract twice. */
static void ask(conform_rig *rig, weir_contract *a, weir_contract *b) {
  connector_sink *sink = NULL;
  weir_error err = {0};
  conform_step(rig, "create");
  conform_must(rig, connector_sink_new(rig->c->spec, 1, 1, &sink, &err), "create", &err);
  conform_step(rig, "contract");
  conform_must(rig, connector_sink_contract(sink, a, &err), "contract", &err);
  conform_must(rig, connector_sink_contract(sink, b, &err), "contract", &err);
  for (int i = 0; i < 2; i++) {
    weir_names key = {0};
    conform_step(rig, "keyed_mutation_key");
    conform_must(rig, connector_sink_keyed_mutation_key(sink, &key, &err),
                 "keyed_mutation_key", &err);
    weir_names_release(&key);
  }
  conform_step(rig, "release");
  connector_sink_unref(sink);
  conform_step_done(rig);
}

static void answer_once(conform_rig *rig) {
  weir_contract a = {0}, b = {0};
  ask(rig, &a, &b);
}

static void answer_twice(conform_rig *rig) {
  weir_contract a = {0}, b = {0};
  ask(rig, &a, &b);
  if (memcmp(&a, &b, sizeof(a)) != 0)
    conform_wrong(rig, "contract: asked twice of one configuration, it answers twice");
  rig->memory->contract = a;
}

/* Asked again in the kit's own process, now that a child has come through it. */
static bool learn_key(conform *c) {
  connector_sink *sink = NULL;
  weir_contract contract = {0};
  weir_error *err = &c->error;
  if (connector_sink_new(c->spec, 1, 1, &sink, err)) return false;
  weir_status status = connector_sink_contract(sink, &contract, err);
  if (!status) status = connector_sink_keyed_mutation_key(sink, &c->key, err);
  c->cancel_safe = connector_sink_is_cancel_safe(sink);
  connector_sink_unref(sink);
  return !status;
}

void conform_check_create(conform *c) {
  if (!conform_through(c, answer_twice) || !learn_key(c)) return;
  const weir_contract *k = &c->memory->contract;
  if (k->consistency == WEIR_COMMITTABLE && !connector_has_committer(&c->ops))
    conform_fails(c, "the contract is committable and the table has no committer");
  if (k->input == WEIR_INPUT_KEYED && !c->key.release)
    conform_fails(c,
                  "the contract takes keyed input and keyed_mutation_key has no answer");
}

void conform_check_no_io(conform *c) {
  conform_child child;
  conform_run(c, &(conform_plan){.watch = true}, answer_once, &child);
  if (child.refused) {
    conform_unshown(c, "this system does not let a process be watched (ptrace)");
  } else if (child.opened[0]) {
    conform_fails(c, "system call %s", child.opened);
  }
}

/* ---- intents ----------------------------------------------------------------------------------- */

static bool same(const weir_bytes *a, const weir_bytes *b) {
  return (a->release != NULL) == (b->release != NULL) && a->size == b->size &&
         (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* Of two participants' two epochs, each asked for twice. Bounds are the checked call's. */
static void ask_intents(conform_rig *rig) {
  weir_bytes intents[4] = {{0}}, again = {0};
  weir_error err = {0};
  size_t writers = rig->c->memory->contract.topology == WEIR_MULTI_WRITER ? 2 : 1;
  conform_start(rig, writers);
  for (size_t i = 0; i < 2 * writers; i++) {
    connector_sink *sink = rig->sinks[i / 2];
    conform_step(rig, "checkpoint_artifact_intent");
    conform_must(rig,
                 connector_sink_intent(sink, &rig->call, 1 + i % 2, &intents[i], &err),
                 "checkpoint_artifact_intent", &err);
    conform_must(rig, connector_sink_intent(sink, &rig->call, 1 + i % 2, &again, &err),
                 "checkpoint_artifact_intent", &err);
    conform_step_done(rig);
    if (!same(&intents[i], &again))
      conform_wrong(rig,
                    "checkpoint_artifact_intent: asked twice for one epoch, it answers "
                    "twice; the store may hold either answer");
    for (size_t k = 0; k < i && intents[i].size; k++) {
      if (same(&intents[i], &intents[k]))
        conform_wrong(rig,
                      "checkpoint_artifact_intent: two participants or epochs have the "
                      "same one, so that it does not say whose artifacts it means");
    }
    weir_bytes_release(&again);
  }
}

void conform_check_intent(conform *c) {
  conform_through(c, ask_intents);
}

/* ---- one session ------------------------------------------------------------------------------- */

/* A generation's work without a committer. */
static void weaker_epoch(conform_rig *rig, uint64_t epoch) {
  weir_error err = {0};
  weir_bytes none = {0};
  conform_attempt a = {.state = CONFORM_DECIDED, .rows = 0};
  for (size_t i = 0; i < rig->n; i++) {
    conform_write(rig, i, rig->store->next_row, CONFORM_ROWS);
    conform_step(rig, "flush");
    conform_must(rig, connector_sink_flush(rig->sinks[i], &rig->call, &err), "flush",
                 &err);
    conform_write(rig, i, rig->store->next_row + CONFORM_ROWS, CONFORM_ROWS);
    rig->store->next_row += (uint64_t)2 * CONFORM_ROWS;
    a.rows += (uint64_t)2 * CONFORM_ROWS;
    conform_step(rig, "pre_commit");
    conform_must(rig,
                 connector_sink_pre_commit(rig->sinks[i], &rig->call, epoch, &none, &err),
                 "pre_commit", &err);
    conform_step_done(rig);
  }
  rig->store->attempts[rig->store->n++] = a;
}

static void ask_cleaner(conform_rig *rig) {
  connector_cleaner *cleaner = conform_cleaner(rig);
  rig->memory->has_cleaner = cleaner != NULL;
  rig->memory->asked_cleaner = true;
  connector_cleaner_free(cleaner);
}

static void cleaner_only(conform_rig *rig) {
  conform_start(rig, 1);
  ask_cleaner(rig);
  conform_stop(rig);
}

bool conform_learn_cleaner(conform *c) {
  return conform_through(c, cleaner_only);
}

static void session(conform_rig *rig) {
  conform_start(rig, 1);
  if (!committable(rig)) {
    weaker_epoch(rig, 1);
    weaker_epoch(rig, 2);
    conform_stop(rig);
    return;
  }
  weir_cursor none = conform_observe(rig);
  if (none.checkpoint)
    conform_wrong(rig, "observe_cursor: a new deployment has a cursor, of attempt %llu",
                  (unsigned long long)none.checkpoint);
  conform_recover(rig);
  ask_cleaner(rig);
  for (int i = 0; i < 2; i++) {
    uint64_t n = conform_epoch(rig);
    if (!rig->store->attempts[n - 1].descriptors[0].present)
      conform_wrong(rig, "pre_commit: absent, though rows were written");
  }
  if (conform_observe(rig).checkpoint != rig->store->n)
    conform_wrong(rig, "observe_cursor: not the attempt that was committed last");
  conform_stop(rig);
}

void conform_check_session(conform *c) {
  if (!conform_through(c, session)) return;
  if (c->memory->contract.consistency != WEIR_EPHEMERAL)
    conform_count_is(c, conform_decided_rows(c), "after two epochs");
}

static void prepare_again(conform_rig *rig) {
  weir_bytes first = {0}, second = {0};
  weir_error err = {0};
  conform_start(rig, 1);
  conform_must(rig, connector_binding_text(&rig->binding, &first, &err), "binding", &err);
  if (committable(rig) && !rig->binding.identity)
    conform_wrong(rig,
                  "prepare_schema: the binding does not name the target: no identity");
  conform_stop(rig);
  conform_start(rig, 1);
  conform_must(rig, connector_binding_text(&rig->binding, &second, &err), "binding",
               &err);
  conform_must(rig,
               connector_binding_compare("prepare_schema, done again", first.data,
                                         first.size, second.data, second.size, &err),
               "binding", &err);
  conform_stop(rig);
}

void conform_check_prepare_again(conform *c) {
  conform_through(c, prepare_again);
}

/* ---- ways out ---------------------------------------------------------------------------------- */

enum { OUT_BOUND, OUT_OPEN, OUT_BEGUN, OUT_WRITTEN, OUTS };

/* Goes on until the stage; false when this sink has no such stage. */
static bool reach(conform_rig *rig, int stage) {
  uint64_t n = 0;
  if (stage == OUT_BOUND) {
    rig->sinks[0] = conform_create(rig, 1);
    rig->n = 1;
    return true;
  }
  conform_start(rig, 1);
  if (stage == OUT_OPEN) return true;
  if (!committable(rig)) {
    if (stage == OUT_WRITTEN) conform_write(rig, 0, 1, CONFORM_ROWS);
    return stage == OUT_WRITTEN;
  }
  if (stage >= OUT_BEGUN) n = conform_begin(rig);
  if (stage >= OUT_WRITTEN) conform_fill(rig, n, 0);
  return true;
}

static void release_only(conform_rig *rig) {
  conform_step(rig, "release");
  connector_sink_unref(rig->sinks[0]);
  conform_step_done(rig);
  weir_binding_done(&rig->binding);
  rig->n = 0;
}

static void close_anywhere(conform_rig *rig) {
  for (int stage = OUT_OPEN; stage < OUTS; stage++) {
    reach(rig, stage);
    conform_stop(rig);
  }
}

static void release_anywhere(conform_rig *rig) {
  for (int stage = OUT_BOUND; stage < OUTS; stage++) {
    reach(rig, stage);
    release_only(rig);
  }
}

/* Nothing of what was on its way is there, and after that a whole session goes through. */
static void check_ways_out(conform *c, conform_script script) {
  static const char when[] = "after sessions that ended early and a whole one";
  if (!conform_through(c, script)) return;
  if (c->memory->contract.consistency != WEIR_COMMITTABLE ||
      !conform_count_is(c, 0, "after sessions that ended early"))
    return;
  if (conform_new_world(c) && conform_through(c, session))
    conform_count_is(c, conform_decided_rows(c), when);
}

void conform_check_close_anywhere(conform *c) {
  check_ways_out(c, close_anywhere);
}

void conform_check_release_anywhere(conform *c) {
  check_ways_out(c, release_anywhere);
}

/* ---- leaks ------------------------------------------------------------------------------------- */

/* Names in a folder of /proc. */
static size_t count_names(const char *folder) {
  size_t n = 0;
  DIR *dir = opendir(folder);
  if (!dir) return 0;
  for (struct dirent *e = readdir(dir); e; e = readdir(dir)) n += e->d_name[0] != '.';
  closedir(dir);
  return n;
}

/* There in a build with LeakSanitizer, and exact. */
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);

static void life(conform_rig *rig) {
  conform_start(rig, 1);
  weir_task_tracker *tracker = connector_sink_tracker(rig->sinks[0]);
  weir_error err = {0};
  if (committable(rig)) {
    conform_recover(rig);
    uint64_t n = conform_begin(rig);
    conform_fill(rig, n, 0);
    conform_prepare(rig, n);
    conform_rollback(rig, n);
    conform_epoch(rig);
  } else {
    weaker_epoch(rig, 1);
  }
  conform_stop(rig);
  conform_step(rig, "a detached task");
  if (tracker)
    conform_must(rig, weir_task_tracker_wait(tracker, BASE_NS_PER_S * 3600, &err),
                 "tracker", &err);
  conform_step_done(rig);
  weir_task_tracker_unref(tracker);
}

static void leaks(conform_rig *rig) {
  /* glibc keeps up to 7 freed blocks of a size aside and counts them as used. */
  enum { WARM = 12, LIVES = 28, LEAK = 24 };
  size_t threads = 0, files = 0, used[LIVES] = {0}, growths = 0;
  for (int i = 0; i < LIVES; i++) {
    life(rig);
    if (i == WARM - 1) {
      threads = count_names("/proc/self/task");
      files = count_names("/proc/self/fd");
    }
    used[i] = mallinfo2().uordblks;
    growths += i >= WARM && used[i] >= used[i - 1] + LEAK;
  }
  size_t more = count_names("/proc/self/task");
  if (more > threads)
    conform_wrong(rig, "after release %zu threads more run than %d sessions before",
                  more - threads, LIVES - WARM);
  more = count_names("/proc/self/fd");
  if (more > files)
    conform_wrong(rig, "after release %zu files more are open than %d sessions before",
                  more - files, LIVES - WARM);
  if (!__lsan_do_recoverable_leak_check && growths == LIVES - WARM)
    conform_wrong(rig, "each session leaves memory behind, about %zu bytes",
                  (used[LIVES - 1] - used[WARM - 1]) / (LIVES - WARM));
  if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
    conform_wrong(rig, "memory is lost; what the sanitizer wrote says where it was made");
}

void conform_check_leaks(conform *c) {
  conform_through(c, leaks);
}
