/* SPDX-License-Identifier: Apache-2.0 */
/* What stands at the top of a pipeline file, and what every source and sink has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/connectors.h>

#include "config/build.h"

static const weir_option top_table[] = {
    {"pipeline", WEIR_OPT_STRING, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "Identity of the pipeline, a-z 0-9 _ -: one name per deployment and target."},
    {"guarantee", WEIR_OPT_ENUM, 0, "exactly_once", 0, 0,
     "exactly_once|at_least_once|best_effort",
     "The floor that every sink must keep; what cannot keep it is refused before "
     "anything starts."},
    {"state", WEIR_OPT_PATH, 0, NULL, 0, 0, NULL,
     "Folder of the checkpoint store; default ./weir-state/<pipeline> beside the file."},
    {"store", WEIR_OPT_STRING, WEIR_OPT_SECRET, NULL, 0, 0, NULL,
     "A PostgreSQL database for the checkpoint store in the place of a SQLite file in "
     "`state`, as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, so that another machine "
     "can take over; file:/path reads it from a file."},
    {"store_lease", WEIR_OPT_DURATION, 0, "30s", INT64_C(1000000000),
     INT64_C(3600000000000), NULL,
     "With `store`: how long after its owner's last word another machine takes over; it "
     "is renewed every third of that."},
    {"checkpoint.interval", WEIR_OPT_DURATION, 0, "10s", INT64_C(1000000), 0, NULL,
     "Time from one checkpoint to the next."},
    {"checkpoint.timeout", WEIR_OPT_DURATION, 0, "60s", INT64_C(1000000), 0, NULL,
     "How long preparing and committing a sealed epoch may take."},
    {"queue_bytes", WEIR_OPT_SIZE, 0, "16MiB", INT64_C(65536), INT64_C(1) << 40, NULL,
     "Bytes that the queue between a source and one writer may hold; a full queue holds "
     "the source."},
    {"spool", WEIR_OPT_PATH, 0, NULL, 0, 0, NULL,
     "Folder where batches wait for sinks whose targets have transactions of their own; "
     "default is `spool` in `state`. It holds rows in the clear. With `store`, name one "
     "that is the same on every machine that may run the pipeline."},
    {"spool_limit", WEIR_OPT_SIZE, 0, "8GiB", INT64_C(1048576), INT64_MAX, NULL,
     "Bytes of one sink that may wait there: a checkpoint is asked for at half of it, "
     "and "
     "at all of it the sources wait."},
    {"spool_keep", WEIR_OPT_SIZE, 0, "1GiB", 0, INT64_MAX, NULL,
     "Bytes of one sink's last published epochs, 10 at most, that are kept there, so "
     "that a "
     "target which lost its last commits can be refilled; 0 = none."},
    {0},
};

static const char *const top_skip[] = {"sources", "sinks", NULL};

static const weir_option source_core[] = {
    {"type", WEIR_OPT_STRING, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "The connector: a name, or a path such as ./x.so."},
    {"timeouts.open", WEIR_OPT_DURATION, 0, "30s", INT64_C(1000000), 0, NULL,
     "How long each step of connecting may take: finding out the schema, opening."},
    {"timeouts.read", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long any other step may take beyond what it may wait for rows: reading a "
     "batch, "
     "going back, letting go of what was delivered, closing; default is "
     "`checkpoint.timeout`."},
    {"on_bad_row", WEIR_OPT_ENUM, 0, "fail", 0, 0, "fail",
     "What happens to a row that cannot be decoded: fail stops there and names it."},
    {"on_bad_row.dead_letter", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "In the place of fail: the sink that such rows go to, with the reason, while the "
     "source goes on behind them."},
    {0},
};

static const weir_option sink_core[] = {
    {"type", WEIR_OPT_STRING, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "The connector: a name, or a path such as ./x.so."},
    {"from", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL,
     "The source, or a list of sources, that feed it; default the only source."},
    {"writers", WEIR_OPT_INT, 0, "1", 1, 1024, NULL,
     "Participants that write side by side; rows keep their order within each."},
    {"write_timeout", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long one batch may take to write; default is what the connector suggests."},
    {"timeouts.open", WEIR_OPT_DURATION, 0, "30s", INT64_C(1000000), 0, NULL,
     "How long each step of connecting may take: resolving the schema, preparing the "
     "target, opening."},
    {"timeouts.begin", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long opening an epoch may take; default is `checkpoint.timeout`, as of those "
     "below."},
    {"timeouts.pre_commit", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long preparing a sealed epoch may take at this sink; `checkpoint.timeout` "
     "bounds it for all together."},
    {"timeouts.commit", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long one try to publish decided epochs, or to look up the cursor, may take."},
    {"timeouts.rollback", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long dropping an aborted epoch may take."},
    {"timeouts.clean", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long removing what aborted epochs left may take."},
    {"timeouts.flush", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long a periodic flush may take."},
    {"timeouts.close", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long closing may take; one that does not come back is left behind at the end "
     "of a run."},
    {"flush_interval", WEIR_OPT_DURATION, 0, NULL, INT64_C(1000000), 0, NULL,
     "How long a row may wait in a sink's buffer; without effect, and so refused, where "
     "epochs commit."},
    {"changelog", WEIR_OPT_ENUM, 0, NULL, 0, 0, "as_rows",
     "A sink that appends takes changes by key as rows, with `_op` a column like any "
     "other; "
     "without it such a source is refused."},
    {"on_bad_row", WEIR_OPT_ENUM, 0, "fail", 0, 0, "fail",
     "What happens to a row that cannot be mapped: fail stops there and names it."},
    {"on_bad_row.dead_letter", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "In the place of fail: the sink that such rows go to, with the reason, while the "
     "others are written."},
    {0},
};

const weir_option *config_top_table(void) {
  return top_table;
}

const weir_option *config_core_table(int32_t kind) {
  return kind == CONFIG_SINKS ? sink_core : source_core;
}

const weir_option *weir_connectors_common(int32_t kind) {
  if (kind == WEIR_CONNECTOR_SINK) return sink_core;
  return kind == WEIR_CONNECTOR_SOURCE ? source_core : top_table;
}

static const char *group_name(int32_t kind) {
  return kind == CONFIG_SINKS ? "sinks" : "sources";
}

/* ---- names
 * ----------------------------------------------------------------------------------- */

static bool valid_name(const char *name, bool upper) {
  size_t n = strlen(name);
  if (!n || n > CONFIG_MAX_NAME) return false;
  for (; *name; name++) {
    bool ok = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') ||
              *name == '_' || *name == '-' || (upper && *name >= 'A' && *name <= 'Z');
    if (!ok) return false;
  }
  return true;
}

/* The pipeline's name if it has one that is fit for a message, else NULL. */
static const char *pipeline_name(const weir_config *config) {
  const config_node *node = config_node_get(config->root, "pipeline");
  return node && node->kind == CONFIG_SCALAR && valid_name(node->text, false) ? node->text
                                                                              : NULL;
}

static config_build top_build(const weir_config *config) {
  return (config_build){.file = config->name,
                        .pipeline = pipeline_name(config),
                        .base_dir = config->base_dir,
                        .tables = {top_table, NULL},
                        .skip = top_skip};
}

/* ---- the top
 * --------------------------------------------------------------------------------- */

weir_status config_check_top_keys(const config_node *root, const char *file,
                                  weir_error *err) {
  weir_options *none = NULL;
  config_build b = {
      .file = file, .tables = {top_table, NULL}, .skip = top_skip, .keys_only = true};
  BASE_TRY(config_build_options(&b, root, root, &none, err));
  weir_options_free(none);
  return WEIR_OK;
}

/* `sources` and `sinks` must be mappings that hold something. */
static weir_status check_groups(const weir_config *config, weir_error *err) {
  config_build b = top_build(config);
  for (int32_t kind = CONFIG_SOURCES; kind <= CONFIG_SINKS; kind++) {
    const char *name = group_name(kind);
    const config_node *node = config_node_get(config->root, name);
    if (node && node->kind == CONFIG_MAP && node->n) continue;
    return config_build_fail(
        &b, node ? node : config->root, name, err,
        "expected a mapping with at least one entry (%s: {NAME: {type: file, "
        "...}}), got %s",
        name, node && node->kind != CONFIG_MAP ? config_node_kind_name(node) : "nothing");
  }
  return WEIR_OK;
}

static int32_t guarantee_of(const char *text) {
  if (strcmp(text, "exactly_once") == 0) return WEIR_EXACTLY_ONCE;
  return strcmp(text, "at_least_once") == 0 ? WEIR_AT_LEAST_ONCE : WEIR_BEST_EFFORT;
}

weir_status config_top_init(const weir_config *config, config_top *out, weir_error *err) {
  config_top top = {0};
  config_build b = top_build(config);
  weir_status status = WEIR_OK;
  BASE_GOTO(status,
            config_build_options(&b, config->root, config->root, &top.options, err));
  top.pipeline = weir_options_string(top.options, "pipeline");
  if (!valid_name(top.pipeline, false)) {
    const config_node *node = config_node_get(config->root, "pipeline");
    status = config_build_fail(
        &b, node, "pipeline", err,
        "expected a name of 1 to 64 characters out of a-z, 0-9, _ and -, got "
        "'%.80s'",
        config_node_shown(node));
    goto out;
  }
  BASE_GOTO(status, check_groups(config, err));
  top.guarantee = guarantee_of(weir_options_string(top.options, "guarantee"));
  top.interval_ns = weir_options_int(top.options, "checkpoint.interval");
  top.timeout_ns = weir_options_int(top.options, "checkpoint.timeout");
  top.store = weir_options_string(top.options, "store");
  top.lease_ns = weir_options_int(top.options, "store_lease");
  top.queue_bytes = weir_options_int(top.options, "queue_bytes");
  top.spool = weir_options_string(top.options, "spool");
  top.spool_given = top.spool != NULL;
  top.spool_limit = weir_options_int(top.options, "spool_limit");
  top.spool_keep = weir_options_int(top.options, "spool_keep");
  if (top.spool && strstr(top.spool, "://")) {
    status = config_build_fail(&b, config_node_get(config->root, "spool"), "spool", err,
                               "expected a folder, got a URI");
    goto out;
  }
  top.state = weir_options_string(top.options, "state");
  if (top.state && strstr(top.state, "://")) {
    status = config_build_fail(
        &b, config_node_get(config->root, "state"), "state", err,
        "expected a folder, got a URI; a store in PostgreSQL is named by `store`");
    goto out;
  }
  if (!top.state) {
    char relative[sizeof("weir-state/") + CONFIG_MAX_NAME];
    snprintf(relative, sizeof(relative), "weir-state/%s", top.pipeline);
    top.state = top.default_state = config_path(config, relative, err);
    if (!top.state) status = WEIR_E_NOMEM;
  }
  if (!status && !top.spool) {
    top.spool = top.default_spool = base_path_join(top.state, "spool", err);
    if (!top.spool) status = WEIR_E_NOMEM;
  }
out:
  if (status) {
    config_top_done(&top);
  } else {
    *out = top;
  }
  return status;
}

weir_status weir_config_checkpoint_timeout(const weir_config *config, int64_t *out_ns,
                                           weir_error *err) {
  config_top top = {0};
  BASE_TRY(config_top_init(config, &top, err));
  *out_ns = top.timeout_ns;
  config_top_done(&top);
  return WEIR_OK;
}

void config_top_done(config_top *top) {
  weir_options_free(top->options);
  free(top->default_state);
  free(top->default_spool);
  *top = (config_top){0};
}

/* ---- sources and sinks
 * ----------------------------------------------------------------------- */

size_t config_connector_count(const weir_config *config, int32_t kind) {
  const config_node *group = config_node_get(config->root, group_name(kind));
  return group && group->kind == CONFIG_MAP ? group->n : 0;
}

int weir_config_uses(const weir_config *config, const char *group, const char *type) {
  const config_node *entries = config_node_get(config->root, group);
  for (size_t i = 0; entries && entries->kind == CONFIG_MAP && i < entries->n; i++) {
    const config_node *node = config_node_get(entries->children[i], "type");
    if (node && node->kind == CONFIG_SCALAR && strcmp(node->text, type) == 0) return 1;
  }
  return 0;
}

static const char *dead_letter_of(const config_node *connector) {
  const config_node *node = config_node_get(connector, "on_bad_row.dead_letter"),
                    *group = config_node_get(connector, "on_bad_row");
  if (!node && group && group->kind == CONFIG_MAP)
    node = config_node_get(group, "dead_letter");
  return node && node->kind == CONFIG_SCALAR ? node->text : NULL;
}

bool config_takes_letters(const weir_config *config, const char *sink) {
  for (int32_t kind = CONFIG_SOURCES; kind <= CONFIG_SINKS; kind++)
    for (size_t i = 0; i < config_connector_count(config, kind); i++) {
      const config_node *node = config_node_get(config->root, group_name(kind));
      const char *name = dead_letter_of(node->children[i]);
      if (name && strcmp(name, sink) == 0) return true;
    }
  return false;
}

weir_status config_connector_at(const weir_config *config, int32_t kind, size_t i,
                                config_connector *out, weir_error *err) {
  config_connector c = {.kind = kind};
  config_build b = top_build(config);
  c.node = config_node_get(config->root, group_name(kind))->children[i];
  c.name = c.node->key;
  config_node place = {.line = c.node->key_line, .column = c.node->key_column};
  snprintf(c.where, sizeof(c.where), "%s %.64s", kind == CONFIG_SINKS ? "sink" : "source",
           c.name);
  b.where = c.where;
  if (!valid_name(c.name, true)) {
    return config_build_fail(
        &b, &place, NULL, err,
        "expected a name of 1 to 64 characters out of A-Z, a-z, 0-9, _ and -");
  }
  if (c.node->kind != CONFIG_MAP) {
    return config_build_fail(&b, &place, NULL, err,
                             "expected a mapping with a `type`, got %s",
                             config_node_kind_name(c.node));
  }
  const config_node *type = config_node_get(c.node, "type");
  if (!type || type->kind != CONFIG_SCALAR || !*type->text) {
    return config_build_fail(
        &b, type ? type : &place, "type", err,
        "%s; expected a connector's name (`weir connectors` lists them) or a path "
        "such as ./x.so",
        type ? "does not name a connector" : "is missing");
  }
  c.type = type->text;
  *out = c;
  return WEIR_OK;
}

weir_status config_options(const weir_config *config, const config_connector *connector,
                           const weir_option *table, weir_options **out,
                           weir_error *err) {
  config_build b = {.file = config->name,
                    .pipeline = pipeline_name(config),
                    .where = connector->where,
                    .type = connector->type,
                    .base_dir = config->base_dir,
                    .tables = {table, config_core_table(connector->kind)}};
  return config_build_options(&b, connector->node, connector->node, out, err);
}

/* The node of a dotted option below `node`, or the nearest mapping on the way to it. */
static const config_node *find_option(const config_node *node, const char *option) {
  const config_node *child = config_node_get(node, option);
  const char *dot = strchr(option, '.');
  if (child || !dot) return child ? child : node;
  char group[CONFIG_MAX_NAME + 1];
  if ((size_t)(dot - option) >= sizeof(group)) return node;
  snprintf(group, sizeof(group), "%.*s", (int)(dot - option), option);
  child = config_node_get(node, group);
  return child ? find_option(child, dot + 1) : node;
}

/* What variables held goes back to how it was written. */
static void hide_variables(const config_node *node, weir_error *err) {
  if (!node || !err) return;
  for (size_t i = 0; i < node->n; i++) hide_variables(node->children[i], err);
  if (!node->raw || strlen(node->text) < 4) return;
  for (char *at = err->message; (at = strstr(at, node->text)) != NULL;) {
    char rest[sizeof(err->message)];
    snprintf(rest, sizeof(rest), "%s", at + strlen(node->text));
    size_t room = (size_t)(err->message + sizeof(err->message) - at);
    (void)snprintf(at, room, "%s%s", node->raw, rest);
    if (strlen(node->raw) >= room) return;
    at += strlen(node->raw);
  }
}

weir_status config_option_error(const weir_config *config,
                                const config_connector *connector, const char *option,
                                weir_error *err, const char *fmt, ...) {
  config_build b = top_build(config);
  const config_node *node = config->root;
  if (connector) {
    b.where = connector->where;
    node = connector->node;
  }
  va_list args;
  va_start(args, fmt);
  weir_status status = config_build_vfail(&b, option ? find_option(node, option) : node,
                                          option, err, fmt, args);
  va_end(args);
  hide_variables(option ? find_option(node, option) : node, err);
  return status;
}
