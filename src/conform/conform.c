/* SPDX-License-Identifier: Apache-2.0 */
/* The kit: one sink loaded, the checks run in their order, what came of them told. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "conform/conform.h"

bool conform_fails(conform *c, const char *fmt, ...) {
  if (c->outcome == WEIR_CONFORM_FAILED) return false;
  va_list args;
  va_start(args, fmt);
  vsnprintf(c->reason, sizeof(c->reason), fmt, args);
  va_end(args);
  c->outcome = WEIR_CONFORM_FAILED;
  return false;
}

void conform_unshown(conform *c, const char *fmt, ...) {
  if (c->outcome == WEIR_CONFORM_FAILED) return;
  va_list args;
  va_start(args, fmt);
  vsnprintf(c->reason, sizeof(c->reason), fmt, args);
  va_end(args);
  c->outcome = WEIR_CONFORM_NOT_SHOWN;
}

/* ---- rows at the target ------------------------------------------------------------------------ */

bool conform_new_world(conform *c) {
  conform_store *s = &c->memory->store;
  memset(s, 0, sizeof(*s));
  s->next_row = c->first_row;
  c->first_row += 1 << 12;
  atomic_store(&c->memory->used, 0);
  if (base_uuid_new(s->deployment, &c->error)) return false;
  return !c->given->count || !c->given->count(c->given->ctx, &c->baseline, &c->error);
}

bool conform_count_is(conform *c, uint64_t rows, const char *when) {
  uint64_t now = 0;
  if (c->error.code || c->outcome == WEIR_CONFORM_FAILED) return false;
  if (!c->given->count) return true;
  if (c->given->count(c->given->ctx, &now, &c->error)) return false;
  if (now == c->baseline + rows) return true;
  return conform_fails(c, "the target has %lld rows more than before and not %llu %s",
                       (long long)(now - c->baseline), (unsigned long long)rows, when);
}

/* ---- loading ----------------------------------------------------------------------------------- */

static weir_status load_sink(conform *c, weir_error *err) {
  const weir_conform_options *g = c->given;
  const weir_sink_ops *found = NULL;
  if (g->ops) return connector_fill_sink(g->ops, NULL, &c->ops, err);
  if (!g->type)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "neither a type nor a table of a sink is given");
  BASE_TRY(connector_find_sink(g->type, NULL, &found, err));
  c->ops = *found;
  return WEIR_OK;
}

/* A sink's log goes nowhere but is looked at. */
static void look_at_log(void *ctx, int32_t level, const char *where, const char *text) {
  (void)level, (void)where;
  conform_look(ctx, "a log message", text, strlen(text));
}

static weir_status make_spool(conform *c, weir_error *err) {
  const char *base = getenv("TMPDIR");
  if (!base || strlen(base) > sizeof(c->spool) - 24) base = "/tmp";
  snprintf(c->spool, sizeof(c->spool), "%s/weir-conform-XXXXXX", base);
  if (!mkdtemp(c->spool)) {
    c->spool[0] = 0;
    return weir_error_errno(err, errno, "cannot make a folder for the spool in %s", base);
  }
  return connector_host_spool(c->host, c->spool, false, 0, 1 << 20, err);
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

static weir_status load_options(conform *c, weir_error *err) {
  const weir_conform_options *g = c->given;
  config_connector entry = {0};
  weir_options *options = NULL;
  base_log log = {.write = look_at_log, .ctx = c, .level = WEIR_LOG_DEBUG};
  BASE_TRY(weir_config_new(&c->config, err));
  BASE_TRY(config_read_sink(c->config, g->type ? g->type : c->ops.name, g->config,
                            g->config_size, g->config_name ? g->config_name : "options",
                            g->base_dir, err));
  BASE_TRY(config_connector_at(c->config, CONFIG_SINKS, 0, &entry, err));
  BASE_TRY(config_options(c->config, &entry, c->ops.options, &options, err));
  c->host = connector_host_new(&log, err);
  weir_status status = c->host ? make_spool(c, err) : WEIR_E_NOMEM;
  if (!status) status = connector_spec_new_sink(&c->ops, c->host, options, &c->spec, err);
  if (status) weir_options_free(options);
  return status;
}

static weir_status load(conform *c, weir_error *err) {
  BASE_TRY(load_sink(c, err));
  BASE_TRY(load_options(c, err));
  c->first_row = (uint64_t)(base_clock_wall() / BASE_NS_PER_S) << 20;
  c->patience_ns = c->given->patience_ns > 0 ? c->given->patience_ns : 30 * BASE_NS_PER_S;
  void *memory = mmap(NULL, sizeof(conform_memory), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory to share with children");
  c->memory = memory;
  return WEIR_OK;
}

static void unload(conform *c) {
  if (c->memory) munmap(c->memory, sizeof(conform_memory));
  weir_names_release(&c->key);
  connector_spec_unref(c->spec);
  connector_host_unref(c->host);
  weir_config_free(c->config);
  if (c->spool[0]) nftw(c->spool, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- running ----------------------------------------------------------------------------------- */

static bool has_secret(const conform *c) {
  for (const weir_option *o = c->ops.options; o->name; o++) {
    if (o->flags & WEIR_OPT_SECRET &&
        weir_options_given(connector_spec_options(c->spec), o->name))
      return true;
  }
  return false;
}

/* Until a sink was asked for its cleaner. */
static bool may_clean(const conform *c) {
  return c->memory->asked_cleaner ? c->memory->has_cleaner
                                  : c->memory->contract.consistency == WEIR_COMMITTABLE;
}

static bool is_claimed(const conform *c, unsigned about) {
  const weir_contract *k = &c->memory->contract;
  return !((about & CONFORM_IF_COMMITTABLE && k->consistency != WEIR_COMMITTABLE) ||
           (about & CONFORM_IF_DURABLE && k->consistency != WEIR_DURABLE_AT_LEAST_ONCE) ||
           (about & CONFORM_IF_MULTI_WRITER && k->topology != WEIR_MULTI_WRITER) ||
           (about & CONFORM_IF_KEYED && !c->key.release) ||
           (about & CONFORM_IF_CLAIMS && !k->claims) ||
           (about & CONFORM_IF_CLEANER && !may_clean(c)) ||
           (about & CONFORM_IF_CANCEL_SAFE && !c->cancel_safe) ||
           (about & CONFORM_IF_SECRETS && !has_secret(c)));
}

static void run_check(conform *c, const conform_check *check, bool blocked) {
  c->reason[0] = 0;
  c->outcome = WEIR_CONFORM_PASSED;
  /* The session check asks, unless only others are wanted. */
  bool ask = check->about & CONFORM_IF_CLEANER && !c->memory->asked_cleaner && !blocked;
  if (ask && is_claimed(c, check->about) &&
      (!conform_new_world(c) || !conform_learn_cleaner(c)))
    return;
  if (!is_claimed(c, check->about)) {
    c->outcome = WEIR_CONFORM_NOT_CLAIMED;
  } else if (blocked) {
    c->outcome = WEIR_CONFORM_NOT_RUN;
  } else {
    if (conform_new_world(c)) check->run(c);
    if (c->outcome == WEIR_CONFORM_PASSED && check->about & CONFORM_COUNTED &&
        !c->given->count && c->memory->contract.consistency != WEIR_EPHEMERAL)
      conform_unshown(c, "nothing counts the rows at the target");
  }
}

static void tell(conform *c, const conform_check *check, weir_conform_summary *sum) {
  weir_conform_check told = {.struct_size = sizeof(told),
                             .outcome = c->outcome,
                             .group = check->group,
                             .name = check->name,
                             .text = check->text,
                             .reason = c->reason};
  uint64_t *counts[] = {
      NULL,         &sum->passed, &sum->failed, &sum->not_shown, &sum->not_claimed,
      &sum->not_run};
  ++*counts[c->outcome];
  if (c->given->check) c->given->check(c->given->ctx, &told);
}

/* What every other check needs to have been run. */
static bool is_first(const conform_check *check) {
  return strcmp(check->group, conform_checks[0].group) == 0;
}

static bool is_wanted(const conform_check *check, const char *only) {
  return !only || strcmp(only, check->group) == 0 || strcmp(only, check->name) == 0;
}

static weir_status run_all(conform *c, weir_conform_summary *sum, weir_error *err) {
  const char *failed = NULL;
  for (const conform_check *check = conform_checks; check->name; check++) {
    if (!is_wanted(check, c->given->only) && !is_first(check)) continue;
    run_check(c, check, failed && strcmp(failed, check->group) != 0);
    if (c->error.code) {
      if (err) *err = c->error;
      return weir_error_prefix(err, c->error.code, "%s/%s", check->group, check->name);
    }
    if (c->outcome == WEIR_CONFORM_FAILED && !failed) failed = check->group;
    tell(c, check, sum);
  }
  return WEIR_OK;
}

static weir_status check_only(const char *only, weir_error *err) {
  for (const conform_check *check = conform_checks; check->name; check++) {
    if (is_wanted(check, only)) return WEIR_OK;
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "there is no check and no group of checks '%.80s'", only);
}

weir_status weir_conform(const weir_conform_options *options, weir_conform_summary *out,
                         weir_error *err) {
  weir_conform_options given = {0};
  weir_conform_summary sum = {.struct_size = sizeof(sum)};
  conform *c = base_calloc(1, sizeof(*c), err);
  if (!c) return WEIR_E_NOMEM;
  memcpy(&given, options,
         options->struct_size < sizeof(given) ? options->struct_size : sizeof(given));
  c->given = &given;
  weir_status status = check_only(given.only, err);
  if (!status) status = load(c, err);
  if (!status) status = run_all(c, &sum, err);
  if (!status) {
    sum.contract = c->memory->contract;
    sum.certified = !given.only && !sum.failed && !sum.not_shown && !sum.not_run;
    sum.struct_size = out->struct_size;
    memcpy(out, &sum, out->struct_size < sizeof(sum) ? out->struct_size : sizeof(sum));
  }
  unload(c);
  free(c);
  return status;
}
