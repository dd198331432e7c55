/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: bad ones, keyed ones, none, those of many writers and of many attempts. */
#include <string.h>

#include "conform/conform.h"

static bool committable(const conform_rig *rig) {
  return rig->contract.consistency == WEIR_COMMITTABLE;
}

/* Starts, and begins an attempt if there are such. 0: there are not. */
static uint64_t start_and_begin(conform_rig *rig, size_t writers) {
  conform_start(rig, writers);
  if (!committable(rig)) {
    rig->store->attempts[rig->store->n++] = (conform_attempt){.n = writers};
    return 0;
  }
  conform_recover(rig);
  return conform_begin(rig);
}

/* What was accepted goes to the target. */
static void finish(conform_rig *rig, uint64_t n, uint64_t rows) {
  weir_bytes none = {0};
  weir_error err = {0};
  conform_attempt *a = conform_attempt_of(rig, n ? n : 1);
  a->rows = rows;
  if (n) {
    conform_prepare(rig, n);
    conform_decide(rig, n);
    conform_publish(rig);
  }
  for (size_t i = 0; !n && i < rig->n; i++) {
    conform_step(rig, "pre_commit");
    conform_must(rig,
                 connector_sink_pre_commit(rig->sinks[i], &rig->call, 1, &none, &err),
                 "pre_commit", &err);
    conform_step_done(rig);
  }
  if (!n) a->state = CONFORM_DECIDED;
  conform_stop(rig);
}

static void count_what_was_kept(conform *c, const char *when) {
  if (c->memory->contract.consistency != WEIR_EPHEMERAL)
    conform_count_is(c, conform_decided_rows(c), when);
}

static weir_batch *make(conform_rig *rig, const conform_row *rows, size_t n) {
  weir_batch *batch = NULL;
  weir_error err = {0};
  conform_must(rig,
               conform_rows(&rig->c->key, connector_sink_schema(rig->sinks[0]), rows, n,
                            &batch, &err),
               "the kit's rows", &err);
  return batch;
}

/* ---- bad and no rows --------------------------------------------------------------------------- */

/* Makes the last row's text no UTF-8; the batch is the kit's own and nobody else has it. */
static bool spoil(weir_batch *batch) {
  const struct ArrowArray *array = weir_batch_array(batch);
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(batch));
  for (int64_t i = 0; i < schema->n_children; i++) {
    const struct ArrowArray *column = array->children[i];
    if (strcmp(schema->children[i]->format, "u") != 0 ||
        strcmp(schema->children[i]->name, "_op") == 0)
      continue;
    const int32_t *ends = (const int32_t *)column->buffers[1] + column->offset;
    ((char *)(uintptr_t)column->buffers[2])[ends[array->length - 1]] = (char)0xff;
    return true;
  }
  return false;
}

static void bad_batch(conform_rig *rig) {
  uint64_t n = start_and_begin(rig, 1), taken = 0, first = rig->store->next_row;
  weir_error err = {0};
  const conform_row rows[] = {{first, 'U'}, {first + 1, 'U'}, {first + 2, 'U'}};
  const conform_row good[] = {{first + 3, 'U'}, {first + 4, 'U'}};
  weir_batch *bad = make(rig, rows, BASE_COUNT(rows)), *rest = make(rig, good, 2);
  if (spoil(bad) && conform_try_write(rig, 0, bad, &taken, &err) &&
      !(err.flags & WEIR_ERR_BAD_DATA))
    conform_wrong(rig,
                  "write_batch: a text that is no UTF-8 is %s (%s); expected BAD_DATA",
                  weir_status_name(err.code), err.message);
  conform_must(rig, conform_try_write(rig, 0, rest, &taken, &err),
               "write_batch after a bad batch", &err);
  weir_batch_unref(bad);
  weir_batch_unref(rest);
  finish(rig, n, taken);
}

void conform_check_bad_batch(conform *c) {
  if (conform_through(c, bad_batch))
    count_what_was_kept(c, "after a batch with a bad row and a good batch");
}

static void no_rows(conform_rig *rig) {
  uint64_t n = start_and_begin(rig, 1);
  conform_write(rig, 0, rig->store->next_row, 0);
  conform_write(rig, 0, rig->store->next_row, CONFORM_ROWS);
  conform_write(rig, 0, rig->store->next_row, 0);
  finish(rig, n, CONFORM_ROWS);
}

void conform_check_no_rows(conform *c) {
  if (conform_through(c, no_rows))
    count_what_was_kept(c, "after batches without rows around one with rows");
}

/* ---- keyed rows -------------------------------------------------------------------------------- */

static void ordered(conform_rig *rig) {
  uint64_t n = start_and_begin(rig, 1), taken = 0, k = rig->store->next_row;
  weir_error err = {0};
  const conform_row rows[] = {
      {k, 'U'},     {k, 'D'},                    /* gone */
      {k + 1, 'U'}, {k + 1, 'D'}, {k + 1, 'U'},  /* there */
      {k + 2, 'D'},                              /* was never there */
      {k + 3, 'U'}, {k + 3, 'U'}, {k + 4, 'U'}}; /* there, once each */
  const conform_row later[] = {{k + 4, 'D'}, {k + 5, 'D'}, {k + 5, 'U'}};
  weir_batch *first = make(rig, rows, BASE_COUNT(rows));
  weir_batch *second = make(rig, later, BASE_COUNT(later));
  conform_must(rig, conform_try_write(rig, 0, first, &taken, &err), "write_batch", &err);
  conform_must(rig, conform_try_write(rig, 0, second, &taken, &err), "write_batch", &err);
  weir_batch_unref(first);
  weir_batch_unref(second);
  finish(rig, n, 3);
}

void conform_check_order(conform *c) {
  if (conform_through(c, ordered))
    count_what_was_kept(c, "after changes of which the last one of each key counts");
}

static void null_key(conform_rig *rig) {
  uint64_t n = start_and_begin(rig, 1), taken = 0, k = rig->store->next_row;
  weir_error err = {0};
  const conform_row rows[] = {{k, 'U'}, {k + 1, 'N'}};
  weir_batch *batch = make(rig, rows, 2);
  weir_status status = conform_try_write(rig, 0, batch, &taken, &err);
  if (!(status && err.flags & WEIR_ERR_BAD_DATA))
    conform_wrong(rig, "write_batch: a key that is null is %s; expected BAD_DATA",
                  weir_status_name(status));
  weir_batch_unref(batch);
  conform_write(rig, 0, k + 2, CONFORM_ROWS);
  finish(rig, n, CONFORM_ROWS);
}

void conform_check_null_key(conform *c) {
  if (conform_through(c, null_key))
    count_what_was_kept(c, "after a batch with a null key and a good batch");
}

/* ---- epochs ------------------------------------------------------------------------------------ */

static void empty(conform_rig *rig) {
  conform_open(rig);
  for (int i = 0; i < 4; i++) {
    uint64_t n = conform_begin(rig);
    if (i == 1 || i == 3) conform_fill(rig, n, 0);
    conform_prepare(rig, n);
    conform_decide(rig, n);
    if (!conform_attempt_of(rig, n)->rows &&
        conform_attempt_of(rig, n)->descriptors[0].present)
      conform_wrong(rig,
                    "pre_commit: an epoch without rows has a descriptor; expected "
                    "absent");
    if (i != 2) conform_publish(rig); /* the third rides with the fourth */
  }
  conform_stop(rig);
}

void conform_check_empty(conform *c) {
  if (conform_through(c, empty))
    count_what_was_kept(c, "after epochs of which every other one is empty");
}

static void next_begins(conform_rig *rig) {
  conform_open(rig);
  uint64_t n = conform_decided(rig);
  uint64_t next = conform_begin(rig);
  conform_fill(rig, next, 0);
  conform_publish(rig);
  if (conform_observe(rig).checkpoint != n)
    conform_wrong(rig, "observe_cursor: not the attempt that was committed");
  conform_prepare(rig, next);
  conform_decide(rig, next);
  conform_publish(rig);
  conform_stop(rig);
}

void conform_check_next_begins(conform *c) {
  if (conform_through(c, next_begins))
    count_what_was_kept(c,
                        "after an epoch that began before the one before was committed");
}

/* ---- many writers ------------------------------------------------------------------------------ */

typedef struct writer {
  conform_rig *rig;
  size_t i;
  uint64_t attempt; /* 0: none */
  weir_bytes descriptor;
} writer;

/* Beside the others, so it makes no steps. Each writes another number of rows: one in another's place is
 * seen. */
static void *write_beside(void *arg) {
  writer *w = arg;
  conform_rig *rig = w->rig;
  connector_sink *sink = rig->sinks[w->i];
  weir_call call = {0};
  weir_error err = {0};
  connector_call_arm(&call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  conform_row rows[CONFORM_WRITERS];
  for (size_t i = 0; i <= w->i; i++)
    rows[i] = (conform_row){rig->store->next_row + CONFORM_WRITERS * w->i + i, 'U'};
  for (size_t from = 0; from <= w->i; from += 2) {
    size_t n = w->i + 1 - from < 2 ? 1 : 2;
    weir_batch *batch = make(rig, rows + from, n);
    weir_write_result result = {0};
    conform_must(rig, connector_sink_write_batch(sink, &call, batch, &result, &err),
                 "write_batch", &err);
    weir_batch_unref(batch);
  }
  conform_must(rig,
               connector_sink_pre_commit(sink, &call, w->attempt ? w->attempt : 1,
                                         &w->descriptor, &err),
               "pre_commit", &err);
  return NULL;
}

static void many_writers(conform_rig *rig) {
  writer writers[CONFORM_WRITERS] = {{0}};
  pthread_t threads[CONFORM_WRITERS];
  weir_error err = {0};
  uint64_t n = start_and_begin(rig, CONFORM_WRITERS);
  conform_attempt *a = conform_attempt_of(rig, n ? n : 1);
  conform_step(rig, "write_batch and pre_commit of 8 writers");
  for (size_t i = 0; i < CONFORM_WRITERS; i++) {
    writers[i] = (writer){.rig = rig, .i = i, .attempt = n};
    conform_must(
        rig, base_thread_start(&threads[i], "writer", write_beside, &writers[i], &err),
        "the kit's threads", &err);
  }
  for (size_t i = 0; i < CONFORM_WRITERS; i++) {
    pthread_join(threads[i], NULL);
    a->descriptors[i] = conform_keep(rig->memory, &writers[i].descriptor);
    weir_bytes_release(&writers[i].descriptor);
  }
  conform_step_done(rig);
  a->rows = CONFORM_WRITERS * (CONFORM_WRITERS + 1) / 2;
  rig->store->next_row += 1 << 8; /* past those of the decision */
  if (n) {
    conform_decide(rig, n);
    conform_publish(rig);
  } else {
    a->state = CONFORM_DECIDED;
  }
  conform_stop(rig);
}

/* The next run has three, of which one is idle. */
static void fewer_writers(conform_rig *rig) {
  conform_start(rig, 3);
  conform_recover(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 1u << 1);
  conform_prepare(rig, n);
  conform_decide(rig, n);
  conform_publish(rig);
  conform_stop(rig);
}

void conform_check_writers(conform *c) {
  if (!conform_through(c, many_writers)) return;
  count_what_was_kept(c, "after an epoch of 8 writers");
  if (c->memory->contract.consistency == WEIR_COMMITTABLE &&
      conform_through(c, fewer_writers))
    count_what_was_kept(c, "after an epoch of 8 writers and one of 3");
}

/* ---- many attempts ----------------------------------------------------------------------------- */

static void several(conform_rig *rig) {
  conform_open(rig);
  conform_epoch(rig);
  for (int i = 0; i < 3; i++) conform_decided(rig);
  conform_publish(rig);
  conform_stop(rig);
}

void conform_check_several(conform *c) {
  if (conform_through(c, several))
    count_what_was_kept(c, "after three attempts in one commit batch");
}

static void empty_behind_rows(conform_rig *rig) {
  conform_open(rig);
  conform_decided(rig);
  uint64_t n = conform_begin(rig);
  conform_prepare(rig, n);
  conform_decide(rig, n);
  conform_publish(rig);
  conform_stop(rig);
}

void conform_check_empty_behind_rows(conform *c) {
  if (conform_through(c, empty_behind_rows))
    count_what_was_kept(c, "after a commit batch whose last attempt is empty");
}
