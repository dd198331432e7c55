/* SPDX-License-Identifier: Apache-2.0 */
#include "support/rows.h"

#include <nanoarrow/nanoarrow.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include <cmocka.h>

static void add_column(struct ArrowSchema *child, char *text) {
  weir_error err = {0};
  char *colon = strchr(text, ':');
  static const char suffix[] = " not null";
  char *required = NULL;
  assert_non_null(colon);
  if (strlen(text) > sizeof(suffix)) required = text + strlen(text) - sizeof(suffix) + 1;
  if (required != NULL && strcmp(required, suffix) != 0) required = NULL;
  *colon = 0;
  if (required != NULL) *required = 0;
  child->release(child); /* what nanoarrow put there */
  if (weir_type_parse(colon + 1, child, &err) != WEIR_OK) fail_msg("%s", err.message);
  assert_int_equal(ArrowSchemaSetName(child, text + strspn(text, " ")), NANOARROW_OK);
  if (required != NULL) child->flags &= ~ARROW_FLAG_NULLABLE;
}

weir_schema *rows_schema(const char *text) {
  struct ArrowSchema arrow = {0};
  weir_schema *schema = NULL;
  weir_error err = {0};
  char *copy = strdup(text), *rest = copy;
  int64_t n = 1;
  assert_non_null(copy);
  for (const char *p = text; *p; p++) n += *p == ';';
  ArrowSchemaInit(&arrow);
  assert_int_equal(ArrowSchemaSetTypeStruct(&arrow, n), NANOARROW_OK);
  for (int64_t i = 0; i < n; i++) add_column(arrow.children[i], strsep(&rest, ";"));
  if (weir_schema_new(&arrow, &schema, &err) != WEIR_OK) fail_msg("%s", err.message);
  free(copy);
  return schema;
}

char *rows_text(const weir_batch *batch) {
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *data = NULL;
  size_t size = 0;
  weir_error err = {0};
  if (weir_ndjson_encoder_new(weir_batch_schema(batch), &encoder, &err) != WEIR_OK ||
      weir_ndjson_encoder_write(encoder, batch, &data, &size, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
  char *text = malloc(size + 1);
  assert_non_null(text);
  if (size > 0) memcpy(text, data, size);
  text[size] = 0;
  weir_ndjson_encoder_free(encoder);
  return text;
}

weir_batch *rows_batch(weir_schema *schema, const char *text) {
  weir_ndjson_decoder *decoder = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  size_t used = 0;
  if (weir_ndjson_decoder_new(schema, NULL, &decoder, &err) != WEIR_OK ||
      weir_ndjson_decoder_feed(decoder, text, strlen(text), 1, &used, &batch, &err) !=
          WEIR_OK) {
    fail_msg("%s", err.message);
  }
  assert_null(batch);
  assert_int_equal(used, strlen(text));
  if (weir_ndjson_decoder_flush(decoder, &batch, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
  weir_ndjson_decoder_free(decoder);
  return batch;
}
