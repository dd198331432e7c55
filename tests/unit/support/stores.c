/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/pq.h"

static FILE *server; /* that runs while this is open */
static int server_in = -1;
static char server_uri[200];

void stores_assert_ok(weir_status status, const weir_error *err, const char *what) {
  if (status) fail_msg("%s: %s %s", what, weir_status_name(status), err->message);
}

void stores_assert_message(const stores_fixture *f, const char *part) {
  if (!strstr(f->err.message, part))
    fail_msg("'%s' is not in '%s'", part, f->err.message);
}

void stores_open(stores_fixture *f) {
  weir_store_postgres where = stores_where();
  switch (f->kind) {
    case STORES_MEMORY:
      OK(weir_store_open_memory(STORES_PIPELINE, &f->store, &f->err));
      break;
    case STORES_POSTGRES:
      OK(weir_store_open_postgres(&where, &f->store, &f->err));
      break;
    default:
      OK(weir_store_open(f->state, STORES_PIPELINE, &f->store, &f->err));
  }
}

void stores_close(stores_fixture *f) {
  weir_store_close(f->store);
  f->store = NULL;
}

void stores_reopen(stores_fixture *f) {
  if (f->kind == STORES_MEMORY) return;
  stores_close(f);
  stores_open(f);
}

/* ---- a server ------------------------------------------------------------------------------------ */

const char *stores_uri(void) {
  return server_uri;
}

weir_store_postgres stores_where(void) {
  return (weir_store_postgres){.struct_size = sizeof(weir_store_postgres),
                               .uri = server_uri,
                               .pipeline = STORES_PIPELINE,
                               .lease_ns = 60 * BASE_NS_PER_S};
}

void stores_sql(const char *sql) {
  weir_error err = {0};
  pq_session s = {.patience_ns = 60 * BASE_NS_PER_S};
  stores_assert_ok(pq_open(&s, server_uri, "test", false, &err), &err, "pq_open");
  stores_assert_ok(pq_exec(&s, sql, &err), &err, sql);
  pq_close(&s);
}

int stores_start_server(void **state) {
  (void)state;
  int in[2], out[2];
  if (pipe(in) || pipe(out)) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    closefrom(3);
    execlp("python3", "python3", WEIR_TEST_TOOLS "/postgres.py", "serve", NULL);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  server_in = in[1];
  server = fdopen(out[0], "r");
  if (pid < 0 || !server || !fgets(server_uri, sizeof(server_uri), server)) return -1;
  server_uri[strcspn(server_uri, "\n")] = 0;
  return 0;
}

int stores_stop_server(void **state) {
  (void)state;
  char byte = 0;
  close(server_in);
  /* Its standard output ends with it. */
  while (fread(&byte, 1, 1, server)) continue;
  return fclose(server);
}

/* ---- fixtures ------------------------------------------------------------------------------------ */

static int stores_setup(void **state, stores_kind kind) {
  stores_fixture *f = calloc(1, sizeof(*f));
  f->kind = kind;
  /* In memory where there is such a folder: thousands of syncs of a real disk prove nothing here. */
  snprintf(f->dir, sizeof(f->dir), "%s/weir-store-XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  assert_non_null(mkdtemp(f->dir));
  snprintf(f->state, sizeof(f->state), "%s/a/state", f->dir);
  snprintf(f->db, sizeof(f->db), "%s/store.db", f->state);
  *state = f;
  stores_open(f);
  return 0;
}
int stores_setup_disk(void **state) {
  return stores_setup(state, STORES_DISK);
}
int stores_setup_memory(void **state) {
  return stores_setup(state, STORES_MEMORY);
}
int stores_setup_postgres(void **state) {
  stores_sql("DROP SCHEMA IF EXISTS weir CASCADE");
  return stores_setup(state, STORES_POSTGRES);
}
int stores_teardown(void **state) {
  stores_fixture *f = *state;
  char command[128];
  weir_store_close(f->store);
  snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
  int rc = system(command);
  free(f);
  return rc;
}

weir_store_state *stores_load(stores_fixture *f) {
  weir_store_state *s = NULL;
  OK(weir_store_load(f->store, &s, &f->err));
  return s;
}

uint64_t stores_token(stores_fixture *f) {
  weir_store_state *s = stores_load(f);
  uint64_t token = s->token;
  weir_store_state_free(s);
  return token;
}

const uint8_t *stores_bytes(const char *text) {
  return (const uint8_t *)text;
}

weir_store_sink stores_sink(const char *id, uint64_t attempt, uint64_t token,
                            uint64_t rows) {
  weir_store_sink s = {.sink_id = id,
                       .cursor = {.checkpoint = attempt, .token = token},
                       .has_rows = rows > 0,
                       .rows = rows,
                       .bytes = rows * 10};
  memset(s.cursor.digest, (int)(attempt & 0xff), sizeof(s.cursor.digest));
  return s;
}

weir_status stores_decide(stores_fixture *f, uint64_t attempt, size_t size, bool with_b) {
  weir_store_state *loaded = NULL;
  BASE_TRY(weir_store_load(f->store, &loaded, &f->err));
  uint64_t token = loaded->token;
  weir_store_state_free(loaded);
  weir_store_sink sinks[] = {stores_sink("a", attempt, token, 5),
                             stores_sink("b", attempt, token, 0)};
  uint8_t *data = calloc(1, size + 1);
  memset(data, 'd', size);
  weir_store_entry descriptors[] = {{"a", 1, 1, data, size}, {"b", 1, 0, NULL, 0}};
  weir_store_entry intents[] = {{"a", 1, 1, stores_bytes("next"), 4}};
  char text[32];
  snprintf(text, sizeof(text), "row %llu", (unsigned long long)attempt);
  weir_store_position positions[] = {
      {"orders", 1, stores_bytes(text), strlen(text), attempt * 5, 0}};
  weir_store_decision d = {.attempt = attempt,
                           .token = token,
                           .sinks = sinks,
                           .n_sinks = with_b ? 2 : 1,
                           .descriptors = descriptors,
                           .n_descriptors = with_b ? 2 : 1,
                           .positions = positions,
                           .n_positions = 1,
                           .next_attempt = attempt + 1,
                           .intents = intents,
                           .n_intents = 1};
  weir_status status = weir_store_decide(f->store, &d, &f->err);
  free(data);
  return status;
}

weir_status stores_see(stores_fixture *f, const char *sink, uint64_t attempt) {
  weir_store_sink s = stores_sink(sink, attempt, 1, 0);
  return weir_store_seen(f->store, sink, &s.cursor, &f->err);
}
