/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "task/task.h"

typedef struct letter {
  struct letter *link;
  coord_event event;
  weir_error error;
} letter;

struct task_mailbox {
  atomic_int refs;
  pthread_mutex_t lock;
  pthread_cond_t arrived;
  letter *first, **last;
  int lost;
};

weir_status task_mailbox_new(task_mailbox **out, weir_error *err) {
  task_mailbox *box = base_calloc(1, sizeof(*box), err);
  if (!box) return WEIR_E_NOMEM;
  weir_status status = base_mutex_init(&box->lock, err);
  if (status) goto fail_lock;
  status = base_cond_init(&box->arrived, err);
  if (status) goto fail_cond;
  box->last = &box->first;
  atomic_init(&box->refs, 1);
  *out = box;
  return WEIR_OK;
fail_cond:
  pthread_mutex_destroy(&box->lock);
fail_lock:
  free(box);
  return status;
}

static void letter_free(letter *l) {
  weir_bytes_release(&l->event.bytes);
  weir_bytes_release(&l->event.intent);
  free(l);
}

task_mailbox *task_mailbox_ref(task_mailbox *box) {
  atomic_fetch_add(&box->refs, 1);
  return box;
}

void task_mailbox_unref(task_mailbox *box) {
  if (!box || atomic_fetch_sub(&box->refs, 1) != 1) return;
  for (letter *l = box->first; l;) {
    letter *next = l->link;
    letter_free(l);
    l = next;
  }
  pthread_cond_destroy(&box->arrived);
  pthread_mutex_destroy(&box->lock);
  free(box);
}

void task_mailbox_post(task_mailbox *box, coord_event *event) {
  letter *l = calloc(1, sizeof(*l));
  if (l) {
    l->event = *event;
    if (event->error) l->error = *event->error;
  } else {
    weir_bytes_release(&event->bytes);
    weir_bytes_release(&event->intent);
  }
  event->bytes.release = NULL;
  event->intent.release = NULL;
  pthread_mutex_lock(&box->lock);
  if (l) {
    *box->last = l;
    box->last = &l->link;
  } else {
    box->lost = 1;
  }
  pthread_cond_signal(&box->arrived);
  pthread_mutex_unlock(&box->lock);
}

int task_mailbox_take(task_mailbox *box, int64_t deadline_ns, coord_event *event,
                      weir_error *error, int *lost) {
  pthread_mutex_lock(&box->lock);
  while (!box->first && !box->lost)
    if (!base_cond_wait_until(&box->arrived, &box->lock, deadline_ns)) break;
  letter *l = box->first;
  if (l) {
    box->first = l->link;
    if (!box->first) box->last = &box->first;
  }
  *lost = box->lost;
  pthread_mutex_unlock(&box->lock);
  if (!l) return 0;
  *event = l->event;
  if (event->error) {
    *error = l->error;
    event->error = error;
  }
  free(l);
  return 1;
}
