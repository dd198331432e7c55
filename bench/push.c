/* SPDX-License-Identifier: Apache-2.0 */
/* What a push costs the host, and what lanes bring: bench/push CONFIG LANES BATCHES pushes that many batches
 * of 64 Ki rows {id: int64, price: float64, name: utf8} into each lane of the source `in`, and prints the
 * median CPU time that a push which finds room takes of its thread, in microseconds, and the wall seconds from
 * the first push to the end of the pipeline. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

enum { ROWS = 1 << 16, NAME_BYTES = 12, MAX_LANES = 64 };

static int64_t ids[ROWS];
static double prices[ROWS];
static int32_t offsets[ROWS + 1];
static char names[ROWS * NAME_BYTES];

static void make_columns(void) {
  uint64_t state = 1;
  for (int32_t i = 0; i < ROWS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids[i] = i;
    prices[i] = (double)(state >> 40) / 100;
    offsets[i + 1] = offsets[i] + NAME_BYTES;
    snprintf(names + offsets[i], sizeof(names) - (size_t)offsets[i], "name-%06u",
             (unsigned)(state >> 44) % 1000000);
  }
}

/* The columns are static; each batch has its own shells, as it would from a reader. */
typedef struct shell {
  struct ArrowArray columns[3], *children[3];
  const void *none[1], *buffers[3][3];
} shell;

static void release_column(struct ArrowArray *array) {
  array->release = NULL;
}

static void release_batch(struct ArrowArray *array) {
  free(array->private_data);
  array->release = NULL;
}

static void next_batch(struct ArrowArray *out) {
  shell *s = calloc(1, sizeof(*s));
  if (s == NULL) abort();
  s->buffers[0][1] = ids;
  s->buffers[1][1] = prices;
  s->buffers[2][1] = offsets;
  s->buffers[2][2] = names;
  for (int i = 0; i < 3; i++) {
    s->columns[i] = (struct ArrowArray){.length = ROWS,
                                        .n_buffers = i == 2 ? 3 : 2,
                                        .buffers = s->buffers[i],
                                        .release = release_column};
    s->children[i] = &s->columns[i];
  }
  *out = (struct ArrowArray){.length = ROWS,
                             .n_buffers = 1,
                             .n_children = 3,
                             .buffers = s->none,
                             .children = s->children,
                             .release = release_batch,
                             .private_data = s};
}

static double cpu_micros(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static double wall_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
  qsort(values, n, sizeof(*values), compare);
  return values[n / 2];
}

typedef struct lane {
  pthread_t thread;
  weir_input *input;
  double *micros; /* of each push that found room */
  size_t batches, taken;
} lane;

static void fail(const weir_error *err) {
  fprintf(stderr, "%s\n", err->message);
  exit(1);
}

/* One barrier, the last: what is measured is the push and not the checkpoint. */
static void *push_lane(void *arg) {
  lane *l = arg;
  weir_error err = {0};
  for (size_t i = 0; i < l->batches; i++) {
    struct ArrowArray batch;
    next_batch(&batch);
    double start = cpu_micros();
    weir_status status = weir_input_push(l->input, &batch, 0, &err);
    double took = cpu_micros() - start;
    if (!status) l->micros[l->taken++] = took;
    if (status && weir_input_push(l->input, &batch, -1, &err)) fail(&err);
  }
  if (weir_input_end(l->input, &l->batches, sizeof(l->batches), &err)) fail(&err);
  return NULL;
}

static double clock_cost(void) {
  double cost[1001];
  for (size_t i = 0; i < 1001; i++) {
    double start = cpu_micros();
    cost[i] = cpu_micros() - start;
  }
  return median(cost, 1001);
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: push CONFIG LANES BATCHES\n"), 2;
  unsigned long lanes = strtoul(argv[2], NULL, 10), batches = strtoul(argv[3], NULL, 10);
  if (lanes < 1 || lanes > MAX_LANES || batches < 1) return 2;
  make_columns();
  weir_config *config = NULL;
  weir_pipeline *pipeline = NULL;
  weir_error err = {0};
  weir_event event = {.struct_size = sizeof(event)};
  static lane all[MAX_LANES];
  double *micros = calloc(lanes * batches, sizeof(*micros));
  if (micros == NULL || weir_config_new(&config, &err) ||
      weir_config_read_file(config, argv[1], &err) ||
      weir_pipeline_open(config, NULL, 0, &pipeline, &err)) {
    fail(&err);
  }
  for (uint32_t i = 0; i < lanes; i++) {
    all[i] = (lane){.micros = micros + i * batches, .batches = batches};
    if (weir_pipeline_input(pipeline, "in", i, NULL, &all[i].input, &err)) fail(&err);
  }
  double start = wall_seconds();
  for (size_t i = 0; i < lanes; i++) {
    if (pthread_create(&all[i].thread, NULL, push_lane, &all[i])) return 1;
  }
  while (event.type != WEIR_EVENT_ENDED && event.type != WEIR_EVENT_FAILED) {
    if (weir_pipeline_next(pipeline, &event, -1, &err)) fail(&err);
  }
  if (event.type == WEIR_EVENT_FAILED) fail(&event.error);
  double wall = wall_seconds() - start;
  size_t taken = 0;
  for (size_t i = 0; i < lanes; i++) {
    pthread_join(all[i].thread, NULL);
    memmove(micros + taken, all[i].micros, all[i].taken * sizeof(*micros));
    taken += all[i].taken;
  }
  if (weir_pipeline_close(pipeline, 0, &err)) fail(&err);
  weir_config_free(config);
  printf("%.3f %.6f\n", median(micros, taken) - clock_cost(), wall);
  free(micros);
  return 0;
}
