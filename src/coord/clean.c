/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C15: cleaning what aborted attempts left at the targets. Never before this history's cursor at that target
 * is beyond the attempt: a copied store has the same intents, and until then another history may still
 * publish what they name.
 */
#include <stdlib.h>
#include <string.h>

#include "coord/state.h"

void coord_dirt_done(coord_dirt *dirt) {
  for (size_t i = 0; dirt->owners && i < dirt->n_entries; i++) {
    weir_bytes_release(&dirt->owners[i]);
  }
  free(dirt->owners);
  free(dirt->entries);
  *dirt = (coord_dirt){0};
}

/* Copies those of the entries that are the sink's; none: nothing was recorded, nothing is owed. */
weir_status coord_add_dirt(coord *c, uint32_t sink, uint64_t attempt,
                           const weir_store_entry *entries, size_t n, weir_error *err) {
  const coord_sink_state *s = &c->sinks[sink];
  weir_status status = WEIR_E_NOMEM;
  coord_dirt dirt = {.attempt = attempt, .sink = sink};
  for (size_t i = 0; i < n; i++) dirt.n_entries += strcmp(entries[i].sink_id, s->id) == 0;
  if (!dirt.n_entries) return WEIR_OK;
  if (c->n_dirt == c->dirt_capacity) {
    size_t capacity = c->dirt_capacity ? 2 * c->dirt_capacity : 8;
    coord_dirt *grown = base_realloc(c->dirt, capacity, sizeof(*grown), err);
    if (!grown) return WEIR_E_NOMEM;
    c->dirt = grown;
    c->dirt_capacity = capacity;
  }
  dirt.entries = base_calloc(dirt.n_entries, sizeof(*dirt.entries), err);
  dirt.owners = base_calloc(dirt.n_entries, sizeof(*dirt.owners), err);
  if (!dirt.entries || !dirt.owners) goto out;
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const weir_store_entry *from = &entries[i];
    if (strcmp(from->sink_id, s->id) != 0) continue;
    BASE_GOTO(status, coord_copy_bytes(&dirt.owners[at], from->present, from->data,
                                       from->size, err));
    dirt.entries[at] = (weir_store_entry){.sink_id = s->id,
                                          .participant_id = from->participant_id,
                                          .present = from->present,
                                          .data = dirt.owners[at].data,
                                          .size = dirt.owners[at].size};
    at++;
  }
  c->dirt[c->n_dirt++] = dirt;
  return WEIR_OK;
out:
  coord_dirt_done(&dirt);
  return status;
}

static weir_status mark_cleaned(coord *c, uint32_t sink, uint64_t attempt,
                                weir_error *err) {
  return coord_push(c,
                    &(coord_command){.type = COORD_MARK_CLEANED,
                                     .sink = sink,
                                     .lane = COORD_NONE,
                                     .attempt = attempt},
                    err);
}

/* Proven: no gate was opened, or every participant was sealed without a row. */
static bool took_nothing(const coord *c, const coord_sink_state *s) {
  if (!c->opened) return true;
  for (uint32_t k = 0; k < s->n_parts; k++) {
    if (!s->parts[k].sealed || s->parts[k].rows) return false;
  }
  return true;
}

weir_status coord_soil(coord *c, weir_error *err) {
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    const coord_sink_state *s = &c->sinks[i];
    if (!s->committable) continue;
    if (took_nothing(c, s)) {
      BASE_TRY(mark_cleaned(c, i, c->attempt, err));
      continue;
    }
    weir_status status = WEIR_OK;
    weir_store_entry *entries = base_calloc(s->n_parts, sizeof(*entries), err);
    if (!entries) return WEIR_E_NOMEM;
    for (uint32_t k = 0; k < s->n_parts; k++) {
      const weir_bytes *intent = &s->parts[k].intent;
      entries[k] = (weir_store_entry){.sink_id = s->id,
                                      .participant_id = k + 1,
                                      .present = intent->release != NULL,
                                      .data = intent->data,
                                      .size = intent->size};
    }
    status = coord_add_dirt(c, i, c->attempt, entries, s->n_parts, err);
    free(entries);
    if (status) return status;
  }
  return WEIR_OK;
}

static size_t cleaning_now(const coord *c) {
  size_t n = 0;
  for (size_t i = 0; i < c->n_dirt; i++) n += c->dirt[i].running;
  return n;
}

static bool sink_is_cleaning(const coord *c, uint32_t sink) {
  for (size_t i = 0; i < c->n_dirt; i++) {
    if (c->dirt[i].sink == sink && c->dirt[i].running) return true;
  }
  return false;
}

/* Nothing of a sink is cleaned while a batch of it is unsettled. */
static bool is_due(const coord *c, const coord_dirt *dirt) {
  const coord_sink_state *s = &c->sinks[dirt->sink];
  return c->recovered && s->commit == COMMIT_IDLE && s->seen.checkpoint > dirt->attempt;
}

bool coord_cleaning(const coord *c) {
  for (size_t i = 0; i < c->n_dirt; i++) {
    const coord_dirt *dirt = &c->dirt[i];
    if (dirt->running || (is_due(c, dirt) && !dirt->given_up)) return true;
  }
  return false;
}

weir_status coord_progress_clean(coord *c, weir_error *err) {
  if (c->phase >= PHASE_HALTING || c->stopping) return WEIR_OK;
  size_t running = cleaning_now(c);
  for (size_t i = 0; i < c->n_dirt && running < COORD_AT_ONCE; i++) {
    coord_dirt *dirt = &c->dirt[i];
    bool wait = dirt->retry_at > c->now && c->phase != PHASE_FINISHING;
    if (dirt->running || dirt->given_up || wait || !is_due(c, dirt) ||
        sink_is_cleaning(c, dirt->sink)) {
      continue;
    }
    dirt->running = true;
    running++;
    BASE_TRY(coord_push(c,
                        &(coord_command){.type = COORD_CLEAN,
                                         .sink = dirt->sink,
                                         .lane = COORD_NONE,
                                         .attempt = dirt->attempt,
                                         .entries = dirt->entries,
                                         .n_entries = dirt->n_entries},
                        err));
  }
  return WEIR_OK;
}

/* A cleaner that fails never stops the run: it is asked again later, at the latest by the next start. */
weir_status coord_on_cleaned(coord *c, coord_event *e, weir_error *err) {
  for (size_t i = 0; i < c->n_dirt; i++) {
    coord_dirt *dirt = &c->dirt[i];
    if (dirt->sink != e->sink || dirt->attempt != e->attempt || !dirt->running) continue;
    dirt->running = false;
    if (e->error) {
      dirt->given_up = c->phase == PHASE_FINISHING;
      dirt->backoff = coord_grow_backoff(c, dirt->backoff);
      dirt->retry_at = coord_later(c, dirt->backoff);
      return WEIR_OK;
    }
    coord_dirt_done(dirt);
    memmove(dirt, dirt + 1, (c->n_dirt - i - 1) * sizeof(*dirt));
    c->n_dirt--;
    return mark_cleaned(c, e->sink, e->attempt, err);
  }
  return coord_not_now(c, "cleaned", err);
}
