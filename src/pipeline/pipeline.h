/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a pipeline: what it is made of, and which thread may touch what.
 *
 * plan.c   config -> sources and sinks with contracts; admission, first pass. No I/O.
 * letters.c who sends bad rows to which sink.
 * open.c   store, schemas, admission, bindings; what a refused open leaves nothing of.
 * schema.c schemas that sources infer: kept with the deployment, told to people.
 * start.c  lanes, actors, coordinator, threads.
 * hooks.c  hooks of connectors that have no thread of their own, with deadlines.
 * run.c    the coordinator's thread: executes commands, feeds answers back.
 * input.c  what a host calls while the pipeline runs: inputs, events.
 * report.c JSON documents.
 * check.c  what is promised, and what the targets say to it.
 * audit.c  verify and clean: targets beside what the store knows.
 * adopt.c  a lost store, made anew of what the targets say.
 * resolve.c a person's word on a decided attempt that its target refuses for good.
 */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include <weir/pipeline.h>

#include "base/base.h"
#include "config/config.h"
#include "connector/connector.h"
#include "coord/coord.h"
#include "task/task.h"

#define PIPE_NONE UINT32_MAX

typedef struct pipe_source {
  char *name;
  connector_spec *spec;
  connector_source *source;
  weir_source_contract contract;
  bool push;       /* driven by the host */
  uint32_t lanes;  /* 1 for all but push sources */
  uint32_t lane_0; /* index of its first lane */
  int64_t open_timeout_ns, read_timeout_ns;
  weir_schema *schema;
  uint32_t letters; /* index of the sink that its bad rows go to, or PIPE_NONE */
} pipe_source;

typedef struct pipe_sink {
  char *name;
  connector_spec *spec;
  bool has_committer;
  weir_contract contract;
  weir_names key;
  uint32_t writers;
  bool takes_letters; /* and nothing else */
  uint32_t letters;   /* index of the sink that its own bad rows go to, or PIPE_NONE */
  /* indexes of sources; of a sink that takes letters, those whose rows may become such */
  uint32_t *from;
  const char **from_names;
  size_t n_from;
  uint8_t *fed; /* by lane */
  bool flush_interval_given, changelog_as_rows;
  int64_t flush_interval_ns;
  task_timeouts timeouts;
  weir_namespace ns;
  weir_binding binding;
  connector_sink **first; /* generation 1 of each participant, until its actor has it */
  task_actor **actors;
  uint32_t *generations; /* how many each participant has had */
} pipe_sink;

/* Contracts and admission of a config; no I/O. */
typedef struct pipe_plan {
  config_top top;
  connector_host *host;
  pipe_source *sources;
  size_t n_sources;
  pipe_sink *sinks;
  size_t n_sinks;
  uint32_t n_lanes;
  weir_schema *letters; /* the columns of a dead letter; NULL: no sink takes them */
  base_buf notes;       /* NUL-separated things to warn of */
} pipe_plan;

/* A plan that fails halfway is ended by plan_done like a whole one. */
weir_status plan_init(pipe_plan *plan, const weir_config *config, const base_log *log,
                      weir_error *err);
void plan_done(pipe_plan *plan);
/* Admission on the plan; the second pass when `bound` (schemas and bindings are there). */
weir_status plan_admit(const pipe_plan *plan, bool bound,
                       connector_admission_table *table, weir_error *err);

/* The schema of the rows that a sink gets, once its sources have theirs; borrowed. */
weir_schema *plan_input(const pipe_plan *plan, const pipe_sink *s);

/* ---- letters.c */

/* Which sinks take letters, before anything else is known of sinks than their options. */
weir_status plan_find_letters(pipe_plan *plan, const weir_config *config,
                              weir_error *err);
/* `from` and `fed` of the sinks that take letters, once the others have theirs. */
weir_status plan_route_letters(pipe_plan *plan, const weir_config *config,
                               weir_error *err);
/* Participants of other sinks that send letters to that one, of the sinks before `end` alone. */
uint32_t plan_letter_feeders(const pipe_plan *plan, size_t sink, size_t end);

struct weir_input {
  weir_pipeline *pipeline;
  uint32_t lane;
  uint32_t source;
};

typedef struct pipe_lane {
  char *name; /* as the store knows it: "orders", or "orders/2" of a push source */
  uint32_t source;
  task_lane *lane;
  task_source *loop; /* NULL: the host pushes */
  weir_input input;
  /* under the pipeline's lock */
  weir_bytes
      decided; /* last decided position, that of the pipeline's attempt `decided_by` */
  weir_bytes begin; /* without a decided one, what the source kept of its first start */
  uint64_t decided_rows, lost;
  uint64_t rows_0, lost_0; /* as they were when this run began */
} pipe_lane;

typedef struct pipe_event {
  struct pipe_event *link;
  weir_event event;
} pipe_event;

/* A sink's figures for documents; under the pipeline's lock. */
typedef struct pipe_figures {
  uint64_t rows, bytes;     /* decided, since the deployment began */
  uint64_t rows_0, bytes_0; /* as they were when this run began */
  weir_cursor seen;
  uint64_t *unshown; /* decided attempts with rows that the target does not show */
  size_t n_unshown, room;
} pipe_figures;

struct weir_pipeline {
  pipe_plan plan;
  base_log log;
  uint32_t flags;
  char *state_name; /* "state folder ..." or "checkpoint store ...", for messages */
  weir_store *store;
  weir_store_state
      *state; /* as loaded at the start; NULL once the pipeline has started */
  uint8_t deployment[WEIR_UUID_SIZE];
  uint8_t identity[WEIR_DIGEST_SIZE];
  uint64_t token;
  task_mailbox *mailbox;
  coord *coord;          /* this and below: the coordinator thread's */
  uint64_t decided_by;   /* attempt whose positions the lanes hold; 0: none */
  int64_t sealing_since; /* 0: every barrier asked for has come */
  pipe_lane *lanes;
  pthread_t thread;
  atomic_bool started; /* everything is open and the coordinator's thread runs */
  int64_t began;

  pthread_mutex_t start_lock; /* schemas of push sources, and the start; before `lock` */
  weir_error start_error; /* a start that failed is not tried again; code 0: none did */

  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* below: under lock */
  pipe_event *first, **last;
  weir_event final; /* ENDED or FAILED once it is over */
  bool over;        /* the coordinator said stop */
  bool quit;        /* the host asks for an end at once */
  bool draining;
  /* copies of the coordinator's view */
  uint64_t attempt, decided, committed, epochs;
  const char *phase;     /* NULL: recovery is not over */
  pipe_figures *figures; /* by sink */
  int event_fd;
};

#define PIPE_ID(sink, participant) ((sink)->actors[(participant) - 1])

/* ---- hooks.c: a round of hooks, some at a time, each with a deadline */

typedef enum pipe_hook {
  PIPE_RESOLVE,
  PIPE_PREPARE,
  PIPE_OPEN,
  PIPE_FIND_CURSORS,
  PIPE_CLOSE,
  PIPE_SOURCE_RESOLVE,
  PIPE_SOURCE_OPEN
} pipe_hook;

typedef struct pipe_round pipe_round;

weir_status pipe_round_new(size_t capacity, pipe_round **out, weir_error *err);
void pipe_round_free(pipe_round *round); /* NULL is a no-op */
/* k: index of the participant. `input` for PIPE_RESOLVE. At most `capacity` calls in all. */
weir_status pipe_round_add_sink(pipe_round *round, pipe_hook hook, pipe_sink *sink,
                                uint32_t k, weir_schema *input, weir_error *err);
weir_status pipe_round_add_source(pipe_round *round, pipe_hook hook, pipe_source *source,
                                  const weir_bytes *position, weir_error *err);
/* Runs them; the first failure in the order of adding. After it the round is only to be freed. */
weir_status pipe_round_run(pipe_round *round, weir_error *err);
/* Moves schemas and bindings to their sources and sinks. */
void pipe_round_keep(pipe_round *round);
/* What call i found; NULL behind the last. */
const weir_cursor_list *pipe_round_cursors(const pipe_round *round, size_t i,
                                           const pipe_sink **sink);

/* ---- open.c */

/* Names the pipeline in front of an error, which connectors and the rooms below cannot do.
 * Returns err's code, or `status` where err is NULL. */
weir_status plan_error(const pipe_plan *plan, weir_status status, weir_error *err);
weir_status pipeline_error(const weir_pipeline *p, weir_status status, weir_error *err);
/* Opens what is left once every source's schema is known. start_lock held. */
weir_status pipeline_start(weir_pipeline *p, weir_error *err);
bool pipeline_ready(const weir_pipeline *p); /* every schema is known */
/* The schema of a push source: the host's, or with NULL the configuration's. */
weir_status pipeline_give_schema(pipe_source *s, const struct ArrowSchema *schema,
                                 weir_error *err);
/* Closes sinks that were opened and never given to an actor. */
void pipeline_close_unstarted(weir_pipeline *p);

/* Sources that feed one sink have the same columns. */
weir_status plan_check_input(const pipe_plan *plan, const pipe_sink *s, weir_error *err);
/* No sink before that one has the same target, as far as bindings tell. */
weir_status plan_check_target(const pipe_plan *plan, size_t sink, weir_error *err);

/* ---- store.c */

/* SHA-256 of the pipeline's name and a format version. */
weir_status pipeline_identify(const char *name, uint8_t out[WEIR_DIGEST_SIZE],
                              weir_error *err);
/* Opens the store where the configuration has it, takes the lease and loads. */
weir_status pipeline_open_store(weir_pipeline *p, weir_error *err);
/* The store alone, with the lease; `anew`: a database sets aside what it has of an old deployment. */
weir_status pipeline_take_store(const config_top *top, bool anew, weir_store **out,
                                weir_error *err);
/* Moves the old state folder away, if there is one, while it is owned: by `held`, else by a lease taken here, so
 * that no other instance can be using it. *aside is its new name, to free(). */
weir_status pipeline_put_folder_aside(const config_top *top, const weir_store *held,
                                      char **aside, weir_error *err);
/* What it knows, without the lease, also beside a live owner. */
weir_status pipeline_read_store(const config_top *top, weir_store_state **out,
                                weir_error *err);

/* ---- report.c */

/* Adding to a document answers false or NULL without memory; finish fails then too, so that nothing else
 * needs to be looked at. It leaves the document to its owner. */
struct yyjson_mut_doc;
struct yyjson_mut_val;
weir_status pipeline_json_new(struct yyjson_mut_doc **doc, struct yyjson_mut_val **root,
                              weir_error *err);
weir_status pipeline_json_finish(struct yyjson_mut_doc *doc, weir_bytes *out,
                                 weir_error *err);
void pipeline_json_cursor(struct yyjson_mut_doc *doc, struct yyjson_mut_val *in,
                          const weir_cursor *cursor);
void pipeline_json_deployment(struct yyjson_mut_doc *doc, struct yyjson_mut_val *in,
                              const uint8_t *deployment);

/* The lists `unresolved` and `resolved`; `state` of the second may be NULL. */
void pipeline_json_unresolved(struct yyjson_mut_doc *doc, struct yyjson_mut_val *root,
                              const weir_store_state *state);
void pipeline_json_resolved(struct yyjson_mut_doc *doc, struct yyjson_mut_val *root,
                            const weir_store_state *state);
/* The member `sources`: positions in their sources' words. */
void pipeline_json_sources(struct yyjson_mut_doc *doc, struct yyjson_mut_val *root,
                           const weir_config *config, const weir_store_position *v,
                           size_t n);
/* Decided with rows, not seen at the target, and not resolved by a person. */
bool pipeline_unshown(const weir_store_state *state, const weir_store_sink *part);
/* Rows and bytes of that attempt alone. */
void pipeline_amount_of(const weir_store_state *state, const weir_store_sink *part,
                        uint64_t *rows, uint64_t *bytes);

/* ---- audit.c */

/* Binds participant 1 outside of a run; `deployment` NULL: to none. */
weir_status pipeline_bind_one(const pipe_plan *plan, pipe_sink *s,
                              const uint8_t *deployment, weir_error *err);

/* ---- resolve.c */

/* The record of a resolution; NULL: the binding is none, or without memory. yyjson_doc_free. */
struct yyjson_doc;
struct yyjson_doc *pipeline_read_resolution(const weir_store_binding *binding);
/* The attempts of a sink that are resolved, into room for `n_bindings`; how many. */
size_t pipeline_resolved_attempts(const weir_store_state *state, const char *sink,
                                  uint64_t *out);
/* Where a target stands. */
typedef struct pipe_look {
  uint64_t attempt; /* to ask of; 0: of none */
  bool lacks;       /* something of it is missing */
  weir_verified seen;
  uint64_t rows; /* of what it still has records of */
  weir_error foreign;
} pipe_look;
/* Under that deployment, asked of a sink that was not bound yet. WEIR_E_CONFLICT: it is another deployment's. */
weir_status pipeline_look(pipe_plan *plan, size_t sink,
                          const uint8_t deployment[WEIR_UUID_SIZE], pipe_look *look,
                          weir_error *err);

/* ---- begin.c */

/* Looks up what an earlier start kept of a lane; it is absent when there is nothing. */
weir_status pipeline_find_begin(const weir_store_state *state, pipe_lane *lane,
                                weir_error *err);
/* Where the lane's source is to be opened and sought when nothing newer is decided; may be absent. */
const weir_bytes *pipeline_lane_begin(const pipe_lane *lane);
/* After the sources were opened: keeps where they began, durable, if they ask for it. */
weir_status pipeline_keep_begins(weir_pipeline *p, weir_error *err);

/* ---- schema.c */

/* Hands each source the schema that an earlier start inferred, if `state` has one. */
weir_status pipeline_use_kept_schemas(const pipe_plan *plan,
                                      const weir_store_state *state, weir_error *err);
/* After the sources answered: keeps what was inferred now, durable, and tells it. */
weir_status pipeline_keep_schemas(weir_pipeline *p, weir_error *err);
/* Whether `state` (may be NULL) has a schema of that source. */
bool pipeline_has_kept_schema(const weir_store_state *state, const char *source);
/* {"column": "type"} of a schema, as a document's member and as text to free(). */
struct yyjson_mut_val *pipeline_schema_json(struct yyjson_mut_doc *doc,
                                            const weir_schema *schema);
/* The schemas that are inferred: those that `state` (may be NULL) has, else each source is asked, and what
 * it cannot answer becomes a note. No target is touched. */
weir_status plan_resolve_inferred(pipe_plan *plan, const weir_store_state *state,
                                  weir_error *err);

/* ---- start.c */

/* Lanes, and the coordinator, which refuses a config that the store's state does not fit. */
weir_status pipeline_make_coordinator(weir_pipeline *p, weir_error *err);
/* Actors and all threads. */
weir_status pipeline_make_threads(weir_pipeline *p, weir_error *err);
/* One more generation for a retired participant; its thread opens it. */
weir_status pipeline_renew(weir_pipeline *p, uint32_t sink, uint32_t participant,
                           weir_error *err);

/* ---- run.c */
void *pipeline_main(void *arg);

/* ---- input.c */
void pipeline_wake(weir_pipeline *p); /* the host has something to look at; lock held */
void pipeline_post_event(weir_pipeline *p, int32_t type, uint64_t checkpoint,
                         weir_input *input, const weir_error *error);
/* Takes back events of that type for that input that were not given to the host yet. */
void pipeline_drop_events(weir_pipeline *p, int32_t type, const weir_input *input);
void pipeline_on_room(void *ctx, uint32_t lane);

#endif
