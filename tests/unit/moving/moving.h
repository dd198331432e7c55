/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder that moves while it is read: "/moving", made of memory, which the process sees through the calls of
 * the C library. Before each of these calls somebody else may do something with the folder. A test that says
 * "ctest: moving" is linked with it.
 *
 * Names lie in the order of a hash or in the order in which they came, first or last, and are read some at a
 * time, so that one that is renamed meanwhile may be met twice or never. Times are those of a clock of
 * seconds and nanoseconds that moves with the calls; files are stamped with ticks of 4 ms of it. Inodes of
 * files that are gone are given to new ones.
 */
#ifndef TESTS_UNIT_MOVING_H
#define TESTS_UNIT_MOVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOVING_FOLDER "/moving"

/* An empty folder. `before_call` happens before what the process does with it, and not inside of itself;
 * `matches` is what glob finds, in so many rounds of reading. */
typedef struct moving_options {
  uint64_t seed;
  void (*before_call)(void);
  bool (*matches)(const char *name, int round);
  int rounds;
} moving_options;
void moving_begin(const moving_options *options);
void moving_end(void);

uint64_t moving_random(uint64_t below);
int64_t moving_now(void);
void moving_wait(int64_t ns);

/* What somebody else does. Files are numbers that stay with a file for as long as it has a name. */
int moving_find(const char *name); /* -1: there is none */
int moving_create(const char *name);
void moving_append(int file, const void *data, size_t size);
void moving_cut(int file);
void moving_rename(const char *from, const char *to);
void moving_remove(const char *name);
const char *moving_data(int file, size_t *size); /* with a zero behind it */
#endif
