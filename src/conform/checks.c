/* SPDX-License-Identifier: Apache-2.0 */
/* All checks, in their order: a group stands on those before it. */
#include "conform/conform.h"

const conform_check conform_checks[] = {
    {"contract", "answers",
     "create, contract and keyed_mutation_key answer, twice the same", 0,
     conform_check_create},
    {"contract", "no-io", "they open no file, socket or thread", 0, conform_check_no_io},
    {"lifecycle", "session", "all hooks in their order, two epochs", CONFORM_COUNTED,
     conform_check_session},
    {"lifecycle", "prepare-again",
     "prepare_schema is idempotent and names the same target each time", 0,
     conform_check_prepare_again},
    {"lifecycle", "close-anywhere", "close at any stage drops what was not decided", 0,
     conform_check_close_anywhere},
    {"lifecycle", "release-anywhere", "release without close at any stage does no harm",
     0, conform_check_release_anywhere},
    {"lifecycle", "leaks", "after release no thread, file or memory is left", 0,
     conform_check_leaks},
    {0},
};
