/* SPDX-License-Identifier: Apache-2.0 */
/* States and their legal moves, as tables. docs/protocol.md, section 'The coordinator and the store'. */
#include "coord/state.h"

#define TO(phase) (UINT32_C(1) << (phase))
/* From anywhere an error may end the run. */
#define TO_END (TO(PHASE_HALTING) | TO(PHASE_STOPPED))

static const struct {
  const char *name;
  uint32_t to;
} phases[PHASE_COUNT] = {
    [PHASE_NEW] = {"new", TO(PHASE_TAKING_OVER)},
    [PHASE_TAKING_OVER] = {"taking over", TO(PHASE_PUBLISHING)},
    [PHASE_PUBLISHING] = {"publishing", TO(PHASE_RESOLVING)},
    [PHASE_RESOLVING] = {"resolving", TO(PHASE_NAMING) | TO(PHASE_FINISHING)},
    [PHASE_NAMING] = {"naming", TO(PHASE_RESERVING) | TO(PHASE_BACKING_OFF)},
    [PHASE_RESERVING] = {"reserving", TO(PHASE_BEGINNING) | TO(PHASE_STOPPING_LANES)},
    [PHASE_BEGINNING] = {"beginning", TO(PHASE_OPEN) | TO(PHASE_STOPPING_LANES)},
    /* straight to PREPARING when every lane has ended: their ends are the barriers */
    /* to ABORTING at once when an attempt that took nothing is withdrawn at the end of a run */
    [PHASE_OPEN] = {"open", TO(PHASE_SEALING) | TO(PHASE_PREPARING) |
                                TO(PHASE_STOPPING_LANES) | TO(PHASE_ABORTING)},
    /* back to OPEN when nothing moved */
    [PHASE_SEALING] = {"sealing", TO(PHASE_OPEN) | TO(PHASE_PREPARING) |
                                      TO(PHASE_STOPPING_LANES) | TO(PHASE_ABORTING)},
    [PHASE_PREPARING] = {"preparing", TO(PHASE_DECIDING) | TO(PHASE_STOPPING_LANES)},
    /* after the decision a failure aborts the attempt that was reserved with it */
    [PHASE_DECIDING] = {"deciding", TO(PHASE_BEGINNING) | TO(PHASE_FINISHING) |
                                        TO(PHASE_STOPPING_LANES)},
    [PHASE_STOPPING_LANES] = {"stopping lanes", TO(PHASE_ABORTING)},
    [PHASE_ABORTING] = {"aborting", TO(PHASE_ROLLING_BACK)},
    /* to FINISHING when the attempt was withdrawn */
    [PHASE_ROLLING_BACK] = {"rolling back", TO(PHASE_PURGING) | TO(PHASE_FINISHING)},
    [PHASE_PURGING] = {"purging", TO(PHASE_SEEKING)},
    [PHASE_SEEKING] = {"seeking", TO(PHASE_BACKING_OFF)},
    [PHASE_BACKING_OFF] = {"backing off", TO(PHASE_NAMING)},
    [PHASE_FINISHING] = {"finishing", 0},
    [PHASE_HALTING] = {"halting", 0},
    [PHASE_STOPPED] = {"stopped", 0},
};

const char *coord_phase_name(coord_phase phase) {
  return phase < PHASE_COUNT ? phases[phase].name : "unknown";
}

bool coord_may(coord_phase from, coord_phase to) {
  if (from >= PHASE_COUNT || to >= PHASE_COUNT || from == PHASE_STOPPED) return false;
  if (from == PHASE_HALTING) return to == PHASE_STOPPED;
  return ((phases[from].to | TO_END) & TO(to)) != 0;
}

const char *coord_commit_state_name(coord_commit_state state) {
  static const char *const names[] = {"idle", "running", "waiting"};
  return (size_t)state < BASE_COUNT(names) ? names[state] : "unknown";
}

bool coord_commit_may(coord_commit_state from, coord_commit_state to) {
  switch (from) {
    case COMMIT_IDLE:
      return to == COMMIT_RUNNING;
    case COMMIT_RUNNING:
      return to == COMMIT_IDLE || to == COMMIT_WAITING;
    case COMMIT_WAITING:
      return to == COMMIT_RUNNING;
    default:
      return false;
  }
}
