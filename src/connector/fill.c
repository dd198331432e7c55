/* SPDX-License-Identifier: Apache-2.0 */
/* From a connector's table to a complete one: copied by size, required entries checked by name, the
 * others filled with their defaults. After this nobody tests an entry for NULL. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "connector/inside.h"

/* An entry that must be there. All entries behind struct_size are pointers, whose all-zero
 * representation is NULL on every machine that weir runs on. */
typedef struct fill_entry {
  size_t offset;
  const char *name;
} fill_entry;

#define FILL_ENTRY(type, entry) {offsetof(type, entry), #entry}

static const fill_entry fill_sink_required[] = {
    FILL_ENTRY(weir_sink_ops, text),
    FILL_ENTRY(weir_sink_ops, options),
    FILL_ENTRY(weir_sink_ops, create),
    FILL_ENTRY(weir_sink_ops, release),
    FILL_ENTRY(weir_sink_ops, open),
    FILL_ENTRY(weir_sink_ops, write_batch),
    FILL_ENTRY(weir_sink_ops, schema),
    FILL_ENTRY(weir_sink_ops, suggested_write_timeout_ms),
    FILL_ENTRY(weir_sink_ops, close),
};

/* Of a sink with a committer: their defaults would finish epochs that were never published. */
static const fill_entry fill_committable_required[] = {
    FILL_ENTRY(weir_sink_ops, pre_commit),
    FILL_ENTRY(weir_sink_ops, begin_epoch),
    FILL_ENTRY(weir_sink_ops, rollback_epoch),
};

static const fill_entry fill_source_required[] = {
    FILL_ENTRY(weir_source_ops, text),           FILL_ENTRY(weir_source_ops, options),
    FILL_ENTRY(weir_source_ops, create),         FILL_ENTRY(weir_source_ops, release),
    FILL_ENTRY(weir_source_ops, resolve_schema), FILL_ENTRY(weir_source_ops, open),
    FILL_ENTRY(weir_source_ops, read),           FILL_ENTRY(weir_source_ops, position),
    FILL_ENTRY(weir_source_ops, close),
};

static const fill_entry fill_committer_required[] = {
    FILL_ENTRY(weir_committer_ops, observe_cursor),
    FILL_ENTRY(weir_committer_ops, commit_aggregated),
};

static const fill_entry fill_cleaner_required[] = {
    FILL_ENTRY(weir_cleaner_ops, ref),
    FILL_ENTRY(weir_cleaner_ops, unref),
    FILL_ENTRY(weir_cleaner_ops, clean),
};

static bool fill_is_null(const void *table, size_t offset) {
  void (*entry)(void) = NULL;
  static const uint8_t none[sizeof(entry)] = {0};
  return memcmp((const uint8_t *)table + offset, none, sizeof(none)) == 0;
}

static weir_status fill_require(const void *table, const fill_entry *v, size_t n,
                                const char *what, const char *why, weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (!fill_is_null(table, v[i].offset)) continue;
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s: its table has no '%s', which %s", what, v[i].name, why);
  }
  return WEIR_OK;
}

/* Into a zeroed table. Both fields stand first in every one. `least`: bytes that any table of this kind has. */
static weir_status fill_copy(const void *table, size_t least, void *out, size_t size,
                             const char *what, weir_error *err) {
  uint32_t head[2];
  memcpy(head, table, sizeof(head));
  if (head[0] != WEIR_ABI_VERSION) {
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "%s: it was built for connector ABI %u, this weir (%s) has ABI %u; install a "
        "build of it for this weir",
        what, head[0], weir_version(), WEIR_ABI_VERSION);
  }
  if (head[1] < least) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s: its table says it has %u bytes, at least %zu are needed; "
                          "struct_size must be "
                          "sizeof its type",
                          what, head[1], least);
  }
  memcpy(out, table, head[1] < size ? head[1] : size);
  return WEIR_OK;
}

static bool fill_name_ok(const char *name) {
  if (!name || !*name || strlen(name) > 63) return false;
  return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == 0;
}

static weir_status fill_check_options(const weir_option *options, const char *what,
                                      weir_error *err) {
  enum { MOST = 1000 };
  for (size_t i = 0; options[i].name; i++) {
    const weir_option *o = &options[i];
    const char *wrong = NULL;
    if (i == MOST) wrong = "is one too many; does the table end with a {0} row?";
    if (o->type < WEIR_OPT_STRING || o->type > WEIR_OPT_MAP)
      wrong = "has an unknown type";
    if (o->type == WEIR_OPT_ENUM && (!o->choices || !*o->choices))
      wrong = "has no choices";
    if (!o->text) wrong = "has no text";
    if (o->min > o->max) wrong = "has its bounds the wrong way round";
    if (wrong) {
      return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0, "%s: option '%s' %s", what,
                            o->name, wrong);
    }
  }
  return WEIR_OK;
}

/* "sink 'x' of ./x.so" into buf. */
static void fill_what(char *buf, size_t size, const char *kind, const char *name,
                      const char *origin) {
  snprintf(buf, size, "%s '%.63s'%s%.160s", kind, fill_name_ok(name) ? name : "?",
           origin ? " of " : "", origin ? origin : "");
}

static weir_status fill_check_head(const char *name, const weir_option *options,
                                   const char *what, weir_error *err) {
  if (!fill_name_ok(name)) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s: its name must be 1 to 63 of a-z 0-9 _ -", what);
  }
  return fill_check_options(options, what, err);
}

weir_status connector_fill_sink(const weir_sink_ops *ops, const char *origin,
                                weir_sink_ops *out, weir_error *err) {
  char what[256];
  weir_sink_ops t = {0};
  fill_what(what, sizeof(what), "sink", NULL, origin);
  BASE_TRY(fill_copy(ops, offsetof(weir_sink_ops, create), &t, sizeof(t), what, err));
  fill_what(what, sizeof(what), "sink", t.name, origin);
  BASE_TRY(fill_require(&t, fill_sink_required, BASE_COUNT(fill_sink_required), what,
                        "is required", err));
  BASE_TRY(fill_check_head(t.name, t.options, what, err));
  if (t.as_coordinated_committer) {
    BASE_TRY(fill_require(&t, fill_committable_required,
                          BASE_COUNT(fill_committable_required), what,
                          "a sink with a committer must have", err));
  }
#define FILL_DEFAULT(entry) \
  if (!t.entry) t.entry = connector_default_##entry
  FILL_DEFAULT(cancellation_policy);
  FILL_DEFAULT(bind_runtime_context);
  FILL_DEFAULT(terminal_task_tracker);
  FILL_DEFAULT(contract);
  FILL_DEFAULT(keyed_mutation_key);
  FILL_DEFAULT(resolve_schema);
  FILL_DEFAULT(prepare_schema);
  FILL_DEFAULT(checkpoint_artifact_intent);
  FILL_DEFAULT(begin_epoch);
  FILL_DEFAULT(pre_commit);
  FILL_DEFAULT(rollback_epoch);
  FILL_DEFAULT(flush_interval_ms);
  FILL_DEFAULT(flush);
  FILL_DEFAULT(as_coordinated_committer);
  FILL_DEFAULT(coordinated_abort_cleaner);
  FILL_DEFAULT(verify);
  FILL_DEFAULT(sweep);
  t.struct_size = sizeof(t);
  *out = t;
  return WEIR_OK;
}

bool connector_has_committer(const weir_sink_ops *ops) {
  return ops->as_coordinated_committer != connector_default_as_coordinated_committer;
}

weir_status connector_fill_source(const weir_source_ops *ops, const char *origin,
                                  weir_source_ops *out, weir_error *err) {
  char what[256];
  weir_source_ops t = {0};
  fill_what(what, sizeof(what), "source", NULL, origin);
  BASE_TRY(fill_copy(ops, offsetof(weir_source_ops, create), &t, sizeof(t), what, err));
  fill_what(what, sizeof(what), "source", t.name, origin);
  BASE_TRY(fill_require(&t, fill_source_required, BASE_COUNT(fill_source_required), what,
                        "is required", err));
  BASE_TRY(fill_check_head(t.name, t.options, what, err));
  if (!t.cancellation_policy)
    t.cancellation_policy = connector_default_source_cancellation_policy;
  if (!t.contract) t.contract = connector_default_source_contract;
  FILL_DEFAULT(seek);
  FILL_DEFAULT(committed);
  FILL_DEFAULT(schema_is_inferred);
  FILL_DEFAULT(use_schema);
  FILL_DEFAULT(describe_position);
  FILL_DEFAULT(set_aside);
  FILL_DEFAULT(keeps_begin);
  t.struct_size = sizeof(t);
  *out = t;
  return WEIR_OK;
}

weir_status connector_fill_committer(const weir_committer_ops *ops,
                                     weir_committer_ops *out, weir_error *err) {
  weir_committer_ops t = {0};
  BASE_TRY(fill_copy(ops, 2 * sizeof(uint32_t), &t, sizeof(t), "its committer", err));
  BASE_TRY(fill_require(&t, fill_committer_required, BASE_COUNT(fill_committer_required),
                        "its committer", "is required", err));
  FILL_DEFAULT(take_over);
  FILL_DEFAULT(find_cursors);
  t.struct_size = sizeof(t);
  *out = t;
  return WEIR_OK;
}

weir_status connector_fill_cleaner(const weir_cleaner_ops *ops, weir_cleaner_ops *out,
                                   weir_error *err) {
  weir_cleaner_ops t = {0};
  BASE_TRY(fill_copy(ops, 2 * sizeof(uint32_t), &t, sizeof(t), "its cleaner", err));
  BASE_TRY(fill_require(&t, fill_cleaner_required, BASE_COUNT(fill_cleaner_required),
                        "its cleaner", "is required", err));
  t.struct_size = sizeof(t);
  *out = t;
  return WEIR_OK;
}
