/* SPDX-License-Identifier: Apache-2.0 */
/* An owner: what the pipeline is to the real coordinator. Commands become jobs, answers become mail. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* ---- mail and jobs */

void sim_post(sim_world *w, sim_owner *o, coord_event event, const weir_error *error) {
  SIM_CHECK(w, o->n_mail < MAIL, "the mailbox is full");
  sim_mail *m = &o->mail[(o->first_mail + o->n_mail++) % MAIL];
  m->event = event;
  m->error = NULL;
  if (!error) return;
  m->error = malloc(sizeof(*error));
  if (!m->error) abort();
  *m->error = *error;
}

sim_job sim_job_take(sim_jobs *jobs) {
  const uint32_t at = jobs->first;
  jobs->first = (at + 1) % JOBS;
  jobs->n--;
  return jobs->v[at];
}

static void add_job(sim_world *w, sim_jobs *jobs, const sim_job *job) {
  SIM_CHECK(w, jobs->n < JOBS, "a thread has too many jobs");
  jobs->v[(jobs->first + jobs->n++) % JOBS] = *job;
}

coord_event sim_event(coord_event_type type, uint32_t sink, uint32_t part,
                      uint64_t attempt) {
  return (coord_event){.type = type,
                       .sink = sink,
                       .participant = part,
                       .lane = COORD_NONE,
                       .attempt = attempt};
}

coord_event sim_lane_event(coord_event_type type, uint32_t lane, uint64_t attempt,
                           uint64_t generation) {
  return (coord_event){.type = type,
                       .sink = COORD_NONE,
                       .lane = lane,
                       .attempt = attempt,
                       .generation = generation};
}

/* ---- batches */

void sim_batch_free(sim_batch *batch) {
  if (!batch) return;
  free(batch->attempts);
  free(batch->entries);
  free(batch->blobs);
  free(batch);
}

static sim_batch *copy_batch(sim_world *w, const weir_commit_batch *from) {
  sim_batch *b = calloc(1, sizeof(*b));
  size_t n = 0;
  for (size_t i = 0; i < from->n_attempts; i++) n += from->attempts[i].n_entries;
  if (b) {
    b->attempts = calloc(from->n_attempts, sizeof(*b->attempts));
    b->entries = calloc(n, sizeof(*b->entries));
    b->blobs = calloc(n, sizeof(*b->blobs));
  }
  if (!b || !b->attempts || !b->entries || !b->blobs) abort();
  b->batch = *from;
  b->batch.attempts = b->attempts;
  n = 0;
  for (size_t i = 0; i < from->n_attempts; i++) {
    const weir_commit_attempt *a = &from->attempts[i];
    b->attempts[i] = *a;
    b->attempts[i].entries = &b->entries[n];
    for (size_t k = 0; k < a->n_entries; k++, n++) {
      b->entries[n] = a->entries[k];
      b->blobs[n] = sim_decode(w, a->entries[k].present, a->entries[k].descriptor,
                               a->entries[k].size);
      b->entries[n].descriptor = (const uint8_t *)&b->blobs[n];
      b->entries[n].size = sizeof(b->blobs[n]);
    }
  }
  return b;
}

/* ---- commands */

/* Until every cursor was read nothing is written anywhere. */
static void check_observed(sim_world *w, const sim_owner *o) {
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    SIM_CHECK(w, w->targets[k].kind == KIND_WEAK || o->observed[k],
              "something is written before the cursor of sink %d was read", (int)k);
  }
}

static void to_store(sim_world *w, sim_owner *o, const coord_command *command) {
  weir_error err = {0};
  coord_event e = sim_event(COORD_RESERVED, COORD_NONE, 0, command->attempt);
  switch (command->type) {
    case COORD_RESERVE:
      sim_store_reserve(w, o, command, &err);
      break;
    case COORD_DECIDE:
      e.type = COORD_DECIDED;
      sim_store_decide(w, o, command, &err);
      break;
    default:
      e.type = COORD_ABORTED;
      sim_store_abort(w, o, command, &err);
  }
  sim_post(w, o, e, err.code ? &err : NULL);
}

static void to_committer(sim_world *w, sim_owner *o, const coord_command *command) {
  uint32_t sink = command->sink;
  sim_job job = {
      .type = command->type, .attempt = command->attempt, .repeat = command->repeat != 0};
  SIM_CHECK(w, command->type != COORD_CLEAN || !o->unsettled[sink].checkpoint,
            "sink %d: attempt %d is cleaned while a batch is not settled", (int)sink,
            (int)command->attempt);
  bool own_thread = w->targets[sink].overlap || command->type != COORD_COMMIT;
  if (command->type == COORD_COMMIT) {
    SIM_CHECK(w, !o->commits_out[sink], "two batches of sink %d are out", (int)sink);
    SIM_CHECK(w, own_thread || !o->prepares_out[sink],
              "sink %d commits beside its pre_commit and has no overlap", (int)sink);
    const weir_cursor *last =
        &command->batch->attempts[command->batch->n_attempts - 1].cursor;
    bool again = o->unsettled[sink].checkpoint != 0;
    SIM_CHECK(w, again == (command->repeat != 0),
              "sink %d: a repeat is not said to be one", (int)sink);
    SIM_CHECK(w, !again || weir_cursor_equal(last, &o->unsettled[sink]),
              "sink %d: attempt %d is sent while the batch up to %d is not settled",
              (int)sink, (int)last->checkpoint, (int)o->unsettled[sink].checkpoint);
    o->unsettled[sink] = *last; /* until a good answer */
    o->commits_out[sink]++;
    job.batch = copy_batch(w, command->batch);
  }
  for (size_t i = 0; command->type == COORD_CLEAN && i < command->n_entries; i++) {
    const weir_store_entry *e = &command->entries[i];
    SIM_CHECK(w, e->present, "sink %d: an intent was lost", (int)sink);
    job.intents[job.n_intents++] = sim_decode(w, 1, e->data, e->size);
  }
  add_job(w, own_thread ? &o->committers[sink] : &o->parts[sink][0].jobs, &job);
}

static void to_part(sim_world *w, sim_owner *o, const coord_command *command) {
  uint32_t sink = command->sink;
  const sim_job job = {.type = command->type,
                       .attempt = command->attempt,
                       .next = command->next,
                       .generation = command->generation};
  for (uint32_t l = 0; command->type == COORD_PURGE && l < w->n_lanes; l++) {
    SIM_CHECK(w, o->lanes[l].stopped, "queues are purged while lane %d pushes", (int)l);
  }
  if (command->type == COORD_PRE_COMMIT) {
    SIM_CHECK(w, w->targets[sink].overlap || !o->commits_out[sink],
              "sink %d prepares beside its commit and has no overlap", (int)sink);
    o->prepares_out[sink]++;
  }
  add_job(w, &o->parts[sink][command->participant - 1].jobs, &job);
}

static void to_lane(sim_world *w, sim_owner *o, uint32_t lane,
                    const coord_command *command) {
  sim_job job = {.type = command->type,
                 .attempt = command->attempt,
                 .generation = command->generation,
                 .rows = command->rows};
  if (command->has_position)
    memcpy(&job.position, command->position, sizeof(job.position));
  add_job(w, &o->lanes[lane].jobs, &job);
}

/* Of a new attempt, or again after barriers with nothing in front of them. */
static void open_gates(sim_world *w, sim_owner *o, uint64_t attempt) {
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    SIM_CHECK(w, !o->lanes[l].cut, "attempt %d is begun again and has rows of lane %d",
              (int)attempt, (int)l);
    o->lanes[l].barred = false;
  }
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    for (uint32_t p = 0; p < o->n_parts[k]; p++) {
      sim_open_gate(w, &o->parts[k][p], w->targets[k].kind, attempt);
    }
  }
}

/* Timeouts come of time that ran away, which is a fault too. */
static bool was_injected(const weir_error *error) {
  return error->code == WEIR_E_TIMEOUT || strstr(error->message, "injected") != NULL;
}

/* Whoever ends in peace leaves nothing behind that the cursor has passed, but what its cleaner could not
 * remove. */
static void check_cleaned(sim_world *w, const sim_store *s) {
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    const sim_target *t = &w->targets[k];
    for (uint64_t n = 1; t->kind != KIND_WEAK && n < t->cursor.checkpoint; n++) {
      SIM_CHECK(w,
                s->attempts[n].state != WEIR_ATTEMPT_ABORT || s->attempts[n].cleaned[k] ||
                    s->attempts[n].clean_failed[k],
                "sink %d: attempt %d is not cleaned", (int)k, (int)n);
    }
  }
}

/* Nobody stops with an error but who was fenced, met another history, or was told to by a fault. */
static void stopped(sim_world *w, sim_owner *o, const weir_error *error) {
  sim_trace(w, "owner %d stops: %s", o->index,
            error ? error->message : "all is delivered");
  if (error && !was_injected(error)) {
    bool fenced = sim_store_lease(w, o) != WEIR_OK;
    bool conflict =
        w->copied && (error->code == WEIR_E_CONFLICT || error->code == WEIR_E_FENCED);
    SIM_CHECK(w, fenced || conflict, "owner %d stops: %s", o->index, error->message);
  }
  bool done = !error;
  bool other = error && w->copied && !was_injected(error);
  if (done) sim_target_has(w, o->store, w->stores[o->store].decided);
  bool all = done && !o->drained;
  if (!sim_store_lease(w, o)) {
    sim_store_flush(w, o);
    if (done && !w->copied) check_cleaned(w, &w->stores[o->store]);
  }
  sim_owner_kill(w, o);
  w->counts->refusals += other;
  if (all || other) o->life = OWNER_DONE;
}

static void run(sim_world *w, sim_owner *o, const coord_command *command) {
  if (command->type != COORD_TAKE_OVER && command->type != COORD_SEEN &&
      command->type != COORD_STOP) {
    check_observed(w, o);
  }
  switch (command->type) {
    case COORD_RESERVE:
    case COORD_DECIDE:
    case COORD_ABORT:
      to_store(w, o, command);
      break;
    case COORD_TAKE_OVER:
    case COORD_COMMIT:
    case COORD_CLEAN:
      to_committer(w, o, command);
      break;
    case COORD_GET_INTENT:
    case COORD_BEGIN:
    case COORD_PRE_COMMIT:
    case COORD_ROLLBACK:
    case COORD_PURGE:
      to_part(w, o, command);
      break;
    case COORD_OPEN_GATES:
      open_gates(w, o, command->attempt);
      break;
    case COORD_SEND_BARRIERS:
    case COORD_STOP_LANES:
      for (uint32_t l = 0; l < w->n_lanes; l++) to_lane(w, o, l, command);
      break;
    case COORD_SEEK:
      to_lane(w, o, command->lane, command);
      break;
    case COORD_SEEN:
      o->seen[command->sink] = command->cursor;
      o->saw[command->sink] = true;
      break;
    case COORD_MARK_CLEANED:
      SIM_CHECK(w, o->n_cleaned < ATTEMPTS, "too much was cleaned");
      o->cleaned[o->n_cleaned] = command->attempt;
      o->cleaned_sink[o->n_cleaned++] = command->sink;
      break;
    case COORD_TELL_LANE:
      SIM_CHECK(w, command->attempt >= o->told, "lanes are told of %d after %d",
                (int)command->attempt, (int)o->told);
      o->told = command->attempt;
      sim_target_has(w, o->store, command->attempt);
      break;
    case COORD_STOP:
      stopped(w, o, command->error);
      break;
  }
}

/* `over`: the lease is lost, or what the store did is not known, so nothing may follow but the stop. */
static void run_all(sim_world *w, sim_owner *o, bool over) {
  coord_command command;
  while (o->life == OWNER_LIVE && coord_next(o->c, &command)) {
    SIM_CHECK(w, !over || command.type == COORD_STOP,
              "owner %d goes on with command %d after an answer that ends it", o->index,
              command.type);
    sim_trace(w, "owner %d: command %d, sink %d.%d, lane %d, attempt %d", o->index,
              command.type, (int)command.sink, (int)command.participant,
              (int)command.lane, (int)command.attempt);
    run(w, o, &command);
  }
}

/* ---- stepping */

void sim_owner_step(sim_world *w, sim_owner *o) {
  weir_error err = {0};
  sim_mail m = o->mail[o->first_mail];
  o->first_mail = (o->first_mail + 1) % MAIL;
  o->n_mail--;
  m.event.error = m.error;
  if (m.event.type == COORD_COMMITTED) {
    o->commits_out[m.event.sink]--;
    if (!m.error) o->unsettled[m.event.sink] = (weir_cursor){0};
  }
  if (m.event.type == COORD_PREPARED) o->prepares_out[m.event.sink]--;
  if (m.event.type == COORD_OBSERVED) o->observed[m.event.sink] |= !m.error;
  bool of_store = m.event.type == COORD_RESERVED || m.event.type == COORD_DECIDED ||
                  m.event.type == COORD_ABORTED;
  bool over = m.event.type == COORD_FENCED || (of_store && m.error);
  sim_trace(w, "owner %d: event %d, sink %d.%d, lane %d, attempt %d%s%s", o->index,
            m.event.type, (int)m.event.sink, (int)m.event.participant, (int)m.event.lane,
            (int)m.event.attempt, m.error ? ": " : "", m.error ? m.error->message : "");
  if (coord_step(o->c, w->now, &m.event, &err))
    sim_fail(w, "coord_step: %s", err.message);
  free(m.error);
  run_all(w, o, over);
}

void sim_owner_tick(sim_world *w, sim_owner *o) {
  weir_error err = {0};
  coord_event tick = {.type = COORD_TICK, .sink = COORD_NONE, .lane = COORD_NONE};
  if (coord_step(o->c, w->now, &tick, &err)) sim_fail(w, "coord_step: %s", err.message);
  run_all(w, o, false);
}

void sim_committer_job(sim_world *w, sim_owner *o, uint32_t sink) {
  const sim_job job = sim_job_take(&o->committers[sink]);
  switch (job.type) {
    case COORD_TAKE_OVER:
      sim_target_observe(w, o, sink);
      break;
    case COORD_CLEAN:
      sim_target_clean(w, o, sink, &job);
      break;
    default:
      sim_target_commit(w, o, sink, &job);
  }
  sim_batch_free(job.batch);
}

/* ---- life */

static void make_coordinator(sim_world *w, sim_owner *o) {
  weir_error err = {0};
  coord_sink sinks[SINKS];
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    const sim_target *t = &w->targets[k];
    sinks[k] = (coord_sink){.sink_id = sim_sink_names[k],
                            .participants = o->n_parts[k],
                            .committable = t->kind != KIND_WEAK,
                            .overlap = t->overlap,
                            .commit_interval_ns = t->commit_interval};
  }
  uint8_t ephemeral[LANES];
  for (uint32_t l = 0; l < w->n_lanes; l++) ephemeral[l] = sim_is_ephemeral(w, l);
  const coord_config config = {.sinks = sinks,
                               .n_sinks = w->n_sinks,
                               .lanes = sim_lane_names,
                               .ephemeral = ephemeral,
                               .n_lanes = w->n_lanes,
                               .interval_ns = 1000,
                               .timeout_ns = 60000,
                               .backoff_min_ns = 100,
                               .backoff_max_ns = 3000};
  const weir_store_state *state = sim_store_load(w, o);
  if (coord_new(&config, state, o->token, &o->c, &err))
    sim_fail(w, "coord_new: %s", err.message);
}

/* A new process: the lease first, durable, then what the store knows. */
void sim_owner_start(sim_world *w, sim_owner *o, int store) {
  int index = o->index;
  memset(o, 0, offsetof(sim_owner, cleaned));
  sim_job(*jobs)[JOBS] = o->jobs;
  for (int k = 0; k < SINKS; k++) {
    o->committers[k].v = *jobs++;
    for (int p = 0; p < PARTS; p++) o->parts[k][p].jobs.v = *jobs++;
  }
  for (int l = 0; l < LANES; l++) o->lanes[l].jobs.v = *jobs++;
  o->index = index;
  o->store = store;
  o->life = OWNER_LIVE;
  /* A step of its own each time: a copy of a store and its original give other tokens. */
  o->token = w->stores[store].token += 1 + w->turn * w->turn;
  w->counts->starts++;
  for (uint32_t k = 0; k < w->n_sinks; k++) o->n_parts[k] = 1 + sim_below(w, PARTS);
  const sim_store *s = &w->stores[store];
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    o->lanes[l].position = s->attempts[s->decided].position[l];
    o->lanes[l].rows = sim_count(s->attempts[s->decided].taken.lane[l]);
    o->lanes[l].lost = s->lost[l];
  }
  sim_trace(w, "owner %d starts on store %d under token %d", o->index, store,
            (int)o->token);
  make_coordinator(w, o);
  sim_post(w, o, sim_event(COORD_START, COORD_NONE, 0, 0), NULL);
}

static void drop_jobs(sim_jobs *jobs) {
  for (; jobs->n; jobs->n--) {
    sim_batch_free(jobs->v[jobs->first].batch);
    jobs->first = (jobs->first + 1) % JOBS;
  }
}

void sim_owner_kill(sim_world *w, sim_owner *o) {
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    const sim_lane *lane = &o->lanes[l];
    w->vanished += sim_count(lane->cut | lane->tail | lane->fresh) + lane->unsaid;
  }
  for (; o->n_mail; o->n_mail--) {
    sim_mail *m = &o->mail[o->first_mail];
    weir_bytes_release(&m->event.bytes);
    weir_bytes_release(&m->event.intent);
    free(m->error);
    o->first_mail = (o->first_mail + 1) % MAIL;
  }
  for (int k = 0; k < SINKS; k++) {
    drop_jobs(&o->committers[k]);
    for (int p = 0; p < PARTS; p++) drop_jobs(&o->parts[k][p].jobs);
  }
  coord_free(o->c);
  o->c = NULL;
  o->life = OWNER_DEAD;
}
