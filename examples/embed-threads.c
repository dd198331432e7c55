/* SPDX-License-Identifier: Apache-2.0 */
/* Four threads, each with a lane of its own: lane i pushes batches i, i + 4, i + 8 .. and keeps its own
 * place. The main thread takes the events and passes barriers on, since a lane answers one between two of
 * its pushes. A lane learns of a rewind from its own calls; the event only wakes one that has ended. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

int next_batch(uint64_t n, struct ArrowArray *out); /* yours; 0 = no more */

enum { LANES = 4, WAIT_NS = 10000000 };

typedef struct lane {
  pthread_t thread;
  weir_input *input;
  uint64_t number, next; /* the batch to push next: this lane's position */
  pthread_mutex_t lock;
  pthread_cond_t told;
  uint64_t barrier; /* asked for and not answered yet; 0 = none */
  int woken, over;
} lane;

static void tell(lane *l, uint64_t barrier, int over) {
  pthread_mutex_lock(&l->lock);
  if (barrier) l->barrier = barrier;
  l->over |= over;
  l->woken = 1;
  pthread_cond_signal(&l->told);
  pthread_mutex_unlock(&l->lock);
}

/* What was asked for meanwhile; an ended lane waits for it. */
static int listen(lane *l, int ended, uint64_t *barrier) {
  pthread_mutex_lock(&l->lock);
  while (ended && !l->woken) pthread_cond_wait(&l->told, &l->lock);
  *barrier = l->barrier;
  l->barrier = 0;
  l->woken = 0;
  int over = l->over;
  pthread_mutex_unlock(&l->lock);
  return !over;
}

static weir_status go_back(lane *l) {
  weir_bytes at = {0};
  weir_status status = weir_input_position(l->input, &at, NULL);
  l->next = l->number;
  if (at.size == sizeof(l->next)) memcpy(&l->next, at.data, at.size);
  weir_bytes_release(&at);
  return status;
}

/* One step: a barrier, a batch, or the end, whichever is due. */
static weir_status step(lane *l, uint64_t barrier, int *ended) {
  struct ArrowArray batch = {0};
  weir_status status = WEIR_OK;
  if (barrier && !*ended)
    (void)weir_input_barrier(l->input, barrier, &l->next, sizeof(l->next), NULL);
  if (*ended || !next_batch(l->next, &batch)) {
    status = weir_input_end(l->input, &l->next, sizeof(l->next), NULL);
    *ended = status != WEIR_E_REWOUND;
    return status;
  }
  status = weir_input_push(l->input, &batch, WAIT_NS, NULL);
  if (!status) l->next += LANES;
  if (status) batch.release(&batch); /* still ours */
  return status;
}

static void *push_lane(void *arg) {
  lane *l = arg;
  int ended = 0;
  uint64_t barrier = 0;
  if (go_back(l)) return NULL;
  while (listen(l, ended, &barrier)) {
    if (step(l, barrier, &ended) == WEIR_E_REWOUND && go_back(l)) return NULL;
  }
  return NULL;
}

int main(void) {
  weir_config *config = NULL;
  weir_pipeline *pipeline = NULL;
  weir_error err = {0};
  weir_event event = {.struct_size = sizeof(event)};
  lane lanes[LANES] = {0};
  weir_status failed = weir_config_new(&config, &err) ||
                       weir_config_read_file(config, "push.yaml", &err) ||
                       weir_config_set(config, "sources.readings.lanes", "4", &err) ||
                       weir_pipeline_open(config, NULL, 0, &pipeline, &err);
  for (uint32_t i = 0; i < LANES && !failed; i++) {
    lanes[i].number = i;
    pthread_mutex_init(&lanes[i].lock, NULL);
    pthread_cond_init(&lanes[i].told, NULL);
    failed = weir_pipeline_input(pipeline, "readings", i, NULL, &lanes[i].input, &err);
  }
  int n = 0;
  while (!failed && n < LANES &&
         !pthread_create(&lanes[n].thread, NULL, push_lane, &lanes[n]))
    n++;
  while (!failed && event.type != WEIR_EVENT_ENDED && event.type != WEIR_EVENT_FAILED) {
    weir_pipeline_next(pipeline, &event, -1, &err);
    for (int i = 0; i < n; i++) {
      if (event.type == WEIR_EVENT_BARRIER) tell(&lanes[i], event.checkpoint, 0);
      if (event.type == WEIR_EVENT_REWIND && event.input == lanes[i].input)
        tell(&lanes[i], 0, 0);
    }
  }
  for (int i = 0; i < n; i++) {
    tell(&lanes[i], 0, 1);
    pthread_join(lanes[i].thread, NULL);
  }
  if (event.type == WEIR_EVENT_FAILED) err = event.error;
  weir_pipeline_close(pipeline, 0, err.code ? NULL : &err);
  weir_config_free(config);
  return err.code ? fprintf(stderr, "%s\n", err.message), 1 : 0;
}
