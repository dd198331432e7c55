/* SPDX-License-Identifier: Apache-2.0 */
/* System calls: which of them touch the world outside, and how to take them away. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conform/conform.h"

#define CALL(name, opens, changes) {SYS_##name, #name, opens, changes, false}
#define BYTES(name) {SYS_##name, #name, true, true, true}

/* Not every architecture has the older ones. */
static const conform_call calls[] = {
    CALL(openat, true, false),
    CALL(openat2, true, true),
    CALL(socket, true, false),
    CALL(socketpair, true, false),
    CALL(connect, true, true),
    CALL(bind, true, true),
    BYTES(sendto),
    BYTES(sendmsg),
    BYTES(sendmmsg),
    CALL(pipe2, true, false),
    CALL(clone, true, false),
    CALL(clone3, true, false),
    CALL(execve, true, true),
    BYTES(write),
    BYTES(writev),
    BYTES(pwrite64),
    BYTES(pwritev),
    BYTES(copy_file_range),
    BYTES(fallocate),
    CALL(ftruncate, true, true),
    CALL(truncate, true, true),
    BYTES(fsync),
    BYTES(fdatasync),
    BYTES(msync),
    CALL(mkdirat, true, true),
    CALL(unlinkat, true, true),
    CALL(linkat, true, true),
    CALL(symlinkat, true, true),
    CALL(renameat2, true, true),
#ifdef SYS_renameat
    CALL(renameat, true, true),
#endif
#ifdef SYS_open
    CALL(open, true, false),
    CALL(creat, true, true),
    CALL(pipe, true, false),
    CALL(mkdir, true, true),
    CALL(rmdir, true, true),
    CALL(unlink, true, true),
    CALL(link, true, true),
    CALL(symlink, true, true),
    CALL(rename, true, true),
    CALL(fork, true, false),
    CALL(vfork, true, false),
#endif
};

const conform_call *conform_find_call(long number, const uint64_t *args) {
  static const conform_call create = {SYS_openat, "openat", true, true, false};
  if (number == SYS_openat && args[2] & O_CREAT) return &create;
#ifdef SYS_open
  static const conform_call old_create = {SYS_open, "open", true, true, false};
  if (number == SYS_open && args[1] & O_CREAT) return &old_create;
#endif
  for (size_t i = 0; i < BASE_COUNT(calls); i++) {
    if (calls[i].number == number) return &calls[i];
  }
  return NULL;
}

/* ---- cutting off ------------------------------------------------------------------------------- */

static const int reads[] = {
    SYS_openat, SYS_read,    SYS_readv,  SYS_pread64, SYS_preadv,   SYS_getdents64,
    SYS_socket, SYS_connect, SYS_sendto, SYS_sendmsg, SYS_recvfrom, SYS_recvmsg,
#ifdef SYS_open
    SYS_open,
#endif
};

static size_t cut(struct sock_filter *to, size_t n, int number) {
  to[n++] =
      (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1);
  to[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO);
  return n;
}

bool conform_cut_off(int what) {
  struct sock_filter filter[2 * (BASE_COUNT(reads) + BASE_COUNT(calls)) + 2];
  size_t n = 0;
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
  for (size_t i = 0; what & CONFORM_CUT_READS && i < BASE_COUNT(reads); i++)
    n = cut(filter, n, reads[i]);
  for (size_t i = 0; what & CONFORM_CUT_WRITES && i < BASE_COUNT(calls); i++) {
    if (calls[i].bytes) n = cut(filter, n, (int)calls[i].number);
  }
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
  return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
         !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                  &program);
}
