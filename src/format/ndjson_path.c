/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a row a value lies, for messages. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "format/ndjson.h"

#define MAX_STEPS 160 /* more than a schema nests, with two for each map */

void ndjson_path_text(const ndjson_path *path, char out[NDJSON_PATH_TEXT]) {
  const ndjson_path *steps[MAX_STEPS];
  size_t n = 0, used = 0;
  out[0] = 0;
  for (; path != NULL && n < MAX_STEPS; path = path->up) steps[n++] = path;
  while (n-- > 0) {
    const ndjson_path *step = steps[n];
    char text[NDJSON_PATH_TEXT], key[FORMAT_EXCERPT];
    int wrote;
    if (step->map_key != NULL) {
      format_excerpt(step->map_key->data, step->map_key->size, 0, key);
      wrote = snprintf(text, sizeof(text), "[\"%s\"]", key);
    } else if (step->item >= 0) {
      wrote = snprintf(text, sizeof(text), "[%lld]", (long long)step->item);
    } else {
      wrote =
          snprintf(text, sizeof(text), "%s%.100s", used > 0 ? "." : "", step->col->name);
    }
    if (wrote < 0 || used + (size_t)wrote >= NDJSON_PATH_TEXT) break;
    memcpy(out + used, text, (size_t)wrote + 1);
    used += (size_t)wrote;
  }
}
