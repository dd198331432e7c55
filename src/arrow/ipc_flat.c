/* SPDX-License-Identifier: Apache-2.0 */
/* Flatbuffers of IPC messages and footers (Apache Arrow's format/Message.fbs, File.fbs, Schema.fbs),
 * verified and taken apart. */
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"
#include "arrow/ipc_flat.h"

/* flatcc's own verifier follows each reference, so tables that refer to each other twice a level cost
 * 2^levels. These verifiers do the same checks within a budget of tables. */
static _Thread_local uint32_t tables_left;

static int spend_table(void) {
  if (tables_left == 0) return flatcc_verify_error_max_nesting_level_reached;
  tables_left--;
  return flatcc_verify_ok;
}

static int verify_pair(flatcc_table_verifier_descriptor_t *td) {
  int bad = spend_table();
  return bad ? bad : flat(KeyValue_verify_table(td));
}

static int verify_field(flatcc_table_verifier_descriptor_t *td) {
  int bad = spend_table();
  if (bad || (bad = flatcc_verify_string_field(td, 0, 0)) ||
      (bad = flatcc_verify_field(td, 1, 1, 1)) ||
      (bad = flatcc_verify_union_field(td, 3, 0, &flat(Type_union_verifier))) ||
      (bad =
           flatcc_verify_table_field(td, 4, 0, &flat(DictionaryEncoding_verify_table))) ||
      (bad = flatcc_verify_table_vector_field(td, 5, 0, &verify_field)))
    return bad;
  return flatcc_verify_table_vector_field(td, 6, 0, &verify_pair);
}

static int verify_schema(flatcc_table_verifier_descriptor_t *td) {
  int bad = flatcc_verify_field(td, 0, 2, 2);
  if (bad || (bad = flatcc_verify_table_vector_field(td, 1, 0, &verify_field)) ||
      (bad = flatcc_verify_table_vector_field(td, 2, 0, &verify_pair)))
    return bad;
  return flatcc_verify_vector_field(td, 3, 0, 8, 8, INT64_C(536870911));
}

static int verify_header(flatcc_union_verifier_descriptor_t *ud) {
  switch (ud->type) {
    case flat(MessageHeader_Schema):
      return flatcc_verify_union_table(ud, verify_schema);
    case flat(MessageHeader_DictionaryBatch):
      return flatcc_verify_union_table(ud, flat(DictionaryBatch_verify_table));
    case flat(MessageHeader_RecordBatch):
      return flatcc_verify_union_table(ud, flat(RecordBatch_verify_table));
    default:
      return flatcc_verify_ok; /* refused by name afterwards, never looked into */
  }
}

static int verify_message(flatcc_table_verifier_descriptor_t *td) {
  int bad = flatcc_verify_field(td, 0, 2, 2);
  if (bad || (bad = flatcc_verify_union_field(td, 2, 0, &verify_header))) return bad;
  return flatcc_verify_field(td, 3, 8, 8);
}

static int verify_footer(flatcc_table_verifier_descriptor_t *td) {
  int bad = flatcc_verify_field(td, 0, 2, 2);
  if (bad || (bad = flatcc_verify_table_field(td, 1, 0, &verify_schema)) ||
      (bad = flatcc_verify_vector_field(td, 2, 0, 24, 8, INT64_C(178956970))))
    return bad;
  return flatcc_verify_vector_field(td, 3, 0, 24, 8, INT64_C(178956970));
}

static weir_status verify(const void *metadata, size_t size,
                          flatcc_table_verifier_f *root, const char *what,
                          weir_error *err) {
  tables_left = ARROW_MAX_FIELDS;
  int bad = size < 8 ? flatcc_verify_error_buffer_header_too_small
                     : flatcc_verify_table_as_root(metadata, size, NULL, root);
  if (bad == flatcc_verify_ok) return WEIR_OK;
  if (tables_left == 0)
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "the %s has more than %d fields", what,
                          ARROW_MAX_FIELDS);
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "the %s is not a valid flatbuffer: %s",
                        what, flatcc_verify_error_string(bad));
}

static weir_status check_version(int version, bool *v4, weir_error *err) {
  if (version != flat(MetadataVersion_V4) && version != flat(MetadataVersion_V5))
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "metadata version V%d; weir reads V4 and V5 (Arrow 0.8 and later)", version + 1);
  *v4 = version == flat(MetadataVersion_V4);
  return WEIR_OK;
}

_Static_assert(sizeof(ipc_node) == sizeof(flat(FieldNode_t)), "FieldNode is two int64");
_Static_assert(sizeof(ipc_range) == sizeof(flat(Buffer_t)), "Buffer is two int64");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "flatbuffers' structs are little-endian");

static weir_status parse_batch(flat(RecordBatch_table_t) table, ipc_message *out,
                               weir_error *err) {
  flat(FieldNode_vec_t) nodes = flat(RecordBatch_nodes(table));
  flat(Buffer_vec_t) buffers = flat(RecordBatch_buffers(table));
  flatbuffers_int64_vec_t variadic = flat(RecordBatch_variadicBufferCounts(table));
  flat(BodyCompression_table_t) compression = flat(RecordBatch_compression(table));
  out->length = flat(RecordBatch_length(table));
  out->nodes = (const ipc_node *)nodes;
  out->n_nodes = nodes == NULL ? 0 : flat(FieldNode_vec_len(nodes));
  out->buffers = (const ipc_range *)buffers;
  out->n_buffers = buffers == NULL ? 0 : flat(Buffer_vec_len(buffers));
  out->variadic = variadic;
  out->n_variadic = variadic == NULL ? 0 : flatbuffers_int64_vec_len(variadic);
  out->codec = IPC_PLAIN;
  if (compression == NULL) return WEIR_OK;
  int codec = flat(BodyCompression_codec(compression));
  int method = flat(BodyCompression_method(compression));
  if ((codec != IPC_LZ4 && codec != IPC_ZSTD) ||
      method != flat(BodyCompressionMethod_BUFFER))
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "compression codec %d, method %d; weir reads LZ4_FRAME and ZSTD", codec, method);
  out->codec = (ipc_codec)codec;
  return WEIR_OK;
}

weir_status ipc_message_parse(const void *metadata, size_t size, ipc_message *out,
                              weir_error *err) {
  ipc_message made = {0};
  BASE_TRY(verify(metadata, size, verify_message, "message", err));
  flat(Message_table_t) message = flat(Message_as_root(metadata));
  BASE_TRY(check_version(flat(Message_version(message)), &made.v4, err));
  made.body_length = flat(Message_bodyLength(message));
  if (made.body_length < 0)
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "the message has a negative body length");
  const void *header = flat(Message_header(message));
  int type = flat(Message_header_type(message));
  if (type != IPC_SCHEMA && type != IPC_DICTIONARY && type != IPC_BATCH)
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "a message of type %s; weir reads schemas, dictionaries and record batches",
        flat(MessageHeader_type_name((flat(MessageHeader_union_type_t))type)));
  if (header == NULL)
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "the message has no header");
  made.kind = (ipc_kind)type;
  if (type == IPC_SCHEMA) {
    made.schema = header;
  } else if (type == IPC_BATCH) {
    BASE_TRY(parse_batch(header, &made, err));
  } else {
    made.id = flat(DictionaryBatch_id((flat(DictionaryBatch_table_t))header));
    made.delta = flat(DictionaryBatch_isDelta((flat(DictionaryBatch_table_t))header));
    flat(RecordBatch_table_t) data =
        flat(DictionaryBatch_data((flat(DictionaryBatch_table_t))header));
    if (data == NULL)
      return weir_error_set(err, WEIR_E_CORRUPT, 0, "the dictionary has no values");
    BASE_TRY(parse_batch(data, &made, err));
  }
  *out = made;
  return WEIR_OK;
}

static weir_status take_blocks(flat(Block_vec_t) vec, ipc_block **out, size_t *n,
                               weir_error *err) {
  *n = vec == NULL ? 0 : flat(Block_vec_len(vec));
  *out = base_calloc(*n, sizeof **out, err);
  if (*out == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; i < *n; i++) {
    flat(Block_struct_t) block = flat(Block_vec_at(vec, i));
    (*out)[i] = (ipc_block){flat(Block_offset(block)), flat(Block_metaDataLength(block)),
                            flat(Block_bodyLength(block))};
  }
  return WEIR_OK;
}

weir_status ipc_footer_parse(const void *metadata, size_t size, ipc_footer *out,
                             weir_error *err) {
  ipc_footer made = {0};
  bool v4 = false;
  BASE_TRY(verify(metadata, size, verify_footer, "footer", err));
  flat(Footer_table_t) footer = flat(Footer_as_root(metadata));
  BASE_TRY(check_version(flat(Footer_version(footer)), &v4, err));
  made.schema = flat(Footer_schema(footer));
  if (made.schema == NULL)
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "the footer has no schema");
  weir_status status = take_blocks(flat(Footer_dictionaries(footer)), &made.dictionaries,
                                   &made.n_dictionaries, err);
  if (status == WEIR_OK)
    status = take_blocks(flat(Footer_recordBatches(footer)), &made.batches,
                         &made.n_batches, err);
  if (status == WEIR_OK)
    *out = made;
  else
    ipc_footer_done(&made);
  return status;
}

void ipc_footer_done(ipc_footer *footer) {
  free(footer->dictionaries);
  free(footer->batches);
  *footer = (ipc_footer){0};
}
