/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls, defined in the executable: the dynamic linker finds these first, for every library, and they hand on
 * to the next of that name. Names with 64 are those of libraries that are built for large files everywhere. libpq
 * is found with dlsym, which the executable is linked to wrap.
 */
#undef _FORTIFY_SOURCE /* with it the headers define some of these */
#include "failing/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <weir/fault.h>

/* So that the libraries see what is defined here. */
#pragma GCC visibility push(default)

/* These run before the sanitizers are set up. */
#define RAW __attribute__((no_sanitize("address", "undefined", "thread")))

static _Thread_local bool counting;
static _Thread_local uint64_t made, wrong;
static _Thread_local calls_fault how;
static _Thread_local const char *only;
static _Thread_local void (*instead)(void *ctx);
static _Thread_local void *instead_of;

void calls_fail_of(const char *name, uint64_t n, calls_fault fault) {
  made = 0;
  wrong = n;
  how = fault;
  only = name;
  instead = NULL;
  counting = true;
}

void calls_run_before(const char *name, uint64_t n, void (*run)(void *ctx), void *ctx) {
  calls_fail_of(name, n, CALLS_FAIL);
  instead = run;
  instead_of = ctx;
}

void calls_fail(uint64_t n, calls_fault fault) {
  calls_fail_of(NULL, n, fault);
}

uint64_t calls_stop(void) {
  counting = false;
  return made;
}

/* What a call can suffer, of which the thread's fault is one. ASKED: only when it is named. */
enum {
  FAILS = 1 << CALLS_FAIL | 1 << CALLS_DEAD,
  BREAKS = 1 << CALLS_BREAK,
  SHORT = 1 << CALLS_SHORT,
  ASKED = 1 << 8
};

RAW static bool counts(const char *name, int suffers) {
  if (!counting || !(suffers & 1 << how)) return false;
  if (only ? strncmp(only, name, strlen(only)) != 0 : suffers & ASKED) return false;
  made++;
  if (made != wrong) return how == CALLS_DEAD && wrong && made > wrong;
  if (!instead) return true;
  counting = false;
  instead(instead_of);
  counting = true;
  return false;
}

RAW static bool fails(const char *name, int suffers, int errnum) {
  if (!counts(name, suffers)) return false;
  errno = how == CALLS_BREAK ? EINTR : errnum;
  return true;
}

RAW void *__real_dlsym(void *library, const char *name);

#define NEXT(name) ((__typeof__(&(name)))__real_dlsym(RTLD_NEXT, #name))

/* ---- files -------------------------------------------------------------------------------------- */

#define OPEN(name)                                            \
  RAW int name(const char *path, int flags, ...) {            \
    va_list more;                                             \
    va_start(more, flags);                                    \
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
    va_end(more);                                             \
    if (fails("open", FAILS, EIO)) return -1;                 \
    return NEXT(name)(path, flags, mode);                     \
  }
OPEN(open)
OPEN(open64)

/* Giving a lock back cannot fail, as Linux has it. */
RAW static bool gives_back(int command, const struct flock *lock) {
  return (command == F_SETLK || command == F_OFD_SETLK) && lock->l_type == F_UNLCK;
}

#define FCNTL(name)                                                              \
  RAW int name(int fd, int command, ...) {                                       \
    va_list more;                                                                \
    va_start(more, command);                                                     \
    void *argument = va_arg(more, void *);                                       \
    va_end(more);                                                                \
    if (!gives_back(command, argument) && fails("fcntl", FAILS, EIO)) return -1; \
    return NEXT(name)(fd, command, argument);                                    \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

/* The parameters, and how they are handed on. */
#define CALL(name, as, suffers, parameters, arguments) \
  RAW int name parameters {                            \
    if (fails(as, suffers, EIO)) return -1;            \
    return NEXT(name) arguments;                       \
  }
CALL(stat, "stat", FAILS, (const char *path, struct stat *st), (path, st))
CALL(stat64, "stat", FAILS, (const char *path, struct stat64 *st), (path, st))
CALL(fstat, "fstat", FAILS, (int fd, struct stat *st), (fd, st))
CALL(fstat64, "fstat", FAILS, (int fd, struct stat64 *st), (fd, st))
CALL(statfs, "statfs", FAILS | BREAKS, (const char *path, struct statfs *fs), (path, fs))
CALL(fsync, "fsync", FAILS | BREAKS, (int fd), (fd))
CALL(fdatasync, "fsync", FAILS | BREAKS, (int fd), (fd))
CALL(ftruncate, "ftruncate", FAILS, (int fd, off_t size), (fd, size))
CALL(ftruncate64, "ftruncate", FAILS, (int fd, off64_t size), (fd, size))
CALL(rename, "rename", FAILS, (const char *from, const char *to), (from, to))
CALL(unlink, "unlink", FAILS, (const char *path), (path))
CALL(mkdir, "mkdir", FAILS, (const char *path, mode_t mode), (path, mode))
CALL(poll, "poll", FAILS | BREAKS, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))

RAW int usleep(useconds_t us) {
  return counting ? 0 : NEXT(usleep)(us);
}

#define MOVE(name, as, buffer, offset)                            \
  RAW ssize_t name(int fd, buffer data, size_t size, offset at) { \
    if (fails(as, FAILS | BREAKS, EIO)) return -1;                \
    if (size > 1 && counts(as, SHORT)) size /= 2;                 \
    return NEXT(name)(fd, data, size, at);                        \
  }
MOVE(pread, "pread", void *, off_t)
MOVE(pread64, "pread", void *, off64_t)
MOVE(pwrite, "pwrite", const void *, off_t)
MOVE(pwrite64, "pwrite", const void *, off64_t)

#define MAP(name, offset)                                                             \
  RAW void *name(void *at, size_t size, int access, int flags, int fd, offset from) { \
    if (fd >= 0 && fails("mmap", FAILS, ENOMEM)) return MAP_FAILED;                   \
    return NEXT(name)(at, size, access, flags, fd, from);                             \
  }
MAP(mmap, off_t)
MAP(mmap64, off64_t)

/* ---- other things of the system ------------------------------------------------------------------ */

RAW ssize_t getrandom(void *out, size_t size, unsigned flags) {
  if (fails("getrandom", FAILS | BREAKS, EIO)) return -1;
  return NEXT(getrandom)(out, size, flags);
}
CALL(gethostname, "gethostname", FAILS, (char *out, size_t size), (out, size))

/* ---- threads ------------------------------------------------------------------------------------ */

RAW int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                       void *(*run)(void *), void *arg) {
  if (counts("pthread_create", FAILS)) return EAGAIN;
  return NEXT(pthread_create)(thread, attr, run, arg);
}

RAW int pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *attr) {
  if (counts("pthread_mutex_init", FAILS)) return EAGAIN;
  return NEXT(pthread_mutex_init)(lock, attr);
}

RAW int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr) {
  if (counts("pthread_cond_init", FAILS)) return EAGAIN;
  return NEXT(pthread_cond_init)(cond, attr);
}

/* ---- SQLite and libcrypto ------------------------------------------------------------------------ */

/* What SQLite calls of its own on the way does not count. */
static _Thread_local int in_sqlite;

#define SQLITE(name, parameters, arguments)                   \
  RAW int name parameters {                                   \
    if (!in_sqlite && counts(#name, FAILS | BREAKS | ASKED))  \
      return how == CALLS_BREAK ? SQLITE_BUSY : SQLITE_IOERR; \
    in_sqlite++;                                              \
    int rc = NEXT(name) arguments;                            \
    in_sqlite--;                                              \
    return rc;                                                \
  }
SQLITE(sqlite3_exec,
       (sqlite3 * db, const char *sql, int (*row)(void *, int, char **, char **),
        void *ctx, char **why),
       (db, sql, row, ctx, why))
SQLITE(sqlite3_prepare_v2,
       (sqlite3 * db, const char *sql, int size, sqlite3_stmt **out, const char **rest),
       (db, sql, size, out, rest))
SQLITE(sqlite3_prepare_v3,
       (sqlite3 * db, const char *sql, int size, unsigned flags, sqlite3_stmt **out,
        const char **rest),
       (db, sql, size, flags, out, rest))
SQLITE(sqlite3_step, (sqlite3_stmt * s), (s))
SQLITE(sqlite3_bind_int64, (sqlite3_stmt * s, int at, sqlite3_int64 v), (s, at, v))
SQLITE(sqlite3_bind_text64,
       (sqlite3_stmt * s, int at, const char *v, sqlite3_uint64 size,
        void (*drop)(void *), unsigned char code),
       (s, at, v, size, drop, code))
SQLITE(sqlite3_bind_blob64,
       (sqlite3_stmt * s, int at, const void *v, sqlite3_uint64 size,
        void (*drop)(void *)),
       (s, at, v, size, drop))
SQLITE(sqlite3_file_control, (sqlite3 * db, const char *name, int op, void *arg),
       (db, name, op, arg))
SQLITE(sqlite3_wal_checkpoint_v2,
       (sqlite3 * db, const char *name, int mode, int *frames, int *done),
       (db, name, mode, frames, done))

#define CRYPTO(name, parameters, arguments)     \
  RAW int name parameters {                     \
    if (counts(#name, FAILS | ASKED)) return 0; \
    return NEXT(name) arguments;                \
  }
CRYPTO(EVP_DigestInit_ex, (EVP_MD_CTX * ctx, const EVP_MD *md, ENGINE *engine),
       (ctx, md, engine))
CRYPTO(EVP_DigestUpdate, (EVP_MD_CTX * ctx, const void *data, size_t size),
       (ctx, data, size))
CRYPTO(EVP_DigestFinal_ex, (EVP_MD_CTX * ctx, unsigned char *out, unsigned *size),
       (ctx, out, size))

#pragma GCC visibility pop

/* ---- fault points -------------------------------------------------------------------------------- */

#if defined(WEIR_FAULTS)
int __real_weir_fault_hit(const char *name);
int __wrap_weir_fault_hit(const char *name);
int __wrap_weir_fault_hit(const char *name) {
  return counts(name, FAILS | ASKED) ? 1 : __real_weir_fault_hit(name);
}
#endif

/* ---- libpq -------------------------------------------------------------------------------------- */

static struct {
  __typeof__(&PQconninfoParse) conninfo_parse;
  __typeof__(&PQconnectdbParams) connect;
  __typeof__(&PQsendQuery) send;
  __typeof__(&PQsendPrepare) send_prepare;
  __typeof__(&PQsendQueryPrepared) send_prepared;
  __typeof__(&PQflush) flush;
  __typeof__(&PQconsumeInput) consume;
  __typeof__(&PQgetResult) get_result;
  __typeof__(&PQmakeEmptyPGresult) make_result;
  __typeof__(&PQclear) clear;
  __typeof__(&PQsocket) socket;
  __typeof__(&PQstatus) status;
} pq;

/* Whether libpq itself is to say that the call failed. */
static bool pq_fails(PGconn *conn, const char *name) {
  if (!counts(name, FAILS | ASKED)) return false;
  if (how == CALLS_FAIL) return true;
  if (made == wrong) shutdown(pq.socket(conn), SHUT_RDWR);
  return false;
}

static PQconninfoOption *parse(const char *uri, char **why) {
  if (counts("PQconninfoParse", FAILS | ASKED)) return NULL;
  PQconninfoOption *all = pq.conninfo_parse(uri, why);
  /* As of an older libpq. */
  if (all && counts("PQconninfoParse", SHORT | ASKED))
    for (PQconninfoOption *o = all; o->keyword; o++)
      if (strcmp(o->keyword, "tcp_user_timeout") == 0) o->keyword = (char *)"younger";
  return all;
}
static PGconn *connect_params(const char *const *names, const char *const *values,
                              int expand) {
  static const char *const nowhere[] = {"host", NULL}, *const none[] = {"/nowhere", NULL};
  if (!counts("PQconnectdbParams", FAILS | ASKED))
    return pq.connect(names, values, expand);
  return how == CALLS_FAIL ? NULL : pq.connect(nowhere, none, 0);
}
static int send_query(PGconn *conn, const char *sql) {
  return pq_fails(conn, "PQsendQuery") ? 0 : pq.send(conn, sql);
}
static int send_prepare(PGconn *conn, const char *name, const char *sql, int n,
                        const Oid *types) {
  return pq_fails(conn, "PQsendPrepare") ? 0 : pq.send_prepare(conn, name, sql, n, types);
}
static int send_prepared(PGconn *conn, const char *name, int n, const char *const *values,
                         const int *sizes, const int *formats, int binary) {
  if (pq_fails(conn, "PQsendQueryPrepared")) return 0;
  return pq.send_prepared(conn, name, n, values, sizes, formats, binary);
}
static int flush(PGconn *conn) {
  return pq_fails(conn, "PQflush") ? -1 : pq.flush(conn);
}
static int consume(PGconn *conn) {
  return pq_fails(conn, "PQconsumeInput") ? 0 : pq.consume(conn);
}
static PGresult *get_result(PGconn *conn) {
  PGresult *result = pq.get_result(conn);
  bool none = result && counts("PQgetResult", SHORT | ASKED);
  if (!result || (!none && !pq_fails(conn, "PQgetResult"))) return result;
  pq.clear(result);
  return none ? NULL : pq.make_result(conn, PGRES_FATAL_ERROR);
}

static ConnStatusType status(const PGconn *conn) {
  return counts("PQstatus", 1 << CALLS_FAIL | ASKED) ? CONNECTION_BAD : pq.status(conn);
}

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags) {
  if (counts("dlopen", FAILS | ASKED)) name = "libpq-that-is-not-there.so";
  return __real_dlopen(name, flags);
}

void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
  void *real = counts("dlsym", FAILS | ASKED) ? NULL : __real_dlsym(library, name);
  const struct {
    const char *name;
    void *ours;
    void *keep;
  } known[] = {
      {"PQconninfoParse", parse, &pq.conninfo_parse},
      {"PQconnectdbParams", connect_params, &pq.connect},
      {"PQsendQuery", send_query, &pq.send},
      {"PQsendPrepare", send_prepare, &pq.send_prepare},
      {"PQsendQueryPrepared", send_prepared, &pq.send_prepared},
      {"PQflush", flush, &pq.flush},
      {"PQconsumeInput", consume, &pq.consume},
      {"PQgetResult", get_result, &pq.get_result},
      {"PQclear", NULL, &pq.clear},
      {"PQsocket", NULL, &pq.socket},
      {"PQstatus", status, &pq.status},
  };
  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
    if (!real || strcmp(name, known[i].name) != 0) continue;
    void *make = __real_dlsym(library, "PQmakeEmptyPGresult");
    memcpy(known[i].keep, &real, sizeof(real));
    memcpy(&pq.make_result, &make, sizeof(make));
    return known[i].ours ? known[i].ours : real;
  }
  return real;
}
