/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store, inside: one connection and its prepared statements. */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include <sqlite3.h>

#include "store/sql.h"

enum { /* behind those of every database */
       SQ_BEGIN = SQL_STATEMENTS,
       SQ_BEGIN_READ,
       SQ_COMMIT,
       SQ_ROLLBACK,
       SQ_FREE_PAGES,
       SQ_STATEMENTS
};

typedef struct sq_store {
  sql_store sql;
  sqlite3 *db;
  int lock_fd;
  bool in_memory;
  int wal_pages; /* as the commit hook was last told */
  sqlite3_stmt *statements[SQ_STATEMENTS];
} sq_store;

extern const sql_driver sq_driver;

/* Error of a SQLite result code: where, what was tried, what SQLite says. */
weir_status sq_error(sq_store *store, int rc, const char *what, weir_error *err);
weir_status sq_exec(sq_store *store, const char *sql, const char *what, weir_error *err);

#endif
