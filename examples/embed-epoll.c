/* SPDX-License-Identifier: Apache-2.0 */
/* One thread and one epoll loop: the program's own source (a timer that stands for a socket) and the
 * pipeline's descriptor side by side. No call here waits: where there is no room, the loop stops looking
 * at its source until the pipeline says ROOM, and so pushes back on whoever sends. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <weir/weir.h>

int next_batch(uint64_t n, struct ArrowArray *out); /* yours; 0 = no more */

typedef struct feed {
  weir_input *input;
  uint64_t next; /* the batch to push next: our position */
  int timer, epoll, ended;
} feed;

static void listen_to(feed *f, int timer) { /* or not, while there is no room */
  struct epoll_event want = {.events = timer ? EPOLLIN : 0, .data.fd = f->timer};
  epoll_ctl(f->epoll, EPOLL_CTL_MOD, f->timer, &want);
}

/* One batch for one expiry. What is refused is given back and made again later. */
static weir_status on_timer(feed *f, weir_error *err) {
  uint64_t expired;
  struct ArrowArray batch = {0};
  weir_error why = {0};
  weir_status status = WEIR_OK;
  if (read(f->timer, &expired, sizeof(expired)) < 0) return WEIR_OK; /* not yet */
  int more = next_batch(f->next, &batch);
  if (more)
    status = weir_input_push(f->input, &batch, 0, &why);
  else
    status = weir_input_end(f->input, &f->next, sizeof(f->next), &why);
  if (batch.release) batch.release(&batch);
  if (!status && more) {
    f->next++;
    return WEIR_OK;
  }
  f->ended = !status;
  listen_to(f, 0); /* until ROOM or REWIND */
  if (!status || status == WEIR_E_TIMEOUT || status == WEIR_E_REWOUND) return WEIR_OK;
  *err = why;
  return status;
}

/* Also the start of a run: go to the last decided position. */
static int rewind_to(feed *f, weir_error *err) {
  weir_bytes at = {0};
  weir_status status = weir_input_position(f->input, &at, err);
  f->next = 0;
  if (at.size == sizeof(f->next)) memcpy(&f->next, at.data, at.size);
  weir_bytes_release(&at);
  f->ended = 0;
  listen_to(f, 1);
  return status;
}

/* 1 once the pipeline is over. */
static int on_events(feed *f, weir_pipeline *pipeline, weir_error *err) {
  weir_event event = {.struct_size = sizeof(event)};
  weir_status status = WEIR_OK;
  while (!status && !weir_pipeline_next(pipeline, &event, 0, err)) {
    switch (event.type) {
      case WEIR_EVENT_NONE:
        return 0;
      case WEIR_EVENT_BARRIER: /* one of an attempt that was given up is refused: nothing to do */
        (void)weir_input_barrier(f->input, event.checkpoint, &f->next, sizeof(f->next),
                                 NULL);
        break;
      case WEIR_EVENT_REWIND:
        status = rewind_to(f, err);
        break;
      case WEIR_EVENT_ROOM:
        listen_to(f, !f->ended);
        break;
      case WEIR_EVENT_COMMITTED:
        break; /* what the sender waits for: all before it is delivered */
      case WEIR_EVENT_FAILED:
        *err = event.error;
        return 1;
      default:
        return 1;
    }
  }
  return 1;
}

int main(void) {
  weir_config *config = NULL;
  weir_pipeline *pipeline = NULL;
  weir_error err = {0};
  feed f = {.epoll = epoll_create1(EPOLL_CLOEXEC),
            .timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
  struct itimerspec often = {.it_interval.tv_nsec = 100000, .it_value.tv_nsec = 100000};
  struct epoll_event want = {.events = EPOLLIN, .data.fd = f.timer}, ready;
  int over =
      weir_config_new(&config, &err) ||
      weir_config_read_file(config, "push.yaml", &err) ||
      weir_pipeline_open(config, NULL, 0, &pipeline, &err) || /* blocks: recovery */
      weir_pipeline_input(pipeline, "readings", 0, NULL, &f.input, &err) ||
      epoll_ctl(f.epoll, EPOLL_CTL_ADD, f.timer, &want) || rewind_to(&f, &err);
  if (!over) {
    want.data.fd = weir_pipeline_fd(pipeline);
    over = epoll_ctl(f.epoll, EPOLL_CTL_ADD, want.data.fd, &want) ||
           timerfd_settime(f.timer, 0, &often, NULL);
  }
  while (!over && epoll_wait(f.epoll, &ready, 1, -1) >= 0)
    over = ready.data.fd == f.timer ? on_timer(&f, &err) : on_events(&f, pipeline, &err);
  if (pipeline) weir_pipeline_close(pipeline, 0, err.code ? NULL : &err);
  weir_config_free(config);
  close(f.timer);
  close(f.epoll);
  return err.code ? fprintf(stderr, "%s\n", err.message), 1 : 0;
}
