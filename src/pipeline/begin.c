/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a source begins that finds its start at a place that moves, such as the end of a topic. The store keeps it
 * before the first row is read, so that a start that was killed before its first decision begins there again and
 * leaves nothing out.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

static char *key_of(const pipe_lane *lane, weir_error *err) {
  return base_format(err, "begin:%s", lane->name);
}

weir_status pipeline_find_begin(const weir_store_state *state, pipe_lane *lane,
                                weir_error *err) {
  weir_status status = WEIR_OK;
  char *key = key_of(lane, err);
  if (!key) return WEIR_E_NOMEM;
  for (size_t i = 0; i < state->n_bindings && !status; i++) {
    const weir_store_binding *b = &state->bindings[i];
    if (strcmp(b->sink_id, key) == 0)
      status = weir_bytes_copy(&lane->begin, b->data, b->size, err);
  }
  free(key);
  return status;
}

const weir_bytes *pipeline_lane_begin(const pipe_lane *lane) {
  return lane->decided.release ? &lane->decided : &lane->begin;
}

weir_status pipeline_keep_begins(weir_pipeline *p, weir_error *err) {
  for (uint32_t i = 0; i < p->plan.n_lanes; i++) {
    pipe_lane *lane = &p->lanes[i];
    pipe_source *s = &p->plan.sources[lane->source];
    if (s->push || pipeline_lane_begin(lane)->release ||
        !connector_source_keeps_begin(s->source))
      continue;
    BASE_TRY(connector_source_position(s->source, &lane->begin, err));
    char *key = key_of(lane, err);
    if (!key) return WEIR_E_NOMEM;
    weir_store_binding now = {key, lane->begin.data, lane->begin.size};
    weir_status status = weir_store_pin(p->store, &now, 0, err);
    free(key);
    if (status) return status;
  }
  return WEIR_OK;
}
