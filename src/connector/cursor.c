/* SPDX-License-Identifier: Apache-2.0 */
/* Namespace keys, cursors, and the table by which a committer decides what to publish. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <weir/cursor.h>

#include "base/base.h"

/* The part's length as 8 bytes, big-endian, then its bytes: so framed, two different lists of parts
 * never spell the same text. */
static weir_status hash_part(base_sha256_stream *hash, const void *data, size_t size) {
  uint8_t frame[8];
  for (int i = 0; i < 8; i++) frame[i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
  BASE_TRY(base_sha256_update(hash, frame, sizeof(frame), NULL));
  return base_sha256_update(hash, data, size, NULL);
}

void weir_namespace_key(const weir_namespace *ns, char out[WEIR_NAMESPACE_KEY_SIZE]) {
  base_sha256_stream hash = {0};
  uint8_t digest[BASE_SHA256_SIZE];
  weir_status status = base_sha256_init(&hash, NULL);
  if (!status) status = hash_part(&hash, ns->identity, sizeof(ns->identity));
  if (!status) status = hash_part(&hash, ns->deployment, sizeof(ns->deployment));
  if (!status) status = hash_part(&hash, ns->sink_id, strlen(ns->sink_id));
  if (!status) status = base_sha256_final(&hash, digest, NULL);
  base_sha256_done(&hash);
  out[0] = 0;
  if (status) return;
  memcpy(out, "weir-", 5);
  weir_hex_encode(digest, sizeof(digest), out + 5);
}

int weir_cursor_equal(const weir_cursor *a, const weir_cursor *b) {
  return a->checkpoint == b->checkpoint && a->token == b->token &&
         memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

enum { CURSOR_TEXT = 128 };

static const char *cursor_text(const weir_cursor *cursor, char out[CURSOR_TEXT]) {
  char digest[2 * 6 + 1];
  if (!cursor->checkpoint) return "none";
  weir_hex_encode(cursor->digest, 6, digest);
  snprintf(out, CURSOR_TEXT, "checkpoint %" PRIu64 ", token %" PRIu64 ", digest %s..",
           cursor->checkpoint, cursor->token, digest);
  return out;
}

static weir_status disagree(const weir_commit_batch *batch, const weir_cursor *observed,
                            const weir_cursor *expected, const char *what,
                            weir_status code, weir_error *err) {
  char at_target[CURSOR_TEXT], wanted[CURSOR_TEXT];
  const char *ways_out =
      code == WEIR_E_FENCED
          ? "a newer instance of this pipeline has taken over; this one must stop"
          : "the checkpoint store and the target belong to different histories; bring "
            "back the "
            "store or the target that was replaced";
  return weir_error_set(
      err, code, 0,
      "sink %s of pipeline %s: %s: the target's cursor is [%s], expected [%s]: %s",
      batch->ns ? batch->ns->sink_id : "?", batch->ns ? batch->ns->pipeline : "?", what,
      cursor_text(observed, at_target), cursor_text(expected, wanted), ways_out);
}

/* What the runtime owes every committer; a broken batch must not reach a target. */
static weir_status batch_check(const weir_commit_batch *batch, weir_error *err) {
  uint64_t last = batch->predecessor.checkpoint;
  if (!batch->n_attempts) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "a commit batch without attempts");
  }
  for (size_t i = 0; i < batch->n_attempts; i++) {
    const weir_commit_attempt *attempt = &batch->attempts[i];
    if (attempt->cursor.checkpoint <= last) {
      return weir_error_set(err, WEIR_E_INTERNAL, 0,
                            "a commit batch out of order: attempt %" PRIu64
                            " after %" PRIu64,
                            attempt->cursor.checkpoint, last);
    }
    last = attempt->cursor.checkpoint;
    for (size_t k = 1; k < attempt->n_entries; k++) {
      if (attempt->entries[k].participant_id <= attempt->entries[k - 1].participant_id) {
        return weir_error_set(err, WEIR_E_INTERNAL, 0,
                              "attempt %" PRIu64 " has its participants out of order",
                              last);
      }
    }
  }
  return WEIR_OK;
}

static bool counts_as_predecessor(const weir_commit_batch *batch,
                                  const weir_cursor *observed) {
  if (weir_cursor_equal(observed, &batch->predecessor)) return true;
  if (!observed->checkpoint) return batch->predecessor.checkpoint == 0;
  if (observed->checkpoint >= batch->attempts[0].cursor.checkpoint) return false;
  for (size_t i = 0; i < batch->n_accepted; i++) {
    if (weir_cursor_equal(observed, &batch->accepted[i])) return true;
  }
  return false;
}

weir_status weir_commit_batch_start(const weir_commit_batch *batch,
                                    const weir_cursor *observed, size_t *first,
                                    weir_error *err) {
  BASE_TRY(batch_check(batch, err));
  const weir_cursor *target = &batch->attempts[batch->n_attempts - 1].cursor;
  if (weir_cursor_equal(observed, target)) {
    *first = batch->n_attempts;
    return WEIR_OK;
  }
  if (observed->checkpoint == target->checkpoint) {
    return disagree(batch, observed, target,
                    "the attempt was published by another history", WEIR_E_CONFLICT, err);
  }
  if (observed->checkpoint > target->checkpoint) {
    bool newer = observed->token > target->token;
    return disagree(batch, observed, target,
                    newer ? "fenced" : "the target is ahead of the store",
                    newer ? WEIR_E_FENCED : WEIR_E_CONFLICT, err);
  }
  for (size_t i = batch->n_attempts - 1; i-- > 0;) {
    if (weir_cursor_equal(observed, &batch->attempts[i].cursor)) {
      *first = i + 1;
      return WEIR_OK;
    }
  }
  if (counts_as_predecessor(batch, observed)) {
    *first = 0;
    return WEIR_OK;
  }
  return disagree(batch, observed, &batch->predecessor,
                  observed->checkpoint
                      ? "the target's last attempt is not in this history"
                      : "the target has lost its cursor",
                  WEIR_E_CONFLICT, err);
}
