/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file sink's records, all JSON, all versioned, all parsed as if a stranger had written them:
 * artifact intents, descriptors, manifests, and the records that say whose a folder is.
 */
#ifndef CONNECTORS_FILE_MANIFEST_H
#define CONNECTORS_FILE_MANIFEST_H

#include <stdbool.h>
#include <weir/cursor.h>

#include "disk.h"

#define MANIFEST_VERSION 1
#define MANIFEST_MAX (256u << 20) /* four times what a batch's descriptors may hold */
#define RECORD_MAX (64u << 10)    /* an owner or namespace record */

/* Data files are called ATTEMPT-PARTICIPANT-INDEX-INCARNATION.EXTENSION, the same while staged and once
 * published; padded, so that a listing is in order of attempts. */
#define DATA_NAME_SIZE 112
#define DATA_EXTENSION_MAX 8

typedef struct file_data_name {
  uint64_t attempt, participant, index;
  uint8_t incarnation[WEIR_INCARNATION_SIZE];
  char extension[DATA_EXTENSION_MAX + 1];
} file_data_name;

void file_data_name_format(const file_data_name *name, char out[DATA_NAME_SIZE]);
/* True when `text` is exactly what file_data_name_format gives. */
bool file_data_name_parse(const char *text, file_data_name *out);

typedef struct file_data_file {
  char name[DATA_NAME_SIZE];
  /* below `path`, of partition_by: "day=2024-02-29/kind=a"; NULL: none. Records give it before the name */
  char *folder;
  uint64_t participant, rows, bytes;
  uint8_t sha256[DISK_SHA256_SIZE];
} file_data_file;

typedef struct file_data_files {
  file_data_file *v;
  size_t n, capacity;
} file_data_files;

/* Takes file->folder over on WEIR_OK. */
weir_status file_data_files_add(file_data_files *files, const file_data_file *file,
                                weir_error *err);
/* Bytes of a descriptor that names this file, at most. */
size_t file_descriptor_bytes(const char *folder);
/* By name: in the order in which they were begun. */
void file_data_files_sort(file_data_files *files);
bool file_data_files_have(const file_data_files *files, const char *name);
void file_data_files_done(file_data_files *files); /* zeroed is fine */

/* Whose artifacts: of one participant's attempt, in one incarnation. */
typedef struct file_epoch_key {
  uint64_t attempt, participant;
  uint8_t incarnation[WEIR_INCARNATION_SIZE];
} file_epoch_key;

weir_status file_intent_write(const file_epoch_key *key, weir_bytes *out,
                              weir_error *err);
weir_status file_intent_read(const void *data, size_t size, file_epoch_key *out,
                             weir_error *err);

weir_status file_descriptor_write(const file_epoch_key *key, const file_data_files *files,
                                  weir_bytes *out, weir_error *err);
/* Appends the files of one participant's descriptor, which must be of that attempt. */
weir_status file_descriptor_read(const void *data, size_t size, uint64_t attempt,
                                 uint64_t participant, file_data_files *files,
                                 weir_error *err);

typedef struct file_manifest_attempt {
  weir_cursor cursor;
  size_t first_file, n_files; /* in manifest.files */
} file_manifest_attempt;

typedef struct file_manifest {
  uint64_t sequence;
  uint64_t floor; /* manifests numbered below it are void, there or not */
  weir_cursor predecessor;
  file_manifest_attempt *attempts; /* the last one's cursor is the target's */
  size_t n_attempts;
  file_data_files files;
  char *positions; /* JSON, or NULL */
} file_manifest;

void file_manifest_done(file_manifest *m); /* zeroed is fine */
const weir_cursor *file_manifest_cursor(
    const file_manifest *m); /* all zero without attempts */
bool file_manifest_has_attempt(const file_manifest *m, uint64_t checkpoint);

/* Attempts `first` and later of `batch`, as manifest `sequence` after `predecessor`. */
weir_status file_manifest_build(const weir_commit_batch *batch, size_t first,
                                uint64_t sequence, uint64_t floor,
                                const weir_cursor *predecessor, file_manifest *out,
                                weir_error *err);
weir_status file_manifest_write(const file_manifest *m, const weir_namespace *ns,
                                char **out, size_t *size, weir_error *err);
/* `where` is for messages: the record's path. A manifest of another number than `sequence` is corrupt. */
weir_status file_manifest_read(const char *data, size_t size, uint64_t sequence,
                               const char *where, file_manifest *out, weir_error *err);

/* The record of `.weir/<name>/` (whose folder it is) or, with a deployment, of a namespace in it, or of
 * a claim. */
typedef struct file_owner_record {
  char *pipeline, *sink_id;
  uint8_t identity[WEIR_DIGEST_SIZE];
  uint8_t deployment[WEIR_UUID_SIZE]; /* not in an owner record */
  uint8_t folder
      [WEIR_INCARNATION_SIZE]; /* owner record only: the folder's own random identity */
} file_owner_record;

enum { RECORD_OWNER = 1, RECORD_NAMESPACE = 2, RECORD_CLAIM = 3 };

weir_status file_record_write(int kind, const weir_namespace *ns,
                              const uint8_t folder[WEIR_INCARNATION_SIZE], char **out,
                              size_t *size, weir_error *err);
weir_status file_record_read(int kind, const char *data, size_t size, const char *where,
                             file_owner_record *out, weir_error *err);
void file_record_done(file_owner_record *record);

#endif
