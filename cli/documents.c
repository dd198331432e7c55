/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON documents that the library gives, taken apart and printed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "cli.h"

void cli_show_document(const cli_args *args, const weir_bytes *json,
                       void (*print)(yyjson_val *)) {
  if (args->json) {
    fwrite(json->data, 1, json->size, stdout);
    fputc('\n', stdout);
    return;
  }
  yyjson_doc *doc = yyjson_read((const char *)json->data, json->size, 0);
  if (doc) print(yyjson_doc_get_root(doc));
  yyjson_doc_free(doc);
}

const char *cli_text(yyjson_val *value) {
  const char *content = yyjson_get_str(value);
  return content ? content : "";
}

const char *cli_text_of(yyjson_val *object, const char *key) {
  return cli_text(yyjson_obj_get(object, key));
}

unsigned long long cli_number_of(yyjson_val *object, const char *key) {
  return yyjson_get_uint(yyjson_obj_get(object, key));
}

bool cli_print_json(yyjson_mut_doc *doc) {
  char *text = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
  bool written = text != NULL;
  if (written) puts(text);
  free(text);
  yyjson_mut_doc_free(doc);
  return written;
}

const char *cli_format_count(uint64_t n, const char *one, const char *many,
                             char buf[48]) {
  snprintf(buf, 48, "%" PRIu64 " %s", n, n == 1 ? one : many);
  return buf;
}

const char *cli_format_letters(uint64_t n, char buf[48]) {
  buf[0] = 0;
  if (n) snprintf(buf, 48, ", %" PRIu64 " dead letter%s", n, n == 1 ? "" : "s");
  return buf;
}

void cli_format_bytes(double bytes, char *buf, size_t size) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0])) {
    bytes /= 1000;
    unit++;
  }
  snprintf(buf, size, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

static uint64_t number(yyjson_val *object, const char *key) {
  yyjson_val *value = yyjson_obj_get(object, key);
  return yyjson_is_real(value) ? (uint64_t)yyjson_get_real(value)
                               : yyjson_get_uint(value);
}

/* "; lake at 12, log at 11" of the sinks that keep a cursor */
static void list_cursors(yyjson_val *sinks, char *buf, size_t size) {
  size_t i, n, used = 0;
  yyjson_val *key, *sink;
  buf[0] = 0;
  yyjson_obj_foreach(sinks, i, n, key, sink) {
    yyjson_val *cursor = yyjson_obj_get(sink, "cursor");
    if (!yyjson_is_obj(cursor)) continue; /* of a sink that keeps none */
    int added = snprintf(buf + used, size - used, "%s%s at %llu", used ? ", " : "; ",
                         cli_text(key), (unsigned long long)number(cursor, "checkpoint"));
    if (added < 0 || (size_t)added >= size - used) return;
    used += (size_t)added;
  }
}

weir_status cli_run_stats_read(weir_pipeline *pipeline, cli_run_stats *out,
                               weir_error *err) {
  cli_run_stats stats = {0};
  weir_bytes json = {0};
  weir_status status = weir_pipeline_stats(pipeline, &json, err);
  if (status) return status;
  yyjson_doc *doc = yyjson_read((const char *)json.data, json.size, 0);
  yyjson_val *root = yyjson_doc_get_root(doc), *run = yyjson_obj_get(root, "run");
  yyjson_mut_doc *rest = yyjson_doc_mut_copy(doc, NULL);
  if (!run || !rest) {
    status = weir_error_set(err, WEIR_E_INTERNAL, 0,
                            "the pipeline's statistics cannot be read");
    goto out;
  }
  stats.rows = number(run, "rows");
  stats.bytes = number(run, "bytes");
  stats.epochs = number(run, "epochs");
  stats.letters = number(run, "dead_letters");
  stats.seconds = yyjson_get_num(yyjson_obj_get(run, "seconds"));
  list_cursors(yyjson_obj_get(run, "sinks"), stats.sinks, sizeof(stats.sinks));
  yyjson_mut_obj_remove_key(yyjson_mut_doc_get_root(rest), "run");
  stats.run_json = yyjson_val_write(run, 0, NULL);
  stats.state_json = yyjson_mut_write(rest, 0, NULL);
  if (!stats.run_json || !stats.state_json) {
    cli_run_stats_done(&stats);
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  *out = stats;
out:
  yyjson_mut_doc_free(rest);
  yyjson_doc_free(doc);
  weir_bytes_release(&json);
  return status;
}

void cli_run_stats_done(cli_run_stats *stats) {
  free(stats->run_json);
  free(stats->state_json);
  *stats = (cli_run_stats){0};
}

void cli_print_resolved(yyjson_val *root) {
  size_t i, n;
  yyjson_val *item;
  char rows[48];
  if (yyjson_arr_size(yyjson_obj_get(root, "resolved"))) puts("resolved by hand:");
  yyjson_arr_foreach(yyjson_obj_get(root, "resolved"), i, n, item) {
    printf("  %s, epoch %llu: %s, %s (%s, %s: %s)\n", cli_text_of(item, "sink"),
           cli_number_of(item, "attempt"), cli_text_of(item, "as"),
           cli_format_count(cli_number_of(item, "rows"), "row", "rows", rows),
           cli_text_of(item, "who"), cli_text_of(item, "when"), cli_text_of(item, "why"));
  }
}
