/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <weir/options.h>

#define NS_PER_MS INT64_C(1000000)

/* ---- errors ------------------------------------------------------------------------------------------- */

/* What a message must not show: the values that libpq itself marks as passwords. */
static void scrub(const pg_conn *c, char *text) {
  for (const PQconninfoOption *o = c->given; o && o->keyword; o++) {
    if (!o->val || !*o->val || !strchr(o->dispchar, '*')) continue;
    size_t size = strlen(o->val);
    for (char *at = text; (at = strstr(at, o->val)); at += size) memset(at, '*', size);
  }
}

typedef struct error_class {
  const char *prefix;
  weir_status code;
  uint32_t flags;
} error_class;

/* The first that fits. SQLSTATE: PostgreSQL's manual, appendix "PostgreSQL Error Codes". */
static const error_class classes[] = {
    {"22P03", WEIR_E_SCHEMA,
     0}, /* binary format of another type: the table has changed */
    {"22P04", WEIR_E_SCHEMA, 0},
    {"22", WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA},
    {"23", WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA}, /* constraints */
    {"08", WEIR_E_IO, WEIR_ERR_RETRIABLE | WEIR_ERR_AWAY},
    {"57P04", WEIR_E_IO, 0},                                /* the database was dropped */
    {"57P", WEIR_E_IO, WEIR_ERR_RETRIABLE | WEIR_ERR_AWAY}, /* shut down, starting */
    {"57", WEIR_E_IO, WEIR_ERR_RETRIABLE},                  /* cancelled */
    {"55P03", WEIR_E_IO, WEIR_ERR_RETRIABLE}, /* a lock was not to be had in time */
    {"25P0", WEIR_E_IO, WEIR_ERR_RETRIABLE},  /* the transaction was ended */
    {"40", WEIR_E_IO, WEIR_ERR_RETRIABLE},    /* deadlock, serialization */
    {"53", WEIR_E_IO, WEIR_ERR_RETRIABLE},    /* disk full, no memory, no connections */
    {"42501", WEIR_E_IO, 0},                  /* insufficient privilege */
    {"42", WEIR_E_SCHEMA, 0},                 /* a name that is not there */
    {"28", WEIR_E_INVALID_CONFIG, 0},         /* not let in */
    {"3", WEIR_E_INVALID_CONFIG, 0},          /* no such database or schema */
    {"XX001", WEIR_E_CORRUPT, 0},
    {"XX002", WEIR_E_CORRUPT, 0},
};

static const error_class *class_of(const char *sqlstate) {
  for (size_t i = 0; sqlstate && i < PG_COUNT(classes); i++)
    if (strncmp(sqlstate, classes[i].prefix, strlen(classes[i].prefix)) == 0)
      return &classes[i];
  return NULL;
}

/* `result` may be NULL: what the connection says. */
static weir_status fail(pg_conn *c, const PGresult *result, const char *what,
                        weir_error *err) {
  const char *sqlstate = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
  const char *said = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
  const error_class *class = class_of(sqlstate);
  const char *detail = NULL; /* names the key, or the row's values */
  if (class && class->flags & WEIR_ERR_BAD_DATA)
    detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
  char text[700];
  bool lost = c->lost || !c->conn || PQstatus(c->conn) != CONNECTION_OK;
  snprintf(text, sizeof(text), "%s%s%s",
           said                                  ? said
           : c->conn && *PQerrorMessage(c->conn) ? PQerrorMessage(c->conn)
                                                 : "the connection was lost",
           detail ? ": " : "", detail ? detail : "");
  for (size_t n = strlen(text); n && text[n - 1] == '\n'; n--) text[n - 1] = 0;
  for (char *at = text; *at; at++)
    if (*at == '\n' || *at == '\t') *at = ' ';
  scrub(c, text);
  c->lost = lost;
  weir_status code = class ? class->code : WEIR_E_IO;
  uint32_t flags = class ? class->flags : lost ? WEIR_ERR_RETRIABLE | WEIR_ERR_AWAY : 0;
  weir_error_set(err, code, flags, "%s: %s failed: %s", c->where, what, text);
  if (err && sqlstate) snprintf(err->sqlstate, sizeof(err->sqlstate), "%s", sqlstate);
  return code;
}

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* ---- opening -------------------------------------------------------------------------------------------- */

static void on_notice(void *ctx, const char *message) {
  pg_conn *c = ctx;
  (void)message; /* in whatever language; what is less than a warning is not sent */
  c->warned = true;
}

static const char *given(const pg_conn *c, const char *keyword) {
  for (const PQconninfoOption *o = c->given; o->keyword; o++)
    if (strcmp(o->keyword, keyword) == 0) return o->val;
  return NULL;
}

static weir_status parse(pg_conn *c, const char *uri, weir_error *err) {
  char *why = NULL;
  c->given = PQconninfoParse(uri, &why);
  PQfreemem(why); /* may repeat what it cannot read */
  if (!c->given)
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "option 'uri': expected postgresql://USER@HOST:PORT/DATABASE, with what is no "
        "letter or digit in a password written as %%XX, or libpq's keyword=value pairs; "
        "what is there cannot be read as either and is not repeated here");
  const char *host = given(c, "host"), *port = given(c, "port");
  const char *name = given(c, "dbname"), *service = given(c, "service");
  if (!host) host = given(c, "hostaddr");
  if (asprintf(&c->where, "%s%s%s%s%s/%s", service ? "service " : "postgresql://",
               service ? service : "", host ? host : "", port ? ":" : "",
               port ? port : "", name ? name : "") < 0) {
    c->where = NULL;
    return no_memory(err);
  }
  return WEIR_OK;
}

/* Waits for the socket, a moment at most, since the flag of the call has no descriptor to wait for. *got: what
 * it is ready for. */
static weir_status wait_for(pg_conn *c, const weir_call *call, const char *what,
                            short events, short *got, weir_error *err) {
  int64_t left = weir_call_remaining(call);
  if (!left || weir_call_cancelled(call)) {
    c->lost = true;
    char text[300];
    snprintf(text, sizeof(text), "%s: %s", c->where, what);
    weir_status status = weir_call_check(call, text, err);
    if (status) return status;
  }
  struct pollfd fd = {.fd = PQsocket(c->conn), .events = events};
  int ms = left / NS_PER_MS > 100 ? 100 : (int)(left / NS_PER_MS) + 1;
  if (poll(&fd, 1, ms) < 0 && errno != EINTR)
    return weir_error_errno(err, errno, "%s: cannot wait", c->where);
  *got = fd.revents;
  return WEIR_OK;
}

/* libpq keeps a send that failed to itself until the server has hung up. No byte is sent here. */
static bool cannot_send(pg_conn *c) {
  if (send(PQsocket(c->conn), "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return false;
  c->lost = errno != EAGAIN && errno != EINTR;
  return c->lost;
}

/* ---- whether the server must prove who it is */

/* By the name that a certificate would have to bear. */
static bool leaves_this_machine(const PQconninfoOption *in_use) {
  const char *host = "", *addr = "";
  for (const PQconninfoOption *o = in_use; o && o->keyword; o++) {
    if (o->val && strcmp(o->keyword, "host") == 0) host = o->val;
    if (o->val && strcmp(o->keyword, "hostaddr") == 0) addr = o->val;
  }
  return !weir_hosts_are_local(*host ? host : addr);
}

/* libpq's own default, `prefer`, takes any certificate, or none. What a service file or PGSSLMODE says is known
 * only once a connection was begun. */
static bool must_verify(const pg_conn *c) {
  if (given(c, "sslmode")) return false;
  PQconninfoOption *in_use = PQconninfo(c->conn);
  bool by_default = false;
  for (const PQconninfoOption *o = in_use; o && o->keyword; o++)
    if (strcmp(o->keyword, "sslmode") == 0)
      by_default = !o->val || strcmp(o->val, "prefer") == 0;
  bool must = by_default && leaves_this_machine(in_use);
  PQconninfoFree(in_use);
  return must;
}

static weir_status begin_connecting(pg_conn *c, const char *application,
                                    weir_error *err) {
  enum { MOST = 64 };
  const char *const defaults[][2] = {{"keepalives_idle", "10"},
                                     {"keepalives_interval", "5"},
                                     {"keepalives_count", "3"},
                                     {"tcp_user_timeout", "20000"},
                                     {"target_session_attrs", "read-write"}};
  const char *names[MOST] = {0}, *values[MOST] = {0};
  size_t n = 0;
  for (const PQconninfoOption *o = c->given; o->keyword && n < MOST - 11; o++) {
    if (!o->val || strcmp(o->keyword, "client_encoding") == 0) continue;
    if (strcmp(o->keyword, "application_name") == 0) continue;
    names[n] = o->keyword;
    values[n++] = o->val;
  }
  for (size_t i = 0; i < PG_COUNT(defaults); i++) {
    if (given(c, defaults[i][0])) continue;
    names[n] = defaults[i][0];
    values[n++] = defaults[i][1];
  }
  names[n] = "client_encoding";
  values[n++] = "UTF8";
  names[n] = "application_name";
  values[n++] = application;
  c->conn = PQconnectStartParams(names, values, 0);
  if (!c->conn) return no_memory(err);
  if (!must_verify(c)) return WEIR_OK;
  PQfinish(c->conn);
  c->verifies = true;
  names[n] = "sslmode";
  values[n] = "verify-full";
  c->conn = PQconnectStartParams(names, values, 0);
  return c->conn ? WEIR_OK : no_memory(err);
}

/* `unproven`: TLS was begun and never came to be. */
static weir_status not_connected(pg_conn *c, bool unproven, weir_error *err) {
  c->lost = true;
  weir_status status = fail(c, NULL, "connecting", err);
  if (c->verifies && unproven)
    weir_error_prefix(err, status,
                      "`uri` names no sslmode, which means verify-full for another "
                      "machine; sslrootcert=FILE names the authority");
  return status;
}

static weir_status connect_to(pg_conn *c, const char *application, const weir_call *call,
                              weir_error *err) {
  PG_TRY(begin_connecting(c, application, err));
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  bool unproven = false;
  while (PQstatus(c->conn) != CONNECTION_BAD) {
    short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT, got = 0;
    PG_TRY(wait_for(c, call, "connecting", events, &got, err));
    if (!got && next == PGRES_POLLING_READING && cannot_send(c)) break;
    if (!got) continue;
    next = PQconnectPoll(c->conn);
    if (PQstatus(c->conn) == CONNECTION_SSL_STARTUP) unproven = true;
    if (PQsslInUse(c->conn)) unproven = false;
    if (next == PGRES_POLLING_FAILED) break;
    if (next != PGRES_POLLING_OK) continue;
    PQsetnonblocking(c->conn, 1);
    PQsetNoticeProcessor(c->conn, on_notice, c);
    return WEIR_OK;
  }
  return not_connected(c, unproven, err);
}

/* What is stronger stays: remote_apply waits for more. A transaction idles for as long as its epoch is open.
 * Names that this server's version lacks are passed over. */
static weir_status set_up(pg_conn *c, const weir_call *call, weir_error *err) {
  if (PQserverVersion(c->conn) < 120000)
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "%s: the server is older than PostgreSQL 12, which is the first "
        "that this sink can write to",
        c->where);
  return pg_conn_run(
      c, call, "setting up the session",
      "SELECT pg_catalog.set_config(v.name, v.value, false) FROM (VALUES "
      "('synchronous_commit', 'on'), ('client_min_messages', 'warning'), "
      "('statement_timeout', '0'), ('transaction_timeout', '0'), "
      "('lock_timeout', '10s'), ('idle_in_transaction_session_timeout', '15min'), "
      "('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), "
      "('tcp_keepalives_count', '3'), ('client_connection_check_interval', '10s')) "
      "AS v(name, value) JOIN pg_catalog.pg_settings s ON s.name = v.name "
      "WHERE s.setting <> 'remote_apply'",
      NULL, 0, NULL, err);
}

weir_status pg_conn_open(pg_conn *c, const char *uri, const char *application,
                         const weir_call *call, weir_error *err) {
  weir_status status = parse(c, uri, err);
  if (!status) status = connect_to(c, application, call, err);
  if (!status) status = set_up(c, call, err);
  if (status) pg_conn_close(c);
  return status;
}

void pg_conn_close(pg_conn *c) {
  PQfinish(c->conn);
  for (PQconninfoOption *o = c->given; o && o->keyword; o++)
    if (o->val && strchr(o->dispchar, '*')) explicit_bzero(o->val, strlen(o->val));
  PQconninfoFree(c->given);
  free(c->where);
  *c = (pg_conn){0};
}

/* ---- asking and waiting ----------------------------------------------------------------------------------- */

/* Until all is sent, and, with `answer`, something to take is there. */
static weir_status wait_until(pg_conn *c, const weir_call *call, const char *what,
                              bool answer, weir_error *err) {
  for (;;) {
    int left = PQflush(c->conn);
    if (left < 0) return fail(c, NULL, what, err);
    if (!left && (!answer || !PQisBusy(c->conn))) return WEIR_OK;
    short got = 0;
    PG_TRY(wait_for(c, call, what, (short)(POLLIN | (left ? POLLOUT : 0)), &got, err));
    if (!got && cannot_send(c)) return fail(c, NULL, what, err);
    if (got != POLLOUT && !PQconsumeInput(c->conn)) return fail(c, NULL, what, err);
  }
}

static bool is_good(const PGresult *result) {
  ExecStatusType is = PQresultStatus(result);
  return is == PGRES_COMMAND_OK || is == PGRES_TUPLES_OK || is == PGRES_COPY_IN;
}

/* Takes the results of what was sent; the error is that of the first that failed. `failed` (may be NULL) is
 * that result. In COPY the answer ends with the invitation to send. */
static weir_status take_results(pg_conn *c, const weir_call *call, const char *what,
                                PGresult **out, PGresult **failed, weir_error *err) {
  PGresult *kept = NULL;
  weir_status status = WEIR_OK;
  for (;;) {
    weir_status waited = wait_until(c, call, what, true, status ? NULL : err);
    if (!status) status = waited;
    PGresult *next = waited ? NULL : PQgetResult(c->conn);
    if (!next) break;
    bool copying = PQresultStatus(next) == PGRES_COPY_IN;
    snprintf(c->tag, sizeof(c->tag), "%s", PQcmdStatus(next));
    if (!is_good(next) && !status) {
      status = fail(c, next, what, err);
      if (failed) {
        *failed = next;
        next = NULL;
      }
    }
    if (kept && PQresultStatus(kept) == PGRES_TUPLES_OK) {
      PQclear(next);
    } else {
      PQclear(kept);
      kept = next;
    }
    if (copying) break;
  }
  if (!status && !kept)
    status =
        weir_error_set(err, WEIR_E_INTERNAL, 0, "%s: %s gave no answer", c->where, what);
  if (!status && out) {
    *out = kept;
  } else {
    PQclear(kept);
  }
  return status;
}

static weir_status usable(pg_conn *c, const char *what, weir_error *err) {
  if (c->conn && !c->lost) return WEIR_OK;
  return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE | WEIR_ERR_AWAY,
                        "%s: %s failed: the connection was lost", c->where, what);
}

weir_status pg_conn_run(pg_conn *c, const weir_call *call, const char *what,
                        const char *sql, const char *const *params, int n, PGresult **out,
                        weir_error *err) {
  PG_TRY(usable(c, what, err));
  int sent = n ? PQsendQueryParams(c->conn, sql, n, NULL, params, NULL, NULL, 0)
               : PQsendQuery(c->conn, sql);
  if (!sent) return fail(c, NULL, what, err);
  return take_results(c, call, what, out, NULL, err);
}

/* ---- COPY --------------------------------------------------------------------------------------------------- */

weir_status pg_conn_copy_begin(pg_conn *c, const weir_call *call, const char *sql,
                               weir_error *err) {
  PGresult *result = NULL;
  PG_TRY(pg_conn_run(c, call, "COPY", sql, NULL, 0, &result, err));
  bool copying = PQresultStatus(result) == PGRES_COPY_IN;
  PQclear(result);
  if (copying) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INTERNAL, 0, "%s: COPY asked for nothing", c->where);
}

weir_status pg_conn_copy_put(pg_conn *c, const weir_call *call, const void *data,
                             size_t size, weir_error *err) {
  PG_TRY(usable(c, "COPY", err));
  int put = PQputCopyData(c->conn, data, (int)size);
  if (put < 0) return fail(c, NULL, "COPY", err);
  /* Not waited for to the last byte: the next piece is made while the kernel sends. */
  return wait_until(c, call, "COPY", false, err);
}

/* CONTEXT of COPY's errors: "COPY orders, line 3, column note", lines counted from 1, maybe behind lines of what
 * COPY called. */
static void find_place(const PGresult *result, int64_t *row, char column[64]) {
  static const char copy[] = "COPY ", line[] = ", line ", name[] = ", column ";
  const char *at = PQresultErrorField(result, PG_DIAG_CONTEXT);
  const char *of = PQresultErrorField(result, PG_DIAG_COLUMN_NAME);
  while (at && strncmp(at, copy, sizeof(copy) - 1) != 0) {
    at = strchr(at, '\n');
    if (at) at++;
  }
  if (at) at = strstr(at, line);
  if (at) *row = strtoll(at + sizeof(line) - 1, NULL, 10) - 1;
  const char *found = at ? strstr(at, name) : NULL;
  if (of) {
    snprintf(column, 64, "%s", of);
  } else if (found) {
    found += sizeof(name) - 1;
    snprintf(column, 64, "%.*s", (int)strcspn(found, ":\n"), found);
  }
}

weir_status pg_conn_copy_end(pg_conn *c, const weir_call *call, int64_t *row,
                             char column[64], weir_error *err) {
  PGresult *failed = NULL;
  *row = -1;
  column[0] = 0;
  PG_TRY(usable(c, "COPY", err));
  if (PQputCopyEnd(c->conn, NULL) < 0) return fail(c, NULL, "COPY", err);
  weir_status status = take_results(c, call, "COPY", NULL, &failed, err);
  if (failed) find_place(failed, row, column);
  PQclear(failed);
  return status;
}

/* ---- SQL ------------------------------------------------------------------------------------------------------ */

weir_status pg_sql_start(pg_sql *sql, weir_error *err) {
  sql->file = open_memstream(&sql->text, &sql->size);
  return sql->file ? WEIR_OK : no_memory(err);
}

void pg_sql_name(pg_sql *sql, const char *name) {
  fputc('"', sql->file);
  for (; *name; name++) {
    if (*name == '"') fputc('"', sql->file);
    fputc(*name, sql->file);
  }
  fputc('"', sql->file);
}

void pg_sql_text(pg_sql *sql, const char *text) {
  fputs("E'", sql->file);
  for (; *text; text++) {
    if (*text == '\'' || *text == '\\') fputc('\\', sql->file);
    fputc(*text, sql->file);
  }
  fputc('\'', sql->file);
}

weir_status pg_sql_done(pg_sql *sql, weir_error *err) {
  bool bad = ferror(sql->file);
  bad |= fclose(sql->file) != 0;
  sql->file = NULL;
  return bad ? no_memory(err) : WEIR_OK;
}

void pg_sql_free(pg_sql *sql) {
  if (sql->file) fclose(sql->file);
  free(sql->text);
  *sql = (pg_sql){0};
}

const char *pg_value(const PGresult *result, int row, int column) {
  return PQgetisnull(result, row, column) ? NULL : PQgetvalue(result, row, column);
}
