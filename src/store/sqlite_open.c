/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store: making, opening, owning, closing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite.h"

#define OPEN_APPLICATION_ID 2003134834 /* "weir" */
#define OPEN_SCHEMA_VERSION 2
#define OPEN_TEXT_(x) #x
#define OPEN_TEXT(x) OPEN_TEXT_(x)
enum { OPEN_BUSY_MS = 5000 };

/* Every row carries a sum over itself (sq_put). part: a sink's part of a decision; `entries` counts its
 * descriptors, so that a lost one shows. */
static const char open_schema[] =
    "CREATE TABLE meta(id INTEGER PRIMARY KEY CHECK(id=1), pipeline TEXT NOT NULL, "
    "deployment BLOB NOT "
    "NULL, sum BLOB NOT NULL);"
    "CREATE TABLE lease(id INTEGER PRIMARY KEY CHECK(id=1), token INTEGER NOT NULL, "
    "last_attempt INTEGER "
    "NOT NULL, sum BLOB NOT NULL);"
    "CREATE TABLE attempt(attempt INTEGER PRIMARY KEY, state INTEGER NOT NULL, token "
    "INTEGER NOT NULL, sum "
    "BLOB NOT NULL);"
    "CREATE TABLE entry(attempt INTEGER NOT NULL, kind INTEGER NOT NULL, sink TEXT NOT "
    "NULL, participant "
    "INTEGER NOT NULL, present INTEGER NOT NULL, data BLOB, sum BLOB NOT NULL, PRIMARY "
    "KEY(attempt, kind, "
    "sink, participant)) WITHOUT ROWID;"
    "CREATE TABLE part(attempt INTEGER NOT NULL, sink TEXT NOT NULL, token INTEGER NOT "
    "NULL, digest BLOB "
    "NOT NULL, has_rows INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL, "
    "entries INTEGER "
    "NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(attempt, sink)) WITHOUT ROWID;"
    "CREATE TABLE cursor(kind INTEGER NOT NULL, sink TEXT NOT NULL, checkpoint INTEGER "
    "NOT NULL, token "
    "INTEGER NOT NULL, digest BLOB NOT NULL, has_rows INTEGER NOT NULL, rows INTEGER NOT "
    "NULL, bytes "
    "INTEGER NOT NULL, sum BLOB NOT NULL, PRIMARY KEY(kind, sink)) WITHOUT ROWID;"
    "CREATE TABLE position(source TEXT PRIMARY KEY, present INTEGER NOT NULL, data BLOB, "
    "rows INTEGER NOT "
    "NULL, lost INTEGER NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE binding(sink TEXT PRIMARY KEY, data BLOB NOT NULL, sum BLOB NOT NULL) "
    "WITHOUT ROWID;";

static int open_wal_hook(void *ctx, sqlite3 *db, const char *name, int pages) {
  (void)db;
  (void)name;
  ((sq_store *)ctx)->wal_pages = pages;
  return SQLITE_OK;
}

static weir_status open_read_int(sq_store *store, const char *sql, int *out,
                                 weir_error *err) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(store->db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  weir_status status = WEIR_OK;
  if (rc == SQLITE_ROW) {
    *out = sqlite3_column_int(s, 0);
  } else {
    status = sq_error(store, rc, sql, err);
  }
  sqlite3_finalize(s);
  return status;
}

static weir_status open_check_format(sq_store *store, weir_error *err) {
  int application = 0, version = 0;
  BASE_TRY(open_read_int(store, "PRAGMA application_id", &application, err));
  BASE_TRY(open_read_int(store, "PRAGMA user_version", &version, err));
  if (application != OPEN_APPLICATION_ID) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s is no checkpoint store of weir; move it away, or "
                          "name another folder with `state`",
                          store->sql.path);
  }
  if (version != OPEN_SCHEMA_VERSION) {
    return weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "checkpoint store %s has version %d, this weir knows version %d; use the weir "
        "that wrote it",
        store->sql.path, version, OPEN_SCHEMA_VERSION);
  }
  return WEIR_OK;
}

/* Schema, deployment and a lease that nobody has held yet. */
static weir_status open_fill(sq_store *store, const char *pipeline, weir_error *err) {
  uint8_t deployment[WEIR_UUID_SIZE];
  BASE_TRY(base_uuid_new(deployment, err));
  BASE_TRY(sq_exec(store, "BEGIN IMMEDIATE", "BEGIN", err));
  BASE_TRY(sq_exec(store, open_schema, "making the tables", err));
  BASE_TRY(sq_exec(store, "PRAGMA application_id=" OPEN_TEXT(OPEN_APPLICATION_ID),
                   "marking", err));
  BASE_TRY(sq_exec(store, "PRAGMA user_version=" OPEN_TEXT(OPEN_SCHEMA_VERSION),
                   "marking", err));
  sql_value meta[] = {sql_text(pipeline), sql_blob(deployment, sizeof(deployment))};
  BASE_TRY(sql_put(&store->sql, SQL_META_ADD, "meta", meta, 2, NULL, err));
  sql_value lease[] = {sql_int(0), sql_int(0)};
  BASE_TRY(sql_put(&store->sql, SQL_LEASE_TAKE, "lease", lease, 2, NULL, err));
  return sq_exec(store, "COMMIT", "making the store", err);
}

typedef struct open_meta {
  sq_store *store;
  const char *pipeline;
  bool found;
} open_meta;

static weir_status open_meta_row(void *ctx, const sql_value *v, int n, weir_error *err) {
  open_meta *meta = ctx;
  BASE_TRY(sql_verify(&meta->store->sql, "meta", v, n, err));
  meta->found = true;
  if (v[0].size == strlen(meta->pipeline) &&
      memcmp(v[0].data, meta->pipeline, v[0].size) == 0)
    return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "checkpoint store %s belongs to pipeline '%.*s', this is pipeline '%s'; give each "
      "a state folder of its own",
      meta->store->sql.path, (int)v[0].size, (const char *)v[0].data, meta->pipeline);
}

static weir_status open_check_pipeline(sq_store *store, const char *pipeline,
                                       weir_error *err) {
  open_meta meta = {.store = store, .pipeline = pipeline};
  BASE_TRY(
      sq_driver.query(&store->sql, SQL_META_READ, NULL, 0, open_meta_row, &meta, err));
  if (meta.found) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "checkpoint store %s names no pipeline",
                        store->sql.path);
}

/* Whoever writes here beside the owner's lock is an owner whose lock file was removed. */
static weir_status open_begin(sq_store *store, weir_error *err) {
  weir_status status = sq_exec(store, "BEGIN IMMEDIATE", "BEGIN", err);
  if (!status || (sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY) return status;
  return weir_error_set(
      err, WEIR_E_FENCED, 0,
      "checkpoint store %s: another process is in the middle of writing "
      "to it, or was stopped there; end that one first",
      store->sql.path);
}

static weir_status open_take_lease(sq_store *store, weir_error *err) {
  uint64_t token = 0, last = 0;
  BASE_TRY(open_begin(store, err));
  BASE_TRY(sql_read_lease(&store->sql, &token, &last, err));
  BASE_TRY(sql_next_token(token, &store->sql.token, err));
  store->sql.last_attempt = last;
  sql_value lease[] = {sql_int(store->sql.token), sql_int(last)};
  BASE_TRY(sql_put(&store->sql, SQL_LEASE_TAKE, "lease", lease, 2, NULL, err));
  if (WEIR_FAULT("store.lease.before")) {
    return weir_error_set(err, WEIR_E_IO, 0, "checkpoint store %s: cannot be written",
                          store->sql.path);
  }
  BASE_TRY(sq_exec(store, "COMMIT", "taking the lease", err));
  if (WEIR_FAULT("store.lease.after")) {
    return weir_error_set(err, WEIR_E_IO, 0, "checkpoint store %s: cannot be written",
                          store->sql.path);
  }
  return WEIR_OK;
}

/* All frames are copied into the database and synced there. A reader may keep the WAL from being cut,
 * which does no harm. */
static weir_status open_settle_wal(sq_store *store, weir_error *err) {
  int frames = 0, copied = 0;
  int rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &frames,
                                     &copied);
  if (rc == SQLITE_OK || ((rc & 0xff) == SQLITE_BUSY && frames >= 0 && frames == copied))
    return WEIR_OK;
  return sq_error(store, rc, "settling the WAL", err);
}

static void sq_close(weir_store *base) {
  sq_store *store = (sq_store *)base;
  for (int i = 0; i < SQ_STATEMENTS; i++) sqlite3_finalize(store->statements[i]);
  if (store->db) {
    /* A store that broke, or is not ours, is left as it lies. */
    if (base->broken || base->read_only) {
      sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    sqlite3_close(store->db);
  }
  if (store->lock_fd >= 0)
    close(store->lock_fd); /* last: the lease is free from here on */
  sql_done(&store->sql);
  free(store);
}

static const store_ops sq_ops = {sql_load, sql_check_lease, sql_apply, sq_close, NULL};

static weir_status open_new(sq_store **out, weir_error *err) {
  sq_store *store = base_calloc(1, sizeof(*store), err);
  if (!store) return WEIR_E_NOMEM;
  store->lock_fd = -1;
  weir_status status = sql_init(&store->sql, &sq_ops, &sq_driver, err);
  if (status) {
    free(store);
    return status;
  }
  *out = store;
  return WEIR_OK;
}

static weir_status open_connect(sq_store *store, const char *file, int flags,
                                weir_error *err) {
  int rc = sqlite3_open_v2(file, &store->db,
                           flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
  if (rc != SQLITE_OK) return sq_error(store, rc, "opening", err);
  sqlite3_busy_timeout(store->db, OPEN_BUSY_MS);
  /* A damaged file must not be able to run anything, nor be read past its cells. */
  sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  return sq_exec(store, "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY",
                 "setting up", err);
}

/* SQLite would make it with the umask's mode; -wal and -shm take the mode from it. */
static weir_status open_make_file(const char *path, weir_error *err) {
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return base_io_error(err, errno, "make", path);
  close(fd);
  return WEIR_OK;
}

static weir_status open_set_wal(sq_store *store, weir_error *err) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode=WAL", -1, &s, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  const unsigned char *mode = rc == SQLITE_ROW ? sqlite3_column_text(s, 0) : NULL;
  bool wal = mode && strcmp((const char *)mode, "wal") == 0;
  sqlite3_finalize(s);
  if (rc != SQLITE_ROW) return sq_error(store, rc, "switching to a WAL", err);
  if (!wal) {
    return weir_error_set(
        err, WEIR_E_IO, 0,
        "checkpoint store %s: this file system cannot hold a WAL; use another folder",
        store->sql.path);
  }
  return sq_exec(store, "PRAGMA synchronous=FULL; PRAGMA journal_size_limit=8388608",
                 "setting up", err);
}

static weir_status open_sync_file(const char *path, weir_error *err) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return base_io_error(err, errno, "open", path);
  weir_status status = base_fsync(fd, path, err);
  close(fd);
  return status;
}

static weir_status open_fill_file(const char *path, const char *pipeline,
                                  weir_error *err) {
  sq_store *store = NULL;
  BASE_TRY(open_new(&store, err));
  store->sql.path = base_strdup(path, err);
  weir_status status = store->sql.path ? open_make_file(path, err) : WEIR_E_NOMEM;
  if (!status) status = open_connect(store, path, SQLITE_OPEN_READWRITE, err);
  if (!status) {
    status = sq_exec(store,
                     "PRAGMA synchronous=OFF; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA "
                     "journal_mode=MEMORY",
                     "setting up", err);
  }
  if (!status) status = open_fill(store, pipeline, err);
  if (!status) status = open_set_wal(store, err);
  sq_close(&store->sql.base);
  return status;
}

/* `path` itself (when `all`) and what SQLite keeps beside it: a WAL without its database would be
 * taken for a part of the next one of that name. */
static weir_status open_remove(const char *path, bool all, weir_error *err) {
  static const char *const tails[] = {"", "-wal", "-shm", "-journal"};
  for (size_t i = all ? 0 : 1; i < BASE_COUNT(tails); i++) {
    char *name = base_format(err, "%s%s", path, tails[i]);
    if (!name) return WEIR_E_NOMEM;
    bool failed = unlink(name) && errno != ENOENT;
    weir_status status = failed ? base_io_error(err, errno, "remove", name) : WEIR_OK;
    free(name);
    BASE_TRY(status);
  }
  return WEIR_OK;
}

/* The store comes to be under another name, whole and synced, and is then renamed: the deployment's
 * identity exists or does not, and is made once. Where it exists, its folder and all above are durable,
 * whoever made them; its own name may not be yet (open_owned). */
static weir_status open_create(const char *folder, const char *path, const char *pipeline,
                               weir_error *err) {
  weir_status status = WEIR_OK;
  char *temp = base_format(err, "%s.new", path);
  if (!temp) return WEIR_E_NOMEM;
  BASE_GOTO(status, open_remove(temp, true, err));
  BASE_GOTO(status, open_remove(path, false, err));
  BASE_GOTO(status, open_fill_file(temp, pipeline, err));
  BASE_GOTO(status, open_sync_file(temp, err));
  BASE_GOTO(status, base_sync_upwards(folder, err));
  if (WEIR_FAULT("store.create.before") || rename(temp, path)) {
    status = base_io_error(err, errno, "make", path);
  } else if (WEIR_FAULT("store.create.after")) {
    status = base_io_error(err, EIO, "make", path);
  }
out:
  free(temp);
  return status;
}

static weir_status open_owned(sq_store *store, const char *folder, const char *pipeline,
                              weir_error *err) {
  struct stat st = {0};
  BASE_TRY(store_folder_own(folder, &store->lock_fd, err));
  if (WEIR_FAULT("store.open.locked"))
    return base_io_error(err, EIO, "open", store->sql.path);
  if (stat(store->sql.path, &st) && errno != ENOENT)
    return base_io_error(err, errno, "look at", store->sql.path);
  if (st.st_size == 0) BASE_TRY(open_create(folder, store->sql.path, pipeline, err));
  BASE_TRY(open_connect(store, store->sql.path, SQLITE_OPEN_READWRITE, err));
  BASE_TRY(open_check_format(store, err));
  BASE_TRY(open_set_wal(store, err));
  sqlite3_wal_hook(store->db, open_wal_hook,
                   store); /* also ends SQLite's own checkpoints */
  BASE_TRY(open_settle_wal(store, err));
  BASE_TRY(open_check_pipeline(store, pipeline, err));
  BASE_TRY(open_take_lease(store, err));
  return store_folder_sync(folder, err);
}

weir_status weir_store_open(const char *state, const char *pipeline, weir_store **out,
                            weir_error *err) {
  sq_store *store = NULL;
  BASE_TRY(open_new(&store, err));
  store->sql.path = store_folder_file(state, err);
  weir_status status =
      store->sql.path ? open_owned(store, state, pipeline, err) : WEIR_E_NOMEM;
  if (status) {
    store_break(&store->sql.base, status, err); /* so that closing changes nothing */
    sq_close(&store->sql.base);
    return status;
  }
  *out = &store->sql.base;
  return WEIR_OK;
}

weir_status weir_store_open_memory(const char *pipeline, weir_store **out,
                                   weir_error *err) {
  sq_store *store = NULL;
  weir_status status = WEIR_OK;
  BASE_TRY(open_new(&store, err));
  store->in_memory = true;
  store->sql.path = base_strdup("in memory", err);
  status = store->sql.path ? WEIR_OK : WEIR_E_NOMEM;
  if (!status) {
    status =
        open_connect(store, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
  }
  if (!status) status = open_fill(store, pipeline, err);
  if (!status) status = open_take_lease(store, err);
  if (status) {
    sq_close(&store->sql.base);
    return status;
  }
  *out = &store->sql.base;
  return WEIR_OK;
}

static weir_status open_reader(sq_store *store, weir_error *err) {
  struct stat st;
  /* Looked at by name only: opening and closing the file here would drop the locks that this process
   * may hold on it as owner. */
  if (stat(store->sql.path, &st))
    return base_io_error(err, errno, "find", store->sql.path);
  if (st.st_size == 0) {
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "checkpoint store %s holds nothing yet", store->sql.path);
  }
  BASE_TRY(open_connect(store, store->sql.path, SQLITE_OPEN_READONLY, err));
  return open_check_format(store, err);
}

weir_status weir_store_open_read(const char *state, weir_store **out, weir_error *err) {
  sq_store *store = NULL;
  BASE_TRY(open_new(&store, err));
  store->sql.base.read_only = true;
  store->sql.path = store_folder_file(state, err);
  weir_status status = store->sql.path ? open_reader(store, err) : WEIR_E_NOMEM;
  if (status) {
    sq_close(&store->sql.base);
    return status;
  }
  *out = &store->sql.base;
  return WEIR_OK;
}
