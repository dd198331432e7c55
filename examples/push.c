/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

int next_batch(uint64_t n, struct ArrowArray *out); /* yours: batch n; 0 = no more */

int main(void) {
  weir_config *conf = NULL;
  weir_pipeline *pipeline = NULL;
  weir_input *in = NULL;
  weir_bytes at = {0};
  weir_event e = {.struct_size = sizeof(e), .type = WEIR_EVENT_REWIND};
  weir_error *err = &e.error;
  if (!weir_config_new(&conf, err) && !weir_config_read_file(conf, "push.yaml", err) &&
      !weir_pipeline_open(conf, NULL, 0, &pipeline, err))
    weir_pipeline_input(pipeline, "readings", 0, NULL, &in, err);
  for (uint64_t n = 0, more = 1; !err->code && e.type != WEIR_EVENT_ENDED;) {
    struct ArrowArray batch = {0};
    if (e.type == WEIR_EVENT_REWIND && !weir_input_position(in, &at, err)) /* or start */
      memcpy(&n, at.size == 8 ? at.data : (uint8_t[8]){0}, 8), weir_bytes_release(&at);
    if (e.type == WEIR_EVENT_BARRIER) weir_input_barrier(in, e.checkpoint, &n, 8, NULL);
    if (!(more = next_batch(n, &batch) > 0)) weir_input_end(in, &n, 8, NULL);
    if (more && !weir_input_push(in, &batch, 10000000, err)) n++;
    if (batch.release) batch.release(&batch); /* no room yet, or rewound: still ours */
    if (err->code != WEIR_E_SCHEMA) weir_pipeline_next(pipeline, &e, more ? 0 : -1, err);
  }
  if (err->code) fprintf(stderr, "%s\n", err->message);
  weir_config_free(conf);
  return weir_pipeline_close(pipeline, 0, NULL) || err->code;
}
