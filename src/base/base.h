/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every room stands on: memory, text, time, threads, hashing, files, logging. No
 * room below it.
 *
 * Functions that can only fail for want of memory return the object or NULL and set
 * WEIR_E_NOMEM; the others return a weir_status. An `err` may always be NULL.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <weir/bytes.h>
#include <weir/cursor.h>
#include <weir/error.h>
#include <weir/fault.h>

#define BASE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Evaluates a call that returns weir_status; returns it from the enclosing function when
 * it failed. */
#define BASE_TRY(call)                             \
  do {                                             \
    weir_status base_try_status_ = (call);         \
    if (base_try_status_) return base_try_status_; \
  } while (0)

/* As BASE_TRY, with `status` set and a jump to the enclosing function's `out` label. */
#define BASE_GOTO(status, call) \
  do {                          \
    (status) = (call);          \
    if (status) goto out;       \
  } while (0)

/* ---- memory and text
 * ------------------------------------------------------------------------ */

/* Zeroed; n * size is checked for overflow. Asked for nothing, it returns a pointer to
 * free. */
void *base_calloc(size_t n, size_t size, weir_error *err);
/* realloc to n * size, checked; the old block stays on failure. */
void *base_realloc(void *block, size_t n, size_t size, weir_error *err);
char *base_strdup(const char *text, weir_error *err);
char *base_strndup(const char *text, size_t size, weir_error *err);
char *base_format(weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

static inline bool base_add_size(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline bool base_mul_size(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}

bool base_starts_with(const char *text, const char *prefix);
bool base_ends_with(const char *text, const char *suffix);

/* True when the bytes are well-formed UTF-8 (no surrogates, no overlong forms). */
bool base_utf8_valid(const void *data, size_t size);

/* The name closest to `given` (Damerau-Levenshtein, case ignored), or NULL when none is
 * close enough to be meant. */
const char *base_nearest_name(const char *given, const char *const *names, size_t n);

/* Growable bytes. A zeroed struct is an empty buffer. After a failure the content is as
 * before. */
typedef struct base_buf {
  uint8_t *data;
  size_t size, capacity;
} base_buf;

weir_status base_buf_grow(base_buf *buf, size_t extra, weir_error *err);
/* Room for `extra` more. */
static inline weir_status base_buf_reserve(base_buf *buf, size_t extra, weir_error *err) {
  if (buf->data != NULL && extra <= buf->capacity - buf->size) return WEIR_OK;
  return base_buf_grow(buf, extra, err);
}
weir_status base_buf_append(base_buf *buf, const void *data, size_t size,
                            weir_error *err);
weir_status base_buf_append_str(base_buf *buf, const char *text, weir_error *err);
weir_status base_buf_append_byte(base_buf *buf, uint8_t byte, weir_error *err);
weir_status base_buf_printf(base_buf *buf, weir_error *err, const char *fmt, ...)
    WEIR_PRINTF(3, 4);
/* A NUL behind the content (not counted in size), for use as a C string until the next
 * change. */
weir_status base_buf_terminate(base_buf *buf, weir_error *err);
/* Moves the content into *out, which must hold nothing, and empties the buffer. Cannot
 * fail: an empty buffer gives bytes that are present and of size 0. */
void base_buf_steal(base_buf *buf, weir_bytes *out);
/* Moves the content out as a NUL-terminated string to free(), NULL when there is no
 * memory. */
char *base_buf_steal_str(base_buf *buf, weir_error *err);
void base_buf_clear(base_buf *buf); /* size 0, memory kept */
void base_buf_done(base_buf *buf);

/* Exact, overflow-checked: an integer and a unit. Sizes: B, KiB, MiB, GiB, TiB, kB, KB,
 * MB, GB, TB; a bare number is bytes. Durations: ns, us, ms, s, m, min, h, d; a bare
 * number is refused but 0. */
weir_status base_parse_size(const char *text, uint64_t *out, weir_error *err);
weir_status base_parse_duration(const char *text, int64_t *out_ns, weir_error *err);
/* Whole text, base 10, within [min, max]. */
weir_status base_parse_int(const char *text, int64_t min, int64_t max, int64_t *out,
                           weir_error *err);

/* ---- hashing, identifiers
 * ------------------------------------------------------------------- */

#define BASE_SHA256_SIZE 32

weir_status base_sha256(const void *data, size_t size, uint8_t out[BASE_SHA256_SIZE],
                        weir_error *err);

typedef struct base_sha256_stream {
  void *ctx;
} base_sha256_stream;
weir_status base_sha256_init(base_sha256_stream *stream, weir_error *err);
weir_status base_sha256_update(base_sha256_stream *stream, const void *data, size_t size,
                               weir_error *err);
/* Gives the digest and starts over. */
weir_status base_sha256_final(base_sha256_stream *stream, uint8_t out[BASE_SHA256_SIZE],
                              weir_error *err);
void base_sha256_done(base_sha256_stream *stream); /* zeroed struct ok */

uint64_t base_xxh3(const void *data, size_t size, uint64_t seed);
/* The same of bytes that come in pieces, with seed 0. init starts over; done takes a zeroed one. */
typedef struct base_xxh3_stream {
  void *state;
} base_xxh3_stream;
weir_status base_xxh3_init(base_xxh3_stream *stream, weir_error *err);
void base_xxh3_update(base_xxh3_stream *stream, const void *data, size_t size);
uint64_t base_xxh3_final(const base_xxh3_stream *stream);
void base_xxh3_done(base_xxh3_stream *stream);
uint64_t base_xxh64(const void *data, size_t size, uint64_t seed);

weir_status base_random(void *out, size_t size, weir_error *err); /* getrandom() */

weir_status base_uuid_new(uint8_t out[WEIR_UUID_SIZE], weir_error *err); /* version 4 */

/* ---- time and threads
 * ----------------------------------------------------------------------- */

#define BASE_NS_PER_MS INT64_C(1000000)
#define BASE_NS_PER_S INT64_C(1000000000)
#define BASE_FOREVER INT64_MAX /* a deadline that never comes */

int64_t base_clock_mono(void); /* ns, CLOCK_MONOTONIC: for deadlines */
int64_t base_clock_wall(void); /* ns since 1970, for people and for names only */
/* now + span, saturating at BASE_FOREVER; a negative span counts as 0. */
int64_t base_deadline(int64_t span_ns);
void base_sleep(int64_t span_ns);

/* Starts a joinable thread, named (15 characters are kept), with every signal blocked:
 * signals are the host's, on the host's own threads. */
weir_status base_thread_start(pthread_t *out, const char *name, void *(*run)(void *),
                              void *arg, weir_error *err);

/* Conditions on the monotonic clock. init can fail for want of resources only. */
weir_status base_mutex_init(pthread_mutex_t *mutex, weir_error *err);
weir_status base_cond_init(pthread_cond_t *cond, weir_error *err);
/* Waits with `mutex` held. False when the deadline (base_clock_mono based) has passed;
 * the caller looks at its predicate in both cases. */
bool base_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
                          int64_t deadline_ns);

/* ---- files
 * ---------------------------------------------------------------------------------- */
/* Errors are WEIR_E_IO with errno as vendor code, but ENOENT and ENOTDIR give
 * WEIR_E_NOT_FOUND and EEXIST gives WEIR_E_EXISTS. The message names the path and the
 * operation. EINTR is retried. */

weir_status base_io_error(weir_error *err, int errnum, const char *operation,
                          const char *path);

/* Appends the whole file; more than `max` bytes is an error. */
weir_status base_read_file(const char *path, size_t max, base_buf *out, weir_error *err);
weir_status base_write_all(int fd, const void *data, size_t size, const char *path,
                           weir_error *err);
/* After a failed sync the file must not be used again: the kernel may have dropped the
 * pages. */
weir_status base_fsync(int fd, const char *path, weir_error *err);
weir_status base_fdatasync(int fd, const char *path, weir_error *err);
weir_status base_sync_dir(const char *path, weir_error *err);

/* mkdir -p. Existing folders, also ones another process makes meanwhile, are fine. */
weir_status base_mkdirs(const char *path, mode_t mode, weir_error *err);
/* Makes durable that folder `path` is there: syncs it and the folders above it, up to the root of the
 * file system. Who made them does not matter: it may have been killed before it could sync them. */
weir_status base_sync_upwards(const char *path, weir_error *err);

/* The folder that holds `path` ("." when there is no slash, "/" for top-level names);
 * free(). */
char *base_dirname(const char *path, weir_error *err);
/* dir + "/" + name; just name when it is absolute or dir is empty. free(). */
char *base_path_join(const char *dir, const char *name, weir_error *err);

/* Creates `path` with this content or not at all: temporary name beside it (mode 0600),
 * write, fsync, link(), unlink, sync of the folder. WEIR_E_EXISTS when the name is taken;
 * nothing is overwritten. An error after link() is flagged in doubt: the name may be
 * there, whole. */
weir_status base_create_once(const char *path, const void *data, size_t size,
                             weir_error *err);
/* The infix of the temporary names that base_create_once leaves when killed:
 * ".<name>.<hex>.tmp". */
#define BASE_TEMP_SUFFIX ".tmp"

/* ---- logging
 * -------------------------------------------------------------------------------- */

/* Levels are WEIR_LOG_ERROR (1) to WEIR_LOG_DEBUG (4) of <weir/plugin.h>; 0 = off. */

/* Where messages go: a value that each pipeline keeps. With write == NULL nothing is
 * logged; the library itself never writes to stdout or stderr. `write` may be called from
 * any thread. */
typedef struct base_log {
  void (*write)(void *ctx, int32_t level, const char *where, const char *text);
  void *ctx;
  int32_t level; /* messages above it are dropped unformatted */
} base_log;

void base_log_printf(const base_log *log, int32_t level, const char *where,
                     const char *fmt, ...) WEIR_PRINTF(4, 5);
const char *base_log_level_name(int32_t level); /* "error", "warn", ... */
bool base_log_level_parse(const char *name, int32_t *out);

#endif
