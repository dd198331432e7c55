/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of its own for a test, and files in it. Every failure fails the test. */
#ifndef TESTS_UNIT_SUPPORT_FOLDER_H
#define TESTS_UNIT_SUPPORT_FOLDER_H

#include <stddef.h>

#define FOLDER_PATH 300

/* 0 on success, as cmocka's set-up functions want it. */
int folder_make(char path[FOLDER_PATH]);
int folder_remove(const char *path);

void folder_put(const char *folder, const char *name, const char *text);
void folder_add(const char *folder, const char *name, const char *text);
/* Overwrites bytes in place; may make the file longer. */
void folder_patch(const char *folder, const char *name, long offset, const char *text);
void folder_cut(const char *folder, const char *name, long size);
void folder_rename(const char *folder, const char *from, const char *to);
void folder_link(const char *folder, const char *from, const char *to);
void folder_remove_file(const char *folder, const char *name);

#endif
