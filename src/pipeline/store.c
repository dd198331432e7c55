/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pipeline keeps its checkpoint store: a folder, or a PostgreSQL database. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/plugin.h>

#include "pipeline/pipeline.h"

#define IDENTITY_FORMAT "weir-pipeline-1"

/* Each part framed by its length. */
weir_status pipeline_identify(const char *name, uint8_t out[WEIR_DIGEST_SIZE],
                              weir_error *err) {
  char text[160] = {0};
  int n = snprintf(text, sizeof(text), "%zu:%s%zu:%s", strlen(IDENTITY_FORMAT),
                   IDENTITY_FORMAT, strlen(name), name);
  return base_sha256(text, (size_t)n, out, err);
}

/* A crash behind the rename leaves a pipeline without state, which is refused where the target has a cursor:
 * the command is given again. */
weir_status pipeline_put_folder_aside(const config_top *top, const weir_store *held,
                                      char **out, weir_error *err) {
  weir_store *old = NULL;
  weir_status status = WEIR_OK;
  if (access(top->state, F_OK) && errno == ENOENT) return WEIR_OK;
  if (!held) status = weir_store_open(top->state, top->pipeline, &old, err);
  /* Else somebody owns it, or it is another pipeline's. */
  if (status && status != WEIR_E_CORRUPT) return status;
  status = WEIR_OK;
  int64_t at = base_clock_wall() / BASE_NS_PER_S;
  char *aside = NULL;
  do {
    free(aside);
    aside = base_format(err, "%s.before-%" PRId64, top->state, at++);
    if (!aside) BASE_GOTO(status, WEIR_E_NOMEM);
  } while (access(aside, F_OK) == 0);
  if (rename(top->state, aside))
    BASE_GOTO(status, base_io_error(err, errno, "rename", top->state));
  *out = aside;
  aside = NULL;
out:
  weir_store_close(old);
  free(aside);
  return status;
}

static weir_status begin_anew(const weir_pipeline *p, weir_error *err) {
  char *aside = NULL;
  BASE_TRY(pipeline_put_folder_aside(&p->plan.top, NULL, &aside, err));
  if (aside)
    base_log_printf(
        &p->log, WEIR_LOG_WARN, "pipeline",
        "new deployment: everything is delivered again; the old state is kept in %s",
        aside);
  free(aside);
  return WEIR_OK;
}

static weir_store_postgres where(const config_top *top) {
  return (weir_store_postgres){.struct_size = sizeof(weir_store_postgres),
                               .uri = top->store,
                               .pipeline = top->pipeline,
                               .lease_ns = top->lease_ns};
}

weir_status pipeline_take_store(const config_top *top, bool anew, weir_store **out,
                                weir_error *err) {
  weir_store_postgres at = where(top);
  at.new_deployment = anew;
  return top->store ? weir_store_open_postgres(&at, out, err)
                    : weir_store_open(top->state, top->pipeline, out, err);
}

static weir_status name_store(weir_pipeline *p, weir_error *err) {
  const config_top *top = &p->plan.top;
  p->state_name = top->store
                      ? base_format(err, "checkpoint store %s", weir_store_name(p->store))
                      : base_format(err, "state folder %s", top->state);
  return p->state_name ? WEIR_OK : WEIR_E_NOMEM;
}

weir_status pipeline_open_store(weir_pipeline *p, weir_error *err) {
  BASE_TRY(pipeline_identify(p->plan.top.pipeline, p->identity, err));
  const config_top *top = &p->plan.top;
  bool anew = p->flags & WEIR_OPEN_NEW_DEPLOYMENT;
  if (anew && !top->store) BASE_TRY(begin_anew(p, err));
  BASE_TRY(pipeline_take_store(top, anew, &p->store, err));
  if (anew && top->store)
    base_log_printf(
        &p->log, WEIR_LOG_WARN, "pipeline",
        "new deployment: everything is delivered again; what the store had of "
        "an old one is kept in it under another name");
  BASE_TRY(name_store(p, err));
  BASE_TRY(weir_store_load(p->store, &p->state, err));
  memcpy(p->deployment, p->state->deployment, sizeof(p->deployment));
  p->token = p->state->token;
  return WEIR_OK;
}

weir_status pipeline_read_store(const config_top *top, weir_store_state **out,
                                weir_error *err) {
  weir_store *store = NULL;
  weir_store_postgres at = where(top);
  weir_status status = top->store ? weir_store_read_postgres(&at, &store, err)
                                  : weir_store_open_read(top->state, &store, err);
  if (!status) status = weir_store_load(store, out, err);
  weir_store_close(store);
  if (status || strcmp((*out)->pipeline, top->pipeline) == 0) return status;
  status = weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "the state folder %s belongs to pipeline %s, not to %s; set "
                          "`state` to another folder",
                          top->state, (*out)->pipeline, top->pipeline);
  weir_store_state_free(*out);
  *out = NULL;
  return status;
}
