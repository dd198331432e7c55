/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

int next_batch(uint64_t n,
               struct ArrowArray *out); /* yours: the n-th batch; 0 = no more */

int main(void) {
  weir_config *config = NULL;
  weir_pipeline *pipeline = NULL;
  weir_input *in = NULL;
  weir_bytes at = {0};
  weir_error err = {0};
  weir_event event = {.struct_size = sizeof(event), .type = WEIR_EVENT_REWIND};
  uint64_t n = 0, ended = 0;
  int failed = weir_config_new(&config, &err) ||
               weir_config_read_file(config, "push.yaml", &err) ||
               weir_pipeline_open(config, NULL, 0, &pipeline, &err) ||
               weir_pipeline_input(pipeline, "readings", 0, NULL, &in, &err);
  while (!failed && event.type != WEIR_EVENT_ENDED && event.type != WEIR_EVENT_FAILED) {
    struct ArrowArray batch = {0};
    if (event.type ==
        WEIR_EVENT_REWIND) { /* the start too: go on from the last decided */
      failed = weir_input_position(in, &at, &err);
      memcpy(&n, at.size == sizeof(n) ? at.data : (const uint8_t[8]){0}, sizeof(n));
      weir_bytes_release(&at);
      ended = 0;
    } else if (event.type == WEIR_EVENT_BARRIER) { /* all before batch n is before it */
      weir_input_barrier(in, event.checkpoint, &n, sizeof(n), NULL);
    }
    if (!ended && !next_batch(n, &batch))
      ended = !weir_input_end(in, &n, sizeof(n), NULL);
    if (batch.release && !weir_input_push(in, &batch, 10000000, NULL)) n++;
    if (batch.release)
      batch.release(&batch); /* no room yet, or rewound: it is still ours */
    failed = failed || weir_pipeline_next(pipeline, &event, ended ? -1 : 0, &err);
  }
  if (event.type == WEIR_EVENT_FAILED) err = event.error;
  if (pipeline) failed |= weir_pipeline_close(pipeline, 0, NULL);
  weir_config_free(config);
  return err.code ? fprintf(stderr, "%s\n", err.message), 1 : failed;
}
