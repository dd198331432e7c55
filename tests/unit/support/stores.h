/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint store of a test's own, on disk, in memory or in a PostgreSQL server, and steps that tests
 * repeat. */
#ifndef TESTS_UNIT_SUPPORT_STORES_H
#define TESTS_UNIT_SUPPORT_STORES_H

#include <weir/store.h>

#include "base/base.h"

#define STORES_PIPELINE "orders"

typedef enum stores_kind { STORES_DISK, STORES_MEMORY, STORES_POSTGRES } stores_kind;

typedef struct stores_fixture {
  stores_kind kind;
  char dir[64];
  char state[96]; /* the state folder */
  char db[128];   /* the file in it */
  weir_store *store;
  weir_error err;
} stores_fixture;

/* For cmocka; *state is the fixture, with the store open. */
int stores_setup_disk(void **state);
int stores_setup_memory(void **state);
/* Needs stores_start_server; each test finds an empty database. */
int stores_setup_postgres(void **state);
int stores_teardown(void **state);

/* For a whole group: a server of its own (tools/postgres.py). No server fails the group. */
int stores_start_server(void **state);
int stores_stop_server(void **state);
const char *stores_uri(void);
/* How the store of the fixture is opened. */
weir_store_postgres stores_where(void);
/* Statements beside the store, as superuser. */
void stores_sql(const char *sql);

#define OK(call) stores_assert_ok((call), &f->err, #call)
void stores_assert_ok(weir_status status, const weir_error *err, const char *what);
void stores_assert_message(const stores_fixture *f, const char *part);

void stores_open(stores_fixture *f);
void stores_close(stores_fixture *f);
/* Closed and opened again; the one in memory just goes on. */
void stores_reopen(stores_fixture *f);
weir_store_state *stores_load(stores_fixture *f);
uint64_t stores_token(stores_fixture *f);

const uint8_t *stores_bytes(const char *text);
/* digest: the attempt's last byte, repeated. */
weir_store_sink stores_sink(const char *id, uint64_t attempt, uint64_t token,
                            uint64_t rows);
/* Decides `attempt` for sinks `a` (with a descriptor of `size` bytes) and, when asked, `b` (empty), and
 * reserves the next one. */
weir_status stores_decide(stores_fixture *f, uint64_t attempt, size_t size, bool with_b);
weir_status stores_see(stores_fixture *f, const char *sink, uint64_t attempt);

#endif
