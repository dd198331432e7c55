/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline files: the first line names what is set on top ("sinks.lake.path=x"), the rest is YAML. All
 * that the pipeline room does with a config is done, against a table with every type of option. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

static const weir_option table[] = {
    {"path", WEIR_OPT_PATH, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL, "."},
    {"paths", WEIR_OPT_PATHS, 0, NULL, 0, 0, NULL, "."},
    {"format", WEIR_OPT_ENUM, 0, "parquet", 0, 0, "parquet|csv", "."},
    {"label", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL, "."},
    {"n", WEIR_OPT_INT, 0, "1", 1, 64, NULL, "."},
    {"ratio", WEIR_OPT_FLOAT, 0, NULL, 0, 1, NULL, "."},
    {"on", WEIR_OPT_BOOL, 0, NULL, 0, 0, NULL, "."},
    {"roll.size", WEIR_OPT_SIZE, 0, "64MiB", 1, 0, NULL, "."},
    {"wait", WEIR_OPT_DURATION, 0, "1s", 0, 0, NULL, "."},
    {"columns", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL, "."},
    {"schema", WEIR_OPT_MAP, 0, "infer", 0, 0, NULL, "."},
    {0},
};

static void check_connector(const weir_config *config, int32_t kind, size_t i) {
  config_connector c = {0};
  weir_options *options = NULL;
  weir_error err = {0};
  base_buf dump = {0};
  if (config_connector_at(config, kind, i, &c, &err)) return;
  config_option_error(config, &c, "roll.size", &err, "x");
  if (!config_options(config, &c, table, &options, &err)) {
    for (size_t k = 0; k < weir_options_count(options, "schema"); k++) {
      if (!weir_options_key(options, "schema", k)) abort();
    }
    if (!weir_options_string(options, "path")) abort();
    if (config_options_dump(options, &dump, &err)) abort();
  } else if (!base_utf8_valid(err.message, strlen(err.message))) {
    abort();
  }
  base_buf_done(&dump);
  weir_options_free(options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_error err = {0};
  weir_config *config = NULL;
  const uint8_t *line = memchr(data, '\n', size);
  size_t first = line ? (size_t)(line - data) : 0;
  char *set = base_strndup((const char *)data, first, &err);
  const char *yaml = (const char *)data + (line ? first + 1 : 0);
  size_t yaml_size = size - (line ? first + 1 : 0);
  if (!set || weir_config_new(&config, &err)) abort();
  if (weir_config_read(config, yaml, yaml_size, "f.yaml", "/", &err) &&
      !base_utf8_valid(err.message, strlen(err.message))) {
    abort();
  }
  char *value = strchr(set, '=');
  if (value) {
    *value = 0;
    weir_config_set(config, set, value + 1, &err);
  }
  config_top top = {0};
  if (!config_top_init(config, &top, &err) && (!top.pipeline || !top.state)) abort();
  config_top_done(&top);
  for (int32_t kind = CONFIG_SOURCES; kind <= CONFIG_SINKS; kind++) {
    for (size_t i = 0; i < config_connector_count(config, kind); i++)
      check_connector(config, kind, i);
  }
  weir_config_free(config);
  free(set);
  return 0;
}
