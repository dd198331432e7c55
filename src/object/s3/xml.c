/* SPDX-License-Identifier: Apache-2.0 */
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "object/s3/s3.h"

/* A key with every byte as %XX. */
enum { MAX_TEXT = 3 * WEIR_OBJECT_MAX_KEY, MAX_DEPTH = 16 };

typedef struct reading {
  const s3_xml *reader;
  XML_Parser parser;
  char text[MAX_TEXT + 1];
  size_t size;
  int depth;
  weir_status status;
  weir_error *err;
} reading;

static void stop(reading *r, const char *why) {
  if (!r->status) {
    r->status = weir_error_set(r->err, WEIR_E_CORRUPT, 0,
                               "the object store's answer cannot be read: %s", why);
  }
  XML_StopParser(r->parser, XML_FALSE);
}

static void XMLCALL on_begin(void *ctx, const char *name, const char **attributes) {
  (void)attributes;
  reading *r = ctx;
  if (++r->depth > MAX_DEPTH) {
    stop(r, "its elements are nested too deep");
    return;
  }
  r->size = 0;
  if (r->reader->begin) r->reader->begin(r->reader->ctx, name);
}

static void XMLCALL on_text(void *ctx, const char *text, int size) {
  reading *r = ctx;
  if ((size_t)size > MAX_TEXT - r->size) {
    size = (int)(MAX_TEXT - r->size); /* messages may be long, and nobody asks for them */
  }
  memcpy(r->text + r->size, text, (size_t)size);
  r->size += (size_t)size;
}

static void XMLCALL on_end(void *ctx, const char *name) {
  reading *r = ctx;
  r->depth--;
  r->text[r->size] = 0;
  if (!r->status) r->status = r->reader->end(r->reader->ctx, name, r->text, r->err);
  if (r->status) XML_StopParser(r->parser, XML_FALSE);
  r->size = 0;
}

static void XMLCALL on_doctype(void *ctx, const char *name, const char *system,
                               const char *public_id, int internal) {
  (void)name, (void)system, (void)public_id, (void)internal;
  stop(ctx, "it declares a document type");
}

weir_status s3_xml_read(const s3_xml *reader, const void *data, size_t size,
                        weir_error *err) {
  reading *r = base_calloc(1, sizeof(*r), err);
  if (!r) return WEIR_E_NOMEM;
  r->reader = reader;
  r->err = err;
  r->parser = XML_ParserCreate("UTF-8");
  if (!r->parser) {
    free(r);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  }
  XML_SetUserData(r->parser, r);
  XML_SetElementHandler(r->parser, on_begin, on_end);
  XML_SetCharacterDataHandler(r->parser, on_text);
  XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
  if (size > INT32_MAX) {
    stop(r, "it is too long");
  } else if (XML_Parse(r->parser, data, (int)size, 1) != XML_STATUS_OK) {
    stop(r, XML_ErrorString(XML_GetErrorCode(r->parser)));
  }
  weir_status status = r->status;
  XML_ParserFree(r->parser);
  free(r);
  return status;
}

int64_t s3_time_parse(const char *text) {
  struct tm utc = {0};
  const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &utc);
  if (!end || (*end != '.' && *end != 'Z')) return 0;
  return (int64_t)timegm(&utc) * BASE_NS_PER_S;
}
