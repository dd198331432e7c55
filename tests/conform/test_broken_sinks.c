/* SPDX-License-Identifier: Apache-2.0 */
/* An honest sink is certified; each fault is found by the check that is meant for it, and by no other. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/conform.h>

#include <cmocka.h>

#include "support/broken.h"

#define S INT64_C(1000000000)

typedef struct row {
  broken_mode mode;
  const char *name;  /* of the fault */
  const char *check; /* "group/name"; NULL: certified */
} row;

#define COMMITTABLE(fault, check) {{fault, WEIR_COMMITTABLE, 0, 0}, #fault, check}
#define KEYED(fault, check) {{fault, WEIR_COMMITTABLE, 1, 0}, #fault, check}
#define DURABLE(fault, check) {{fault, WEIR_DURABLE_AT_LEAST_ONCE, 0, 0}, #fault, check}
#define SAFE(fault, check) {{fault, WEIR_COMMITTABLE, 0, WEIR_CANCEL_SAFE}, #fault, check}

static const row rows[] = {
    COMMITTABLE(HONEST, NULL),
    {{HONEST, WEIR_COMMITTABLE, 1, WEIR_CANCEL_SAFE}, "HONEST", NULL},
    DURABLE(HONEST, NULL),
    COMMITTABLE(CONTRACT_OPENS_A_FILE, "contract/no-io"),
    COMMITTABLE(CONTRACT_CHANGES_ITS_MIND, "contract/answers"),
    COMMITTABLE(INTENT_TOO_LARGE, "intent/intent"),
    COMMITTABLE(INTENT_CHANGES, "intent/intent"),
    COMMITTABLE(PREPARES_ANOTHER_TARGET, "lifecycle/prepare-again"),
    COMMITTABLE(CLOSE_DIES_IN_AN_EPOCH, "lifecycle/close-anywhere"),
    COMMITTABLE(CLOSE_PUBLISHES, "lifecycle/close-anywhere"),
    COMMITTABLE(RELEASE_NEEDS_A_CLOSE, "lifecycle/release-anywhere"),
    COMMITTABLE(LEAKS_A_THREAD, "lifecycle/leaks"),
    COMMITTABLE(LEAKS_A_FILE, "lifecycle/leaks"),
    COMMITTABLE(LEAKS_MEMORY, "lifecycle/leaks"),
    COMMITTABLE(TAKES_PART_OF_A_BAD_BATCH, "rows/bad-batch"),
    KEYED(DELETES_COME_LAST, "rows/key-order"),
    KEYED(TAKES_NULL_KEYS, "rows/null-key"),
    COMMITTABLE(DESCRIBES_NOTHING, "epochs/empty"),
    COMMITTABLE(NEXT_EPOCH_DROPS_THE_LAST, "epochs/next-begins"),
    COMMITTABLE(WRITERS_SHARE_A_NAME, "epochs/writers"),
    COMMITTABLE(PUBLISHES_THE_LAST_ATTEMPT_ALONE, "batches/several"),
    COMMITTABLE(LOSES_ROWS_AT_AN_EMPTY_EPOCH, "batches/empty-behind-rows"),
    COMMITTABLE(COMMITS_IN_PRE_COMMIT, "visible/not-before"),
    COMMITTABLE(APPENDS_TWICE, "commit/answer-lost"),
    COMMITTABLE(FORGETS_THE_FENCE, "commit/fenced"),
    COMMITTABLE(IGNORES_THE_DIGEST, "commit/other-digest"),
    COMMITTABLE(IGNORES_THE_PREDECESSOR, "commit/predecessor"),
    COMMITTABLE(UNREADABLE_CURSOR_IS_NONE, "commit/unreadable"),
    COMMITTABLE(STAGES_IN_VAIN, "commit/failed-prepare"),
    COMMITTABLE(ROLLS_BACK_IN_DOUBT, "commit/failed-commit"),
    COMMITTABLE(SECOND_DEPLOYMENT_WELCOME, "claims/second-deployment"),
    COMMITTABLE(REPLACED_OWNER_COMMITS, "claims/replaced"),
    COMMITTABLE(ROLLBACK_FAILS_TWICE, "rollback/twice"),
    COMMITTABLE(ROLLBACK_NEEDS_A_BEGIN, "rollback/never-begun"),
    COMMITTABLE(ROLLBACK_KEEPS_ROWS, "rollback/half-way"),
    COMMITTABLE(ROLLBACK_TAKES_PUBLISHED_ROWS, "kept/published"),
    COMMITTABLE(ROLLBACK_DROPS_THE_DECIDED, "kept/decided"),
    COMMITTABLE(CLEANER_FAILS_TWICE, "cleaner/cleaned-twice"),
    COMMITTABLE(CLEANER_NEEDS_AN_INTENT, "cleaner/without-intent"),
    COMMITTABLE(CLEANER_NEEDS_ITS_SINK, "cleaner/later"),
    COMMITTABLE(CLEANER_DELETES_LIVE_FILES, "live/live-attempt"),
    COMMITTABLE(CLEANER_IGNORES_THE_INCARNATION, "live/incarnation"),
    COMMITTABLE(WRITE_IGNORES_THE_DEADLINE, "deadline/expired"),
    DURABLE(FLUSH_IGNORES_THE_DEADLINE, "deadline/expired"),
    SAFE(SAFE_BUT_NOT_AFTER_A_CANCEL, "deadline/cancel-safe"),
    COMMITTABLE(SECRET_IN_INTENT, "secrets/secrets"),
    COMMITTABLE(SECRET_IN_DESCRIPTOR, "secrets/secrets"),
    COMMITTABLE(SECRET_IN_IDENTITY, "secrets/secrets"),
    COMMITTABLE(SECRET_IN_LOG, "secrets/secrets"),
    COMMITTABLE(SECRET_IN_ERROR, "secrets/secrets"),
    DURABLE(DURABLE_IN_MEMORY_ONLY, "kill/durable"),
    COMMITTABLE(PUBLISHES_IN_TWO_STEPS, "kill/inside"),
};

typedef struct found {
  char folder[64];
  const row *row;
  size_t failed, meant;
  char text[2048];
} found;

static weir_status count(void *ctx, uint64_t *n, weir_error *err) {
  return broken_count(((found *)ctx)->folder, n, err);
}

static void seen(void *ctx, const weir_conform_check *check) {
  found *f = ctx;
  char name[64];
  snprintf(name, sizeof(name), "%s/%s", check->group, check->name);
  if (check->outcome != WEIR_CONFORM_FAILED && check->outcome != WEIR_CONFORM_NOT_SHOWN)
    return;
  f->failed++;
  f->meant += f->row->check && strcmp(name, f->row->check) == 0;
  size_t n = strlen(f->text);
  snprintf(f->text + n, sizeof(f->text) - n, "%s: %s\n", name, check->reason);
}

static void remove_folder(const char *folder) {
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
    unlink(path);
  }
  closedir(dir);
  rmdir(folder);
}

static void try_sink(void **state) {
  found f = {.row = *state};
  weir_conform_summary sum = {.struct_size = sizeof(sum)};
  weir_error err = {0};
  char config[128];
  broken = f.row->mode;
  snprintf(f.folder, sizeof(f.folder), "%s/weir-conform-XXXXXX",
           access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
  assert_non_null(mkdtemp(f.folder));
  int n = snprintf(config, sizeof(config), "path: %s\npassword: opensesame\n", f.folder);
  weir_conform_options options = {.struct_size = sizeof(options),
                                  .ops = &broken_sink_ops,
                                  .config = config,
                                  .config_size = (size_t)n,
                                  .ctx = &f,
                                  .count = count,
                                  .check = seen,
                                  .patience_ns = 5 * S};
  weir_status status = weir_conform(&options, &sum, &err);
  remove_folder(f.folder);
  if (status) fail_msg("%s: %s", f.row->name, err.message);
  if (f.row->check ? f.failed != 1 || f.meant != 1 : !sum.certified)
    fail_msg("%s: expected %s, found\n%s", f.row->name,
             f.row->check ? f.row->check : "nothing", f.text);
}

int main(void) {
  enum { N = sizeof(rows) / sizeof(rows[0]) };
  struct CMUnitTest tests[N];
  for (size_t i = 0; i < N; i++) {
    tests[i] = (struct CMUnitTest){
        .name = rows[i].name, .test_func = try_sink, .initial_state = (void *)&rows[i]};
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
