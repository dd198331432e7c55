/* SPDX-License-Identifier: Apache-2.0 */
/* "ARROW:schema", as Arrow C++ and arrow-rs write and read it: the encapsulated IPC message of the
 * schema, that is the beginning of a stream, in base64 with padding (RFC 4648, section 4). */
#include <weir/ipc.h>

#include "parquet.h"

static weir_status collect(void *ctx, const void *data, size_t size, weir_error *err) {
  return base_buf_append(ctx, data, size, err);
}

static weir_status to_base64(const base_buf *from, base_buf *out, weir_error *err) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < from->size; i += 3) {
    size_t n = from->size - i < 3 ? from->size - i : 3;
    uint32_t v = (uint32_t)from->data[i] << 16;
    if (n > 1) v |= (uint32_t)from->data[i + 1] << 8;
    if (n > 2) v |= from->data[i + 2];
    char text[4] = {digits[v >> 18], digits[v >> 12 & 63],
                    n > 1 ? digits[v >> 6 & 63] : '=', n > 2 ? digits[v & 63] : '='};
    BASE_TRY(base_buf_append(out, text, sizeof(text), err));
  }
  return WEIR_OK;
}

weir_status parquet_arrow_schema(weir_schema *schema, char **out, weir_error *err) {
  weir_ipc_writer_options options = {.struct_size = sizeof(options)};
  weir_ipc_writer *writer = NULL;
  base_buf message = {0}, text = {0};
  weir_status status =
      weir_ipc_writer_new(schema, &options, collect, &message, &writer, err);
  weir_ipc_writer_free(writer);
  if (status == WEIR_OK) status = to_base64(&message, &text, err);
  if (status == WEIR_OK) {
    *out = base_buf_steal_str(&text, err);
    if (*out == NULL) status = WEIR_E_NOMEM;
  }
  base_buf_done(&message);
  base_buf_done(&text);
  return status;
}
