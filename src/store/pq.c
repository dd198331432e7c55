/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pq.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/options.h>

/* ---- libpq, loaded when it is wanted -------------------------------------------------------------- */

#define PQ_FUNCTIONS(X)   \
  X(PQconninfo)           \
  X(PQconninfoParse)      \
  X(PQconninfoFree)       \
  X(PQconnectStartParams) \
  X(PQconnectdbParams)    \
  X(PQfinish)             \
  X(PQstatus)             \
  X(PQsocket)             \
  X(PQerrorMessage)       \
  X(PQtransactionStatus)  \
  X(PQsetnonblocking)     \
  X(PQsetNoticeProcessor) \
  X(PQsendQuery)          \
  X(PQsendPrepare)        \
  X(PQsendQueryPrepared)  \
  X(PQflush)              \
  X(PQconsumeInput)       \
  X(PQisBusy)             \
  X(PQgetResult)          \
  X(PQresultStatus)       \
  X(PQresultErrorField)   \
  X(PQcmdStatus)          \
  X(PQcmdTuples)          \
  X(PQntuples)            \
  X(PQnfields)            \
  X(PQftype)              \
  X(PQgetisnull)          \
  X(PQgetlength)          \
  X(PQgetvalue)           \
  X(PQclear)              \
  X(PQfreemem)

#define PQ_MEMBER(name) __typeof__(&(name)) name;
static struct {
  PQ_FUNCTIONS(PQ_MEMBER)
} pq;
static bool pq_loaded;
static char pq_why[300];

#define PQ_PLACE(name) {#name, offsetof(__typeof__(pq), name)},
static const struct {
  const char *name;
  size_t at;
} pq_functions[] = {PQ_FUNCTIONS(PQ_PLACE)};

static void pq_load(void) {
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(pq_why, sizeof(pq_why), "%s", dlerror());
    return;
  }
  for (size_t i = 0; i < BASE_COUNT(pq_functions); i++) {
    void *found = dlsym(library, pq_functions[i].name);
    if (!found) {
      snprintf(pq_why, sizeof(pq_why), "it lacks %s", pq_functions[i].name);
      return;
    }
    memcpy((char *)&pq + pq_functions[i].at, &found, sizeof(found));
  }
  pq_loaded = true;
}

static weir_status pq_need(weir_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, pq_load);
  if (pq_loaded) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_NOT_IMPLEMENTED, 0,
      "a PostgreSQL checkpoint store needs libpq.so.5 (Debian's package "
      "libpq5), which cannot be loaded: %s",
      pq_why);
}

/* ---- errors ----------------------------------------------------------------------------------------- */

/* What a message must not show: the values that libpq itself marks as passwords. */
static void pq_scrub(const pq_session *s, char *text) {
  for (const PQconninfoOption *o = s->given; o->keyword; o++) {
    if (!o->val || !*o->val || !strchr(o->dispchar, '*')) continue;
    size_t size = strlen(o->val);
    for (char *at = text; (at = strstr(at, o->val)); at += size) memset(at, '*', size);
  }
}

typedef struct pq_class {
  const char *prefix;
  weir_status code;
  uint32_t flags;
} pq_class;

/* The first that fits. SQLSTATE: "PostgreSQL Error Codes", appendix A of its manual. */
static const pq_class pq_classes[] = {
    {"55P03", WEIR_E_IO, WEIR_ERR_RETRIABLE}, /* a lock was not to be had in time */
    {"57014", WEIR_E_IO, WEIR_ERR_RETRIABLE}, /* statement_timeout */
    {"40", WEIR_E_IO, WEIR_ERR_RETRIABLE},    /* deadlock, serialization */
    {"53", WEIR_E_IO, WEIR_ERR_RETRIABLE}, /* disk full, out of memory or connections */
    {"XX001", WEIR_E_CORRUPT, 0},
    {"XX002", WEIR_E_CORRUPT, 0},
};

static const pq_class *pq_class_of(const char *sqlstate) {
  for (size_t i = 0; sqlstate && i < BASE_COUNT(pq_classes); i++)
    if (base_starts_with(sqlstate, pq_classes[i].prefix)) return &pq_classes[i];
  return NULL;
}

/* `result` may be NULL: what the connection says. */
static weir_status pq_fail(pq_session *s, const PGresult *result, const char *what,
                           weir_error *err) {
  const char *sqlstate = result ? pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
  const char *said =
      result ? pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
  const pq_class *class = pq_class_of(sqlstate);
  char text[400];
  bool lost = s->lost || pq.PQstatus(s->conn) != CONNECTION_OK;
  snprintf(text, sizeof(text), "%s", said ? said : pq.PQerrorMessage(s->conn));
  for (size_t n = strlen(text); n && text[n - 1] == '\n'; n--) text[n - 1] = 0;
  pq_scrub(s, text);
  s->lost = lost;
  weir_status code = class ? class->code : WEIR_E_IO;
  weir_error_set(err, code, class && !lost ? class->flags : 0,
                 "checkpoint store %s: %s failed: %s", s->where, what, text);
  if (err && sqlstate) snprintf(err->sqlstate, sizeof(err->sqlstate), "%s", sqlstate);
  return code;
}

static weir_status pq_late(pq_session *s, const char *what, weir_error *err) {
  s->lost = true;
  return weir_error_set(err, WEIR_E_TIMEOUT, 0,
                        "checkpoint store %s: %s failed: no answer within %.1f s",
                        s->where, what, (double)s->patience_ns / BASE_NS_PER_S);
}

/* ---- opening ---------------------------------------------------------------------------------------- */

static void pq_on_notice(void *ctx, const char *message) {
  pq_session *s = ctx;
  /* "WARNING:  ...", in whatever language; what is less is not sent (client_min_messages). */
  (void)message;
  s->warned = true;
}

/* NULL where this libpq knows no such keyword. */
static const PQconninfoOption *pq_find(const pq_session *s, const char *keyword) {
  for (const PQconninfoOption *o = s->given; o->keyword; o++)
    if (strcmp(o->keyword, keyword) == 0) return o;
  return NULL;
}

static const char *pq_given(const pq_session *s, const char *keyword) {
  const PQconninfoOption *o = pq_find(s, keyword);
  return o ? o->val : NULL;
}

static weir_status pq_parse(pq_session *s, const char *uri, weir_error *err) {
  char *why = NULL;
  bool known =
      base_starts_with(uri, "postgresql://") || base_starts_with(uri, "postgres://");
  if (known) s->given = pq.PQconninfoParse(uri, &why);
  pq.PQfreemem(why); /* may repeat what it cannot read */
  if (!s->given)
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "option 'store': expected the URI of a PostgreSQL database, "
        "postgresql://USER@HOST:PORT/DATABASE, with what is no letter or digit in a "
        "password written as %%XX; what is there cannot be read as one and is not "
        "repeated here");
  const char *host = pq_given(s, "host"), *port = pq_given(s, "port");
  const char *name = pq_given(s, "dbname");
  if (!host) host = pq_given(s, "hostaddr");
  s->where = base_format(err, "postgresql://%s%s%s/%s", host ? host : "", port ? ":" : "",
                         port ? port : "", name ? name : "");
  return s->where ? WEIR_OK : WEIR_E_NOMEM;
}

/* Whether sslmode is libpq's own default, which takes any certificate or none, though the server is on another
 * machine. What a service file or the environment says is known only once a connection was begun; no byte is
 * sent on it. */
static weir_status pq_must_verify(const char *const *names, const char *const *values,
                                  bool *out, weir_error *err) {
  PGconn *begun = pq.PQconnectStartParams(names, values, 0);
  PQconninfoOption *in_use = begun ? pq.PQconninfo(begun) : NULL;
  const char *host = "", *addr = "";
  *out = false;
  for (const PQconninfoOption *o = in_use; o && o->keyword; o++) {
    if (strcmp(o->keyword, "sslmode") == 0)
      *out = !o->val || strcmp(o->val, "prefer") == 0;
    if (o->val && strcmp(o->keyword, "host") == 0) host = o->val;
    if (o->val && strcmp(o->keyword, "hostaddr") == 0) addr = o->val;
  }
  if (weir_hosts_are_local(*host ? host : addr)) *out = false;
  weir_status status =
      in_use ? WEIR_OK
             : weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a connection");
  pq.PQconninfoFree(in_use);
  pq.PQfinish(begun);
  return status;
}

static weir_status pq_connect(pq_session *s, const char *application, bool writes,
                              weir_error *err) {
  enum { MOST = 96 };
  /* Taken where the URI does not say otherwise. */
  const char *const defaults[][2] = {
      {"fallback_application_name", application},
      {"connect_timeout", "10"},
      {"keepalives_idle", "10"},
      {"keepalives_interval", "5"},
      {"keepalives_count", "3"},
      {"tcp_user_timeout", "20000"},
      {"target_session_attrs", writes ? "read-write" : "any"}};
  const char *names[MOST] = {0}, *values[MOST] = {0};
  size_t n = 0;
  for (const PQconninfoOption *o = s->given; o->keyword && n < MOST / 2; o++) {
    if (!o->val || strcmp(o->keyword, "client_encoding") == 0) continue;
    names[n] = o->keyword;
    values[n++] = o->val;
  }
  for (size_t i = 0; i < BASE_COUNT(defaults); i++) {
    const PQconninfoOption *known = pq_find(s, defaults[i][0]);
    if (!known || known->val) continue;
    names[n] = defaults[i][0];
    values[n++] = defaults[i][1];
  }
  names[n] = "client_encoding";
  values[n++] = "UTF8";
  bool verifies = false;
  if (!pq_given(s, "sslmode")) BASE_TRY(pq_must_verify(names, values, &verifies, err));
  if (verifies) {
    names[n] = "sslmode";
    values[n] = "verify-full";
  }
  s->conn = pq.PQconnectdbParams(names, values, 0);
  if (!s->conn) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a connection");
  if (pq.PQstatus(s->conn) == CONNECTION_OK) {
    pq.PQsetnonblocking(s->conn, 1);
    pq.PQsetNoticeProcessor(s->conn, pq_on_notice, s);
    return WEIR_OK;
  }
  weir_status status = pq_fail(s, NULL, "connecting", err);
  if (!verifies) return status;
  return weir_error_prefix(
      err, status,
      "`store` names no sslmode, which means verify-full for another "
      "machine; sslrootcert=FILE names the authority");
}

weir_status pq_open(pq_session *s, const char *uri, const char *application, bool writes,
                    weir_error *err) {
  BASE_TRY(pq_need(err));
  BASE_TRY(pq_parse(s, uri, err));
  return pq_connect(s, application, writes, err);
}

void pq_close(pq_session *s) {
  if (!pq_loaded) return;
  pq.PQfinish(s->conn);
  for (PQconninfoOption *o = s->given; o && o->keyword; o++)
    if (o->val && strchr(o->dispchar, '*')) explicit_bzero(o->val, strlen(o->val));
  pq.PQconninfoFree(s->given);
  free(s->where);
  *s = (pq_session){0};
}

/* ---- asking and waiting ----------------------------------------------------------------------------- */

/* The answer will not be waited for any more, so the session is over. */
static weir_status pq_give_up(pq_session *s, const char *what, weir_error *err) {
  s->lost = true;
  return pq_fail(s, NULL, what, err);
}

/* Until all is sent and an answer is there. */
static weir_status pq_wait(pq_session *s, const char *what, int64_t deadline,
                           weir_error *err) {
  for (;;) {
    int left = pq.PQflush(s->conn);
    if (left < 0) return pq_give_up(s, what, err);
    if (!left && !pq.PQisBusy(s->conn)) return WEIR_OK;
    int64_t now = base_clock_mono();
    if (now >= deadline) return pq_late(s, what, err);
    struct pollfd fd = {.fd = pq.PQsocket(s->conn),
                        .events = (short)(POLLIN | (left ? POLLOUT : 0))};
    int64_t ms = (deadline - now) / BASE_NS_PER_MS + 1;
    if (poll(&fd, 1, ms > 60000 ? 60000 : (int)ms) < 0 && errno != EINTR) {
      s->lost = true;
      return weir_error_errno(err, errno, "checkpoint store %s: cannot wait", s->where);
    }
    if (fd.revents && !pq.PQconsumeInput(s->conn)) return pq_give_up(s, what, err);
  }
}

/* The first result of what was sent; the others, of a list of statements, only if they failed. */
static weir_status pq_answer(pq_session *s, int sent, const char *what, PGresult **out,
                             weir_error *err) {
  PGresult *result = NULL;
  int64_t deadline = base_deadline(s->patience_ns);
  weir_status status = sent ? WEIR_OK : pq_fail(s, NULL, what, err);
  while (!status) {
    status = pq_wait(s, what, deadline, err);
    PGresult *next = status ? NULL : pq.PQgetResult(s->conn);
    if (!next) break;
    ExecStatusType is = pq.PQresultStatus(next);
    if (is != PGRES_COMMAND_OK && is != PGRES_TUPLES_OK) {
      status = pq_fail(s, next, what, err);
      /* What is left is the end of this answer, unless the connection is gone too. */
      while (!s->lost && !pq_wait(s, what, deadline, NULL)) {
        PGresult *rest = pq.PQgetResult(s->conn);
        if (!rest) break;
        pq.PQclear(rest);
      }
    }
    if (result) {
      pq.PQclear(next);
    } else {
      result = next;
    }
  }
  if (!status && !result)
    status = weir_error_set(err, WEIR_E_INTERNAL, 0,
                            "checkpoint store %s: %s gave no answer", s->where, what);
  if (!status && out) {
    *out = result;
  } else {
    pq.PQclear(result);
  }
  return status;
}

static weir_status pq_usable(pq_session *s, const char *what, weir_error *err) {
  if (!s->lost) return WEIR_OK;
  return weir_error_set(err, WEIR_E_IO, 0,
                        "checkpoint store %s: %s failed: the connection was lost",
                        s->where, what);
}

typedef struct pq_head {
  char text[40];
} pq_head;

/* What messages call a statement. */
static pq_head pq_head_of(const char *sql) {
  pq_head head = {{0}};
  snprintf(head.text, sizeof(head.text), "%.*s", (int)strcspn(sql, "(;=$"), sql);
  return head;
}

weir_status pq_exec(pq_session *s, const char *sql, weir_error *err) {
  pq_head head = pq_head_of(sql);
  const char *what = head.text;
  BASE_TRY(pq_usable(s, what, err));
  return pq_answer(s, pq.PQsendQuery(s->conn, sql), what, NULL, err);
}

weir_status pq_run(pq_session *s, const char *name, bool *prepared, const char *sql,
                   const pq_param *params, int n, PGresult **out, weir_error *err) {
  enum { MOST = 20 };
  const char *values[MOST] = {0};
  int sizes[MOST] = {0}, formats[MOST] = {0};
  Oid types[MOST] = {0};
  pq_head head = pq_head_of(sql);
  BASE_TRY(pq_usable(s, head.text, err));
  for (int i = 0; i < n && i < MOST; i++) {
    types[i] = params[i].oid;
    values[i] = params[i].data;
    sizes[i] = params[i].size;
    formats[i] = 1;
  }
  if (!*prepared) {
    int sent = pq.PQsendPrepare(s->conn, name, sql, n, types);
    BASE_TRY(pq_answer(s, sent, head.text, NULL, err));
    *prepared = true;
  }
  int sent = pq.PQsendQueryPrepared(s->conn, name, n, values, sizes, formats, 1);
  return pq_answer(s, sent, head.text, out, err);
}

weir_status pq_commit(pq_session *s, weir_error *err) {
  PGresult *result = NULL;
  BASE_TRY(pq_usable(s, "COMMIT", err));
  s->warned = false;
  weir_status status =
      pq_answer(s, pq.PQsendQuery(s->conn, "COMMIT"), "COMMIT", &result, err);
  if (status) {
    /* A server that refuses and still talks has undone it, and so has one that ended the session before
     * COMMIT came: 25P03, idle_in_transaction_session_timeout. A failure without SQLSTATE is libpq's own, and
     * says nothing of the server. */
    bool undone = s->lost ? strcmp(err->sqlstate, "25P03") == 0 : *err->sqlstate;
    if (!undone) err->flags |= WEIR_ERR_IN_DOUBT;
    return status;
  }
  bool done = strcmp(pq.PQcmdStatus(result), "COMMIT") == 0;
  pq.PQclear(result);
  if (!done)
    return weir_error_set(err, WEIR_E_IO, 0,
                          "checkpoint store %s: the server rolled the step back",
                          s->where);
  /* The one warning that COMMIT gives: it did not wait for the synchronous standby to the end. */
  if (!s->warned) return WEIR_OK;
  return weir_error_set(err, WEIR_E_IO, WEIR_ERR_IN_DOUBT,
                        "checkpoint store %s: the server could not say whether its "
                        "standby has this step",
                        s->where);
}

bool pq_is_idle(const pq_session *s) {
  return !s->lost && pq.PQtransactionStatus(s->conn) == PQTRANS_IDLE;
}

/* ---- results ---------------------------------------------------------------------------------------- */

void pq_clear(PGresult *result) {
  if (result) pq.PQclear(result);
}
int pq_rows(const PGresult *result) {
  return pq.PQntuples(result);
}
int pq_columns(const PGresult *result) {
  return pq.PQnfields(result);
}
Oid pq_type(const PGresult *result, int column) {
  return pq.PQftype(result, column);
}
const char *pq_value(const PGresult *result, int row, int column, int *size) {
  *size = pq.PQgetlength(result, row, column);
  return pq.PQgetisnull(result, row, column) ? NULL : pq.PQgetvalue(result, row, column);
}
uint64_t pq_changes(PGresult *result) {
  return strtoull(pq.PQcmdTuples(result), NULL, 10);
}
