/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls, defined in the executable: the dynamic linker finds these first, for every library, and they hand on
 * to the next of that name. Names with 64 are those of libraries that are built for large files everywhere. libpq
 * is found with dlsym, which the executable is linked to wrap.
 */
#include "failing/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* These run before the sanitizers are set up. */
#define RAW __attribute__((no_sanitize("address", "undefined", "thread")))

static _Thread_local bool counting;
static _Thread_local uint64_t made, wrong;
static _Thread_local calls_fault how;
static _Thread_local const char *only;

void calls_fail_of(const char *name, uint64_t n, calls_fault fault) {
  made = 0;
  wrong = n;
  how = fault;
  only = name;
  counting = true;
}

void calls_fail(uint64_t n, calls_fault fault) {
  calls_fail_of(NULL, n, fault);
}

uint64_t calls_stop(void) {
  counting = false;
  return made;
}

/* What a call can suffer, of which the thread's fault is one. */
enum {
  FAILS = 1 << CALLS_FAIL | 1 << CALLS_DEAD,
  BREAKS = 1 << CALLS_BREAK,
  SHORT = 1 << CALLS_SHORT
};

RAW static bool counts(const char *name, int suffers) {
  if (!counting || !(suffers & 1 << how) ||
      (only && strncmp(only, name, strlen(only)) != 0))
    return false;
  made++;
  return made == wrong || (how == CALLS_DEAD && wrong && made > wrong);
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

#define FCNTL(name)                            \
  RAW int name(int fd, int command, ...) {     \
    va_list more;                              \
    va_start(more, command);                   \
    void *argument = va_arg(more, void *);     \
    va_end(more);                              \
    if (fails("fcntl", FAILS, EIO)) return -1; \
    return NEXT(name)(fd, command, argument);  \
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
} pq;

/* Whether libpq itself is to say that the call failed. */
static bool pq_fails(PGconn *conn, const char *name) {
  if (!counts(name, FAILS)) return false;
  if (how == CALLS_FAIL) return true;
  if (made == wrong) shutdown(pq.socket(conn), SHUT_RDWR);
  return false;
}

static PQconninfoOption *parse(const char *uri, char **why) {
  return counts("PQconninfoParse", FAILS) ? NULL : pq.conninfo_parse(uri, why);
}
static PGconn *connect_params(const char *const *names, const char *const *values,
                              int expand) {
  static const char *const nowhere[] = {"host", NULL}, *const none[] = {"/nowhere", NULL};
  if (!counts("PQconnectdbParams", FAILS)) return pq.connect(names, values, expand);
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
  if (!result || !pq_fails(conn, "PQgetResult")) return result;
  pq.clear(result);
  return pq.make_result(conn, PGRES_FATAL_ERROR);
}

void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
  void *real = __real_dlsym(library, name);
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
  };
  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
    if (strcmp(name, known[i].name) != 0) continue;
    void *make = __real_dlsym(library, "PQmakeEmptyPGresult");
    memcpy(known[i].keep, &real, sizeof(real));
    memcpy(&pq.make_result, &make, sizeof(make));
    return known[i].ours ? known[i].ours : real;
  }
  return real;
}
