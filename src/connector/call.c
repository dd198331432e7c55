/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "connector/inside.h"

int64_t weir_call_deadline(const weir_call *call) {
  return call ? atomic_load(&call->deadline) : WEIR_NO_DEADLINE;
}

int64_t weir_call_remaining(const weir_call *call) {
  int64_t deadline = weir_call_deadline(call);
  if (deadline == WEIR_NO_DEADLINE) return INT64_MAX;
  int64_t left = deadline - base_clock_mono();
  return left > 0 ? left : 0;
}

int weir_call_cancelled(const weir_call *call) {
  if (!call) return 0;
  return atomic_load(&call->cancelled) || weir_call_remaining(call) == 0;
}

weir_status weir_call_check(const weir_call *call, const char *what, weir_error *err) {
  if (!weir_call_cancelled(call)) return WEIR_OK;
  if (weir_call_remaining(call) == 0) {
    return weir_error_set(err, WEIR_E_TIMEOUT, 0, "%s: the deadline has passed", what);
  }
  return weir_error_set(err, WEIR_E_CANCELLED, 0, "%s: the call was cancelled", what);
}

void connector_call_arm(weir_call *call, int64_t deadline_ns, int64_t limit_ns) {
  atomic_store(&call->cancelled, 0);
  atomic_store(&call->deadline, deadline_ns);
  atomic_store(&call->limit, limit_ns < deadline_ns ? deadline_ns : limit_ns);
}

weir_call *weir_call_new(int64_t timeout_ns) {
  weir_call *call = calloc(1, sizeof(*call));
  if (!call) return NULL;
  int64_t deadline = timeout_ns < 0 ? WEIR_NO_DEADLINE : base_deadline(timeout_ns);
  connector_call_arm(call, deadline, deadline);
  return call;
}

void weir_call_cancel(weir_call *call) {
  if (call) atomic_store(&call->cancelled, 1);
}

void weir_call_free(weir_call *call) {
  free(call);
}

bool connector_call_running(const weir_call *call) {
  return atomic_load(&call->turn) & 1;
}

/* Ends turn `turn`, if it is still the one under way: whoever does so first has the result. */
static bool call_end_turn(weir_call *call, uint64_t turn) {
  return atomic_compare_exchange_strong(&call->turn, &turn, turn + 1);
}

bool connector_call_give_up(weir_call *call) {
  uint64_t turn = atomic_load(&call->turn);
  if (!(turn & 1) || !call_end_turn(call, turn)) return false;
  atomic_store(&call->cancelled, 1);
  return true;
}

bool connector_call_expire(weir_call *call, int64_t now_ns) {
  /* The turn is read before the limit: a limit of a later turn then fails the exchange. */
  uint64_t turn = atomic_load(&call->turn);
  int64_t limit = atomic_load(&call->limit);
  if (!(turn & 1) || limit == WEIR_NO_DEADLINE || now_ns < limit) return false;
  if (!call_end_turn(call, turn)) return false;
  atomic_store(&call->cancelled, 1);
  return true;
}

void connector_turn_enter(connector_turn *turn, weir_call *call) {
  turn->call = call;
  turn->given_up = false;
  turn->err.code = WEIR_OK;
  turn->err.flags = 0;
  turn->err.vendor_code = 0;
  turn->err.row = turn->err.column = -1;
  turn->err.sqlstate[0] = turn->err.message[0] = 0;
  turn->turn = call ? atomic_fetch_add(&call->turn, 1) + 1 : 0;
}

weir_status connector_turn_leave(connector_turn *turn, const char *hook,
                                 weir_status status) {
  weir_error *err = &turn->err;
  turn->given_up = turn->call && !call_end_turn(turn->call, turn->turn);
  if (turn->given_up) {
    return weir_error_set(err, WEIR_E_TIMEOUT, 0, "%s was given up: its deadline passed",
                          hook);
  }
  if (!status) return WEIR_OK;
  if (!err->message[0]) {
    int32_t vendor = err->vendor_code;
    uint32_t flags = err->flags;
    weir_error_set(err, status, flags, "%s failed with %s and said nothing more", hook,
                   weir_status_name(status));
    err->vendor_code = vendor;
  }
  err->code = status;
  err->sqlstate[sizeof(err->sqlstate) - 1] = 0;
  err->message[sizeof(err->message) - 1] = 0;
  if (status == WEIR_E_BAD_DATA) err->flags |= WEIR_ERR_BAD_DATA;
  /* What may have happened must not be repeated as if it had not. */
  if (err->flags & WEIR_ERR_IN_DOUBT) err->flags &= ~(uint32_t)WEIR_ERR_RETRIABLE;
  return status;
}

bool connector_turn_cancelled(const connector_turn *turn) {
  return turn->given_up || (turn->err.code && weir_call_cancelled(turn->call));
}

void connector_turn_mark_late(connector_turn *turn) {
  weir_status code = turn->err.code;
  if (!connector_turn_cancelled(turn) ||
      (code != WEIR_E_TIMEOUT && code != WEIR_E_CANCELLED))
    return;
  if (!(turn->err.flags & (WEIR_ERR_IN_DOUBT | WEIR_ERR_BAD_DATA)))
    turn->err.flags |= WEIR_ERR_RETRIABLE;
}

weir_status connector_turn_fail(connector_turn *turn, const char *where,
                                weir_error *err) {
  size_t size = strlen(where);
  if (err) *err = turn->err;
  /* Some connectors say it themselves. */
  if (strncmp(turn->err.message, where, size) == 0 && turn->err.message[size] == ':') {
    return turn->err.code;
  }
  return weir_error_prefix(err, turn->err.code, "%s", where);
}
