/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and footers as flatbuffers (Apache Arrow's format/Message.fbs, File.fbs, Schema.fbs). */
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"
#include "arrow/ipc_flat.h"

typedef struct schema_writer {
  flatcc_builder_t *b;
  const ipc_schema *schema;
  weir_error *err;
} schema_writer;

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "Arrow IPC metadata: out of memory");
}

/* A builder's call that returns non-zero when there is no memory. */
#define FLAT_TRY(err, call)                     \
  do {                                          \
    if (flat(call) != 0) return no_memory(err); \
  } while (0)
/* One that returns 0 or NULL then. */
#define FLAT_MADE(err, call)                \
  do {                                      \
    if (!flat(call)) return no_memory(err); \
  } while (0)

static weir_status put_pairs(schema_writer *w, const char *metadata,
                             int (*start)(flatcc_builder_t *),
                             flat(KeyValue_ref_t) * (*end)(flatcc_builder_t *)) {
  struct ArrowMetadataReader reader;
  struct ArrowStringView key, value;
  if (ArrowMetadataReaderInit(&reader, metadata) != NANOARROW_OK) return WEIR_OK;
  while (reader.remaining_keys > 0) {
    if (ArrowMetadataReaderRead(&reader, &key, &value) != NANOARROW_OK) break;
    if (start(w->b) != 0) return no_memory(w->err);
    FLAT_TRY(w->err, KeyValue_key_create(w->b, key.data, (size_t)key.size_bytes));
    FLAT_TRY(w->err, KeyValue_value_create(w->b, value.data, (size_t)value.size_bytes));
    if (end(w->b) == NULL) return no_memory(w->err);
  }
  return WEIR_OK;
}

static int put_int(flatcc_builder_t *b, const arrow_node *node) {
  return flat(Field_type_Int_create(b, 8 * node->width,
                                    strchr("csil", node->schema->format[0]) != NULL));
}

static weir_status put_union(schema_writer *w, const arrow_node *node) {
  FLAT_TRY(w->err, Field_type_Union_start(w->b));
  FLAT_TRY(w->err, Union_mode_add(w->b, node->layout == ARROW_DENSE_UNION
                                            ? flat(UnionMode_Dense)
                                            : flat(UnionMode_Sparse)));
  FLAT_TRY(w->err, Union_typeIds_start(w->b));
  for (int64_t child = 0; child < node->n_children; child++)
    for (int32_t id = 0; id < 128; id++)
      if (node->child_of_type[id] == child)
        FLAT_MADE(w->err, Union_typeIds_push(w->b, &id));
  FLAT_TRY(w->err, Union_typeIds_end(w->b));
  FLAT_TRY(w->err, Field_type_Union_end(w->b));
  return WEIR_OK;
}

static weir_status put_timestamp(schema_writer *w, const struct ArrowSchemaView *view) {
  FLAT_TRY(w->err, Field_type_Timestamp_start(w->b));
  FLAT_TRY(w->err, Timestamp_unit_add(w->b, (flat(TimeUnit_enum_t))view->time_unit));
  if (view->timezone[0] != '\0')
    FLAT_TRY(w->err, Timestamp_timezone_create_str(w->b, view->timezone));
  FLAT_TRY(w->err, Field_type_Timestamp_end(w->b));
  return WEIR_OK;
}

/* The types that one call makes; -1: another type. */
static int put_simple(flatcc_builder_t *b, const arrow_node *node,
                      const struct ArrowSchemaView *view, enum ArrowType type) {
  const flat(TimeUnit_enum_t) unit = (flat(TimeUnit_enum_t))view->time_unit;
  switch (type) {
    case NANOARROW_TYPE_NA:
      return flat(Field_type_Null_create(b));
    case NANOARROW_TYPE_BOOL:
      return flat(Field_type_Bool_create(b));
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
    case NANOARROW_TYPE_INT64:
    case NANOARROW_TYPE_UINT64:
      return put_int(b, node);
    case NANOARROW_TYPE_HALF_FLOAT:
      return flat(Field_type_FloatingPoint_create(b, flat(Precision_HALF)));
    case NANOARROW_TYPE_FLOAT:
      return flat(Field_type_FloatingPoint_create(b, flat(Precision_SINGLE)));
    case NANOARROW_TYPE_DOUBLE:
      return flat(Field_type_FloatingPoint_create(b, flat(Precision_DOUBLE)));
    case NANOARROW_TYPE_STRING:
      return flat(Field_type_Utf8_create(b));
    case NANOARROW_TYPE_LARGE_STRING:
      return flat(Field_type_LargeUtf8_create(b));
    case NANOARROW_TYPE_STRING_VIEW:
      return flat(Field_type_Utf8View_create(b));
    case NANOARROW_TYPE_BINARY:
      return flat(Field_type_Binary_create(b));
    case NANOARROW_TYPE_LARGE_BINARY:
      return flat(Field_type_LargeBinary_create(b));
    case NANOARROW_TYPE_BINARY_VIEW:
      return flat(Field_type_BinaryView_create(b));
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      return flat(Field_type_FixedSizeBinary_create(b, view->fixed_size));
    case NANOARROW_TYPE_DATE32:
      return flat(Field_type_Date_create(b, flat(DateUnit_DAY)));
    case NANOARROW_TYPE_DATE64:
      return flat(Field_type_Date_create(b, flat(DateUnit_MILLISECOND)));
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64:
      return flat(Field_type_Time_create(b, unit, 8 * node->width));
    case NANOARROW_TYPE_DURATION:
      return flat(Field_type_Duration_create(b, unit));
    case NANOARROW_TYPE_INTERVAL_MONTHS:
      return flat(Field_type_Interval_create(b, flat(IntervalUnit_YEAR_MONTH)));
    case NANOARROW_TYPE_INTERVAL_DAY_TIME:
      return flat(Field_type_Interval_create(b, flat(IntervalUnit_DAY_TIME)));
    case NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO:
      return flat(Field_type_Interval_create(b, flat(IntervalUnit_MONTH_DAY_NANO)));
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      return flat(Field_type_Decimal_create(b, view->decimal_precision,
                                            view->decimal_scale, view->decimal_bitwidth));
    case NANOARROW_TYPE_LIST:
      return flat(Field_type_List_create(b));
    case NANOARROW_TYPE_LARGE_LIST:
      return flat(Field_type_LargeList_create(b));
    case NANOARROW_TYPE_LIST_VIEW:
      return flat(Field_type_ListView_create(b));
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
      return flat(Field_type_LargeListView_create(b));
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      return flat(Field_type_FixedSizeList_create(b, view->fixed_size));
    case NANOARROW_TYPE_STRUCT:
      return flat(Field_type_Struct__create(b));
    case NANOARROW_TYPE_MAP:
      return flat(Field_type_Map_create(
          b, (node->schema->flags & ARROW_FLAG_MAP_KEYS_SORTED) != 0));
    case NANOARROW_TYPE_RUN_END_ENCODED:
      return flat(Field_type_RunEndEncoded_create(b));
    default:
      return -1;
  }
}

static weir_status put_type(schema_writer *w, const arrow_node *node) {
  struct ArrowSchemaView view = {0};
  if (ArrowSchemaViewInit(&view, node->schema, NULL) != NANOARROW_OK)
    return weir_error_set(w->err, WEIR_E_INTERNAL, 0, "schema: it was valid before");
  if (node->layout == ARROW_SPARSE_UNION || node->layout == ARROW_DENSE_UNION)
    return put_union(w, node);
  if (view.type == NANOARROW_TYPE_TIMESTAMP) return put_timestamp(w, &view);
  return put_simple(w->b, node, &view, view.type) == 0 ? WEIR_OK : no_memory(w->err);
}

static weir_status put_dictionary(schema_writer *w, const arrow_node *node) {
  const int64_t id = w->schema->ids[node - w->schema->schema->tree.nodes];
  const bool is_signed = strchr("csil", node->schema->format[0]) != NULL;
  flat(Int_ref_t) index = flat(Int_create(w->b, 8 * node->width, is_signed));
  if (!index) return no_memory(w->err);
  flat(DictionaryEncoding_ref_t) encoding = flat(DictionaryEncoding_create(
      w->b, id, index, (node->schema->flags & ARROW_FLAG_DICTIONARY_ORDERED) != 0,
      flat(DictionaryKind_DenseArray)));
  if (!encoding) return no_memory(w->err);
  FLAT_TRY(w->err, Field_dictionary_add(w->b, encoding));
  return WEIR_OK;
}

static weir_status put_field(schema_writer *w, const arrow_node *node) {
  const struct ArrowSchema *schema = node->schema;
  const arrow_node *values = node->dictionary != NULL ? node->dictionary : node;
  FLAT_TRY(w->err, Field_name_create_str(w->b, schema->name == NULL ? "" : schema->name));
  FLAT_TRY(w->err, Field_nullable_add(w->b, (schema->flags & ARROW_FLAG_NULLABLE) != 0));
  BASE_TRY(put_type(w, values));
  if (node->dictionary != NULL) BASE_TRY(put_dictionary(w, node));
  FLAT_TRY(w->err, Field_children_start(w->b));
  for (int64_t i = 0; i < values->n_children; i++) {
    FLAT_TRY(w->err, Field_children_push_start(w->b));
    BASE_TRY(put_field(w, &values->children[i]));
    FLAT_MADE(w->err, Field_children_push_end(w->b));
  }
  FLAT_TRY(w->err, Field_children_end(w->b));
  if (schema->metadata == NULL) return WEIR_OK;
  FLAT_TRY(w->err, Field_custom_metadata_start(w->b));
  BASE_TRY(put_pairs(w, schema->metadata, &flat(Field_custom_metadata_push_start),
                     &flat(Field_custom_metadata_push_end)));
  FLAT_TRY(w->err, Field_custom_metadata_end(w->b));
  return WEIR_OK;
}

static weir_status put_schema(schema_writer *w) {
  const arrow_node *root = arrow_schema_root(w->schema->schema);
  FLAT_TRY(w->err, Schema_endianness_add(w->b, flat(Endianness_Little)));
  FLAT_TRY(w->err, Schema_fields_start(w->b));
  for (int64_t i = 0; i < root->n_children; i++) {
    FLAT_TRY(w->err, Schema_fields_push_start(w->b));
    BASE_TRY(put_field(w, &root->children[i]));
    FLAT_MADE(w->err, Schema_fields_push_end(w->b));
  }
  FLAT_TRY(w->err, Schema_fields_end(w->b));
  if (root->schema->metadata == NULL) return WEIR_OK;
  FLAT_TRY(w->err, Schema_custom_metadata_start(w->b));
  BASE_TRY(put_pairs(w, root->schema->metadata, &flat(Schema_custom_metadata_push_start),
                     &flat(Schema_custom_metadata_push_end)));
  FLAT_TRY(w->err, Schema_custom_metadata_end(w->b));
  return WEIR_OK;
}

/* The finished flatbuffer behind what is in `out`, padded with zeros to 8 bytes. */
static weir_status take_buffer(flatcc_builder_t *b, base_buf *out, weir_error *err) {
  size_t size = flatcc_builder_get_buffer_size(b), padded = (size + 7) / 8 * 8;
  BASE_TRY(base_buf_reserve(out, padded, err));
  memset(out->data + out->size, 0, padded);
  if (flatcc_builder_copy_buffer(b, out->data + out->size, size) == NULL)
    return no_memory(err);
  out->size += padded;
  return WEIR_OK;
}

static weir_status build_schema(flatcc_builder_t *b, const ipc_schema *schema,
                                weir_error *err) {
  schema_writer w = {b, schema, err};
  FLAT_TRY(err, Message_start_as_root(b));
  FLAT_TRY(err, Message_version_add(b, flat(MetadataVersion_V5)));
  FLAT_TRY(err, Message_header_Schema_start(b));
  BASE_TRY(put_schema(&w));
  FLAT_TRY(err, Message_header_Schema_end(b));
  FLAT_MADE(err, Message_end_as_root(b));
  return WEIR_OK;
}

static weir_status build_record_batch(flatcc_builder_t *b, const ipc_message *m,
                                      weir_error *err) {
  FLAT_TRY(err, RecordBatch_length_add(b, m->length));
  FLAT_TRY(err,
           RecordBatch_nodes_create(b, (const flat(FieldNode_t) *)m->nodes, m->n_nodes));
  FLAT_TRY(err, RecordBatch_buffers_create(b, (const flat(Buffer_t) *)m->buffers,
                                           m->n_buffers));
  if (m->n_variadic > 0)
    FLAT_TRY(err, RecordBatch_variadicBufferCounts_create(b, m->variadic, m->n_variadic));
  if (m->codec == IPC_PLAIN) return WEIR_OK;
  FLAT_TRY(err, RecordBatch_compression_create(b, (flat(CompressionType_enum_t))m->codec,
                                               flat(BodyCompressionMethod_BUFFER)));
  return WEIR_OK;
}

static weir_status build_batch(flatcc_builder_t *b, const ipc_message *m,
                               weir_error *err) {
  FLAT_TRY(err, Message_start_as_root(b));
  FLAT_TRY(err, Message_version_add(b, flat(MetadataVersion_V5)));
  if (m->kind == IPC_BATCH) {
    FLAT_TRY(err, Message_header_RecordBatch_start(b));
    BASE_TRY(build_record_batch(b, m, err));
    FLAT_TRY(err, Message_header_RecordBatch_end(b));
  } else {
    FLAT_TRY(err, Message_header_DictionaryBatch_start(b));
    FLAT_TRY(err, DictionaryBatch_id_add(b, m->id));
    FLAT_TRY(err, DictionaryBatch_data_start(b));
    BASE_TRY(build_record_batch(b, m, err));
    FLAT_TRY(err, DictionaryBatch_data_end(b));
    FLAT_TRY(err, DictionaryBatch_isDelta_add(b, m->delta));
    FLAT_TRY(err, Message_header_DictionaryBatch_end(b));
  }
  FLAT_TRY(err, Message_bodyLength_add(b, m->body_length));
  FLAT_MADE(err, Message_end_as_root(b));
  return WEIR_OK;
}

static weir_status put_blocks(flatcc_builder_t *b, const ipc_block *blocks, size_t n,
                              int (*push)(flatcc_builder_t *, const ipc_block *),
                              weir_error *err) {
  for (size_t i = 0; i < n; i++)
    if (push(b, &blocks[i]) != 0) return no_memory(err);
  return WEIR_OK;
}

static int push_dictionary(flatcc_builder_t *b, const ipc_block *block) {
  return flat(Footer_dictionaries_push_create(
             b, block->offset, (int32_t)block->metadata_length, block->body_length)) ==
         NULL;
}

static int push_batch(flatcc_builder_t *b, const ipc_block *block) {
  return flat(Footer_recordBatches_push_create(
             b, block->offset, (int32_t)block->metadata_length, block->body_length)) ==
         NULL;
}

static weir_status build_footer(flatcc_builder_t *b, const ipc_schema *schema,
                                const ipc_footer *footer, weir_error *err) {
  schema_writer w = {b, schema, err};
  FLAT_TRY(err, Footer_start_as_root(b));
  FLAT_TRY(err, Footer_version_add(b, flat(MetadataVersion_V5)));
  FLAT_TRY(err, Footer_schema_start(b));
  BASE_TRY(put_schema(&w));
  FLAT_TRY(err, Footer_schema_end(b));
  FLAT_TRY(err, Footer_dictionaries_start(b));
  BASE_TRY(
      put_blocks(b, footer->dictionaries, footer->n_dictionaries, push_dictionary, err));
  FLAT_TRY(err, Footer_dictionaries_end(b));
  FLAT_TRY(err, Footer_recordBatches_start(b));
  BASE_TRY(put_blocks(b, footer->batches, footer->n_batches, push_batch, err));
  FLAT_TRY(err, Footer_recordBatches_end(b));
  FLAT_MADE(err, Footer_end_as_root(b));
  return WEIR_OK;
}

weir_status ipc_flat_schema(const ipc_schema *schema, base_buf *out, weir_error *err) {
  flatcc_builder_t b;
  if (flatcc_builder_init(&b) != 0) return no_memory(err);
  weir_status status = build_schema(&b, schema, err);
  if (status == WEIR_OK) status = take_buffer(&b, out, err);
  flatcc_builder_clear(&b);
  return status;
}

weir_status ipc_flat_batch(const ipc_message *message, base_buf *out, weir_error *err) {
  flatcc_builder_t b;
  if (flatcc_builder_init(&b) != 0) return no_memory(err);
  weir_status status = build_batch(&b, message, err);
  if (status == WEIR_OK) status = take_buffer(&b, out, err);
  flatcc_builder_clear(&b);
  return status;
}

weir_status ipc_flat_footer(const ipc_schema *schema, const ipc_footer *footer,
                            base_buf *out, weir_error *err) {
  flatcc_builder_t b;
  if (flatcc_builder_init(&b) != 0) return no_memory(err);
  weir_status status = build_footer(&b, schema, footer, err);
  if (status == WEIR_OK) status = take_buffer(&b, out, err);
  flatcc_builder_clear(&b);
  return status;
}
