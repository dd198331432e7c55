/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the file sink through its table as the runtime does, one object per sink generation. Rows are
 * numbers, so that a target can be read back and every number counted. */
#ifndef TESTS_UNIT_SUPPORT_FILE_RIG_H
#define TESTS_UNIT_SUPPORT_FILE_RIG_H

#include <stdbool.h>
#include <weir/plugin.h>

extern const weir_sink_ops weir_file_sink_ops;

typedef struct file_rig {
  char path[512]; /* the target's folder */
  weir_namespace ns;
  uint64_t participant;
  weir_options *options;
  weir_schema *schema;
  weir_binding binding;
  weir_sink sink;
  weir_committer committer;
} file_rig;

/* What a participant prepared, and the attempt that it makes. */
typedef struct file_attempt {
  uint64_t number;
  weir_bytes intent;
  weir_bytes descriptor;
  weir_commit_entry entry;
  weir_commit_attempt attempt;
} file_attempt;

/* A new empty folder under $TMPDIR, removed with everything in it by file_rig_cleanup. */
void file_rig_folder(char out[256]);
void file_rig_cleanup(const char *folder);

weir_namespace file_rig_namespace(const char *pipeline, const char *sink,
                                  uint8_t deployment);
const weir_host *file_rig_host(void);

/* Fills in everything but the sink: options are pairs beside path; format is ndjson unless given. */
void file_rig_init(file_rig *rig, const char *path, const char *const *names,
                   const char *const *values, size_t n);
/* create .. open; the first failure is returned. */
weir_status file_rig_start(file_rig *rig, weir_error *err);
void file_rig_started(file_rig *rig); /* fails the test unless it starts */
void file_rig_stop(file_rig *rig); /* close and release, if alive; rig_start may follow */
void file_rig_done(file_rig *rig);

/* intent and begin_epoch */
void file_rig_begin(file_rig *rig, uint64_t number, file_attempt *out);
/* Rows first .. first + n - 1. */
weir_status file_rig_write(file_rig *rig, int64_t first, int64_t n, weir_error *err);
/* pre_commit; the attempt's cursor has `token` and the SHA-256 of the descriptor. */
void file_rig_prepare(file_rig *rig, uint64_t token, file_attempt *attempt);
/* begin, write, prepare */
void file_rig_epoch(file_rig *rig, uint64_t number, uint64_t token, int64_t first,
                    int64_t n, file_attempt *out);
void file_attempt_done(file_attempt *attempt);

/* Publishes attempts[0 .. n) after `predecessor`. */
weir_status file_rig_commit(file_rig *rig, const weir_cursor *predecessor,
                            file_attempt *const *attempts, size_t n, weir_cursor *out,
                            weir_error *err);
weir_status file_rig_clean(file_rig *rig, uint64_t number, const weir_bytes *intent,
                           weir_error *err);
weir_cursor file_rig_cursor(file_rig *rig);

/* Reads every published file: rows 0 .. n - 1 are there once each and nothing else is. Any name in the
 * folder that is no whole data file fails the test. */
void file_rig_expect_rows(const char *path, int64_t n);
/* As above in mid flight: rows may be missing, and each file's row count is a multiple of `step`. */
void file_rig_expect_whole(const char *path, int64_t n, int64_t step);
size_t file_rig_count(const char *folder); /* entries of a folder; 0 when there is none */
/* <parent>/.weir/<name>/<ns key>/<what> */
void file_rig_inner(const file_rig *rig, const char *what, char out[1024]);

#endif
