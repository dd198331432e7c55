/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store: its tables and statements. Names are fixed and always with their schema. */
#include "store/pg.h"

#define PG_TEXT_(x) #x
#define PG_TEXT(x) PG_TEXT_(x)

/* Integers are all bigint, so that rows have the sums of the SQLite store; texts are ordered by their
 * bytes, as there. */
const char pg_schema[] =
    "CREATE TABLE weir.version(version bigint NOT NULL);"
    "INSERT INTO weir.version VALUES(" PG_TEXT(PG_SCHEMA_VERSION) ");"
    "CREATE TABLE weir.meta(pipeline text COLLATE \"C\" PRIMARY KEY, deployment bytea NOT "
    "NULL, sum bytea NOT NULL);"
    "CREATE TABLE weir.lease(pipeline text COLLATE \"C\" PRIMARY KEY, token bigint NOT "
    "NULL, last_attempt bigint NOT NULL, sum bytea NOT NULL, owner text NOT NULL DEFAULT "
    "'', milliseconds bigint NOT NULL DEFAULT 0, expires timestamptz NOT NULL DEFAULT "
    "'-infinity');"
    "CREATE TABLE weir.attempt(pipeline text COLLATE \"C\" NOT NULL, attempt bigint NOT "
    "NULL, state bigint NOT NULL, token bigint NOT NULL, sum bytea NOT NULL, PRIMARY "
    "KEY(pipeline, attempt));"
    "CREATE TABLE weir.entry(pipeline text COLLATE \"C\" NOT NULL, attempt bigint NOT "
    "NULL, kind bigint NOT NULL, sink text COLLATE \"C\" NOT NULL, participant bigint NOT "
    "NULL, present bigint NOT NULL, data bytea, sum bytea NOT NULL, PRIMARY KEY(pipeline, "
    "attempt, kind, sink, participant));"
    "CREATE TABLE weir.part(pipeline text COLLATE \"C\" NOT NULL, attempt bigint NOT NULL, "
    "sink text COLLATE \"C\" NOT NULL, token bigint NOT NULL, digest bytea NOT NULL, "
    "has_rows bigint NOT NULL, rows bigint NOT NULL, bytes bigint NOT NULL, entries bigint "
    "NOT NULL, sum bytea NOT NULL, PRIMARY KEY(pipeline, attempt, sink));"
    "CREATE TABLE weir.cursor(pipeline text COLLATE \"C\" NOT NULL, kind bigint NOT NULL, "
    "sink text COLLATE \"C\" NOT NULL, checkpoint bigint NOT NULL, token bigint NOT NULL, "
    "digest bytea NOT NULL, has_rows bigint NOT NULL, rows bigint NOT NULL, bytes bigint "
    "NOT NULL, sum bytea NOT NULL, PRIMARY KEY(pipeline, kind, sink));"
    "CREATE TABLE weir.position(pipeline text COLLATE \"C\" NOT NULL, source text COLLATE "
    "\"C\" NOT NULL, present bigint NOT NULL, data bytea, rows bigint NOT NULL, lost bigint "
    "NOT NULL, sum bytea NOT NULL, PRIMARY KEY(pipeline, source));"
    "CREATE TABLE weir.binding(pipeline text COLLATE \"C\" NOT NULL, sink text COLLATE "
    "\"C\" NOT NULL, data bytea NOT NULL, sum bytea NOT NULL, PRIMARY KEY(pipeline, sink));";

/* As in sqlite.c, each number one higher. */
const char *const pg_sql[PG_STATEMENTS] = {
    [SQL_LEASE_HOLD] =
        "UPDATE weir.lease SET last_attempt=$3, sum=$4, expires=clock_timestamp() + "
        "milliseconds * interval '1 millisecond' WHERE pipeline=$1 AND token=$2",
    [SQL_LEASE_TAKE] =
        "UPDATE weir.lease SET token=$2, last_attempt=$3, sum=$4 WHERE pipeline=$1",
    [SQL_LEASE_READ] =
        "SELECT token, last_attempt, sum FROM weir.lease WHERE pipeline=$1",
    [SQL_META_ADD] =
        "INSERT INTO weir.meta(pipeline, deployment, sum) SELECT $1, $3, $4 WHERE $1=$2 "
        "ON CONFLICT DO NOTHING",
    [SQL_META_READ] = "SELECT pipeline, deployment, sum FROM weir.meta WHERE pipeline=$1",
    [SQL_META_SET] =
        "UPDATE weir.meta SET deployment=$3, sum=$4 WHERE pipeline=$1 AND pipeline=$2",
    [SQL_ATTEMPT_ADD] =
        "INSERT INTO weir.attempt(pipeline, attempt, state, token, sum) "
        "VALUES($1,$2,$3,$4,$5)",
    [SQL_ATTEMPT_SETTLE] =
        "UPDATE weir.attempt SET state=$3, token=$4, sum=$5 WHERE pipeline=$1 AND "
        "attempt=$2 AND state=1",
    [SQL_ATTEMPT_DROP_CLEAN] =
        "DELETE FROM weir.attempt WHERE pipeline=$1 AND attempt=$2 AND state=3 AND NOT "
        "EXISTS (SELECT 1 FROM weir.entry e WHERE e.pipeline=$1 AND e.attempt=$2 AND "
        "e.kind=2)",
    [SQL_ATTEMPT_PRUNE] =
        "DELETE FROM weir.attempt t WHERE t.pipeline=$1 AND t.state=2 AND t.attempt < "
        "(SELECT a.attempt FROM weir.attempt a WHERE a.pipeline=$1 AND a.state=2 ORDER "
        "BY "
        "a.attempt DESC LIMIT 1 OFFSET $2) AND NOT EXISTS (SELECT 1 FROM weir.part p "
        "WHERE p.pipeline=$1 AND p.attempt=t.attempt)",
    [SQL_ATTEMPT_READ] =
        "SELECT attempt, state, token, sum FROM weir.attempt WHERE pipeline=$1 ORDER BY "
        "attempt",
    [SQL_ENTRY_ADD] =
        "INSERT INTO weir.entry(pipeline, attempt, kind, sink, participant, present, "
        "data, sum) VALUES($1,$2,$3,$4,$5,$6,$7,$8)",
    [SQL_INTENTS_DROP] =
        "DELETE FROM weir.entry WHERE pipeline=$1 AND attempt=$2 AND kind=2",
    [SQL_INTENTS_CLEANED] =
        "DELETE FROM weir.entry WHERE pipeline=$1 AND attempt=$2 AND kind=2 AND sink=$3 "
        "AND EXISTS (SELECT 1 FROM weir.attempt a WHERE a.pipeline=$1 AND a.attempt=$2 "
        "AND a.state=3)",
    [SQL_ENTRY_PRUNE] =
        "DELETE FROM weir.entry WHERE pipeline=$1 AND attempt < $3 AND kind=1 AND "
        "sink=$2",
    [SQL_ENTRY_READ] =
        "SELECT attempt, kind, sink, participant, present, data, sum FROM weir.entry "
        "WHERE pipeline=$1 ORDER BY attempt, kind, sink, participant",
    [SQL_PART_ADD] =
        "INSERT INTO weir.part(pipeline, attempt, sink, token, digest, has_rows, rows, "
        "bytes, entries, sum) VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)",
    [SQL_PART_TOTALS] =
        "SELECT has_rows, rows, bytes FROM weir.part WHERE pipeline=$1 AND attempt=$2 "
        "AND "
        "sink=$3",
    [SQL_PART_FLOOR] =
        "SELECT attempt FROM weir.part WHERE pipeline=$1 AND sink=$2 AND attempt<=$3 "
        "ORDER BY attempt DESC LIMIT 1 OFFSET $4",
    [SQL_PART_PRUNE] =
        "DELETE FROM weir.part WHERE pipeline=$1 AND attempt < $3 AND sink=$2",
    [SQL_PART_READ] =
        "SELECT attempt, sink, token, digest, has_rows, rows, bytes, entries, sum FROM "
        "weir.part WHERE pipeline=$1 ORDER BY attempt, sink",
    [SQL_CURSOR_SET] =
        "INSERT INTO weir.cursor(pipeline, kind, sink, checkpoint, token, digest, "
        "has_rows, rows, bytes, sum) VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9,$10) ON "
        "CONFLICT(pipeline, kind, sink) DO UPDATE SET checkpoint=$4, token=$5, "
        "digest=$6, "
        "has_rows=$7, rows=$8, bytes=$9, sum=$10",
    [SQL_CURSOR_READ] =
        "SELECT kind, sink, checkpoint, token, digest, has_rows, rows, bytes, sum FROM "
        "weir.cursor WHERE pipeline=$1 ORDER BY kind, sink",
    [SQL_POSITION_SET] =
        "INSERT INTO weir.position(pipeline, source, present, data, rows, lost, sum) "
        "VALUES($1,$2,$3,$4,$5,$6,$7) ON CONFLICT(pipeline, source) DO UPDATE SET "
        "present=$3, data=$4, rows=$5, lost=$6, sum=$7",
    [SQL_POSITION_READ] =
        "SELECT source, present, data, rows, lost, sum FROM weir.position WHERE "
        "pipeline=$1 ORDER BY source",
    [SQL_BINDING_SET] =
        "INSERT INTO weir.binding(pipeline, sink, data, sum) VALUES($1,$2,$3,$4) ON "
        "CONFLICT(pipeline, sink) DO UPDATE SET data=$3, sum=$4",
    [SQL_BINDING_GET] =
        "SELECT sink, data, sum FROM weir.binding WHERE pipeline=$1 AND sink=$2",
    [SQL_BINDING_READ] =
        "SELECT sink, data, sum FROM weir.binding WHERE pipeline=$1 ORDER BY sink",
    [PG_LEASE_MAKE] =
        "INSERT INTO weir.lease(pipeline, token, last_attempt, sum) VALUES($1,$2,$3,$4) "
        "ON CONFLICT DO NOTHING",
    [PG_LEASE_WHO] =
        "SELECT owner, CASE WHEN expires > clock_timestamp() THEN (extract(epoch FROM "
        "expires - clock_timestamp()) * 1000)::bigint + 1 ELSE 0 END FROM weir.lease "
        "WHERE pipeline=$1",
    [PG_LEASE_LOCK] =
        "SELECT 1::bigint FROM weir.lease WHERE pipeline=$1 AND expires <= "
        "clock_timestamp() FOR UPDATE NOWAIT",
    [PG_LEASE_OWN] =
        "UPDATE weir.lease SET owner=$2, milliseconds=$3, expires=clock_timestamp() + $3 "
        "* interval '1 millisecond' WHERE pipeline=$1",
    [PG_LEASE_RENEW] =
        "UPDATE weir.lease SET expires=clock_timestamp() + milliseconds * interval '1 "
        "millisecond' WHERE pipeline=$1 AND token=$2",
    [PG_LEASE_RELEASE] =
        "UPDATE weir.lease SET expires='-infinity' WHERE pipeline=$1 AND token=$2",
};
