/* SPDX-License-Identifier: Apache-2.0 */
#include "support/s3_server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

/* A socket on a free port, listening or closed again. */
static int listen_somewhere(int *port) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 16) ||
      getsockname(fd, (struct sockaddr *)&address, &size)) {
    if (fd >= 0) close(fd);
    return -1;
  }
  *port = ntohs(address.sin_port);
  return fd;
}

static int run_tool(const char *verb, int port) {
  char command[600];
  snprintf(command, sizeof(command), "'%s/s3' %s %d >&2", WEIR_TEST_TOOLS, verb, port);
  return system(command);
}

int s3_server_start(int *port) {
  int fd = listen_somewhere(port);
  if (fd < 0) return -1;
  close(fd);
  return run_tool("start", *port);
}

int s3_server_wipe(int port) {
  return run_tool("wipe", port);
}

/* ---- the proxy ---- */

struct s3_proxy {
  int fd, server;
  pthread_t thread;
  pthread_mutex_t mutex;
  s3_rule rule;
  int count;
};

static bool read_some(int fd, base_buf *buf) {
  if (base_buf_reserve(buf, 65536, NULL)) return false;
  ssize_t n = read(fd, buf->data + buf->size, 65536);
  if (n > 0) buf->size += (size_t)n;
  return n > 0;
}

static bool write_whole(int fd, const void *data, size_t size) {
  for (const char *p = data; size;) {
    ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

/* The head, and as much as its Content-Length says. */
static bool read_request(int fd, base_buf *buf) {
  for (;;) {
    const char *end = buf->size ? memmem(buf->data, buf->size, "\r\n\r\n", 4) : NULL;
    if (end) {
      size_t head = (size_t)(end - (const char *)buf->data) + 4;
      const char *length = memmem(buf->data, head, "Content-Length: ", 16);
      if (buf->size >= head + (length ? strtoul(length + 16, NULL, 10) : 0)) return true;
    }
    if (!read_some(fd, buf)) return false;
  }
}

/* The server closes behind its answer. */
static void forward(int port, const base_buf *request, base_buf *answer) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
      write_whole(fd, request->data, request->size)) {
    while (read_some(fd, answer)) continue;
  }
  if (fd >= 0) close(fd);
}

static s3_rule next_rule(s3_proxy *proxy, const base_buf *request) {
  s3_rule rule = {.fault = S3_PASS};
  pthread_mutex_lock(&proxy->mutex);
  proxy->count++;
  if (proxy->rule.times > 0 && strncmp((const char *)request->data, proxy->rule.method,
                                       strlen(proxy->rule.method)) == 0) {
    proxy->rule.times--;
    rule = proxy->rule;
  }
  pthread_mutex_unlock(&proxy->mutex);
  return rule;
}

static void serve(s3_proxy *proxy, int fd) {
  static const char error[] = "<Error><Code>InternalError</Code></Error>";
  base_buf request = {0}, answer = {0};
  if (read_request(fd, &request)) {
    s3_rule rule = next_rule(proxy, &request);
    bool seen = rule.fault != S3_LOSE_REQUEST && rule.fault != S3_ANSWER;
    if (seen) forward(proxy->server, &request, &answer);
    if (rule.fault == S3_ANSWER || rule.fault == S3_ANSWER_LATE) {
      base_buf_clear(&answer);
      base_buf_printf(
          &answer, NULL,
          "HTTP/1.1 %d Told\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
          rule.status);
    } else if (rule.fault == S3_ANSWER_BODY) {
      base_buf_clear(&answer);
      base_buf_printf(&answer, NULL,
                      "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: "
                      "close\r\n\r\n%s",
                      sizeof(error) - 1, error);
    }
    bool told = rule.fault != S3_LOSE_REQUEST && rule.fault != S3_LOSE_ANSWER;
    if (told) write_whole(fd, answer.data, answer.size);
  }
  base_buf_done(&request);
  base_buf_done(&answer);
}

static void *run_proxy(void *arg) {
  s3_proxy *proxy = arg;
  for (;;) {
    int fd = accept4(proxy->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return NULL;
    serve(proxy, fd);
    close(fd);
  }
}

s3_proxy *s3_proxy_start(int server, int *port) {
  s3_proxy *proxy = base_calloc(1, sizeof(*proxy), NULL);
  assert_non_null(proxy);
  proxy->server = server;
  proxy->fd = listen_somewhere(port);
  assert_true(proxy->fd >= 0);
  assert_int_equal(base_mutex_init(&proxy->mutex, NULL), WEIR_OK);
  assert_int_equal(base_thread_start(&proxy->thread, "proxy", run_proxy, proxy, NULL),
                   WEIR_OK);
  return proxy;
}

void s3_proxy_rule(s3_proxy *proxy, s3_rule rule) {
  pthread_mutex_lock(&proxy->mutex);
  proxy->rule = rule;
  proxy->count = 0;
  pthread_mutex_unlock(&proxy->mutex);
}

int s3_proxy_count(s3_proxy *proxy) {
  pthread_mutex_lock(&proxy->mutex);
  int count = proxy->count;
  pthread_mutex_unlock(&proxy->mutex);
  return count;
}

void s3_proxy_stop(s3_proxy *proxy) {
  shutdown(proxy->fd, SHUT_RDWR);
  pthread_join(proxy->thread, NULL);
  close(proxy->fd);
  pthread_mutex_destroy(&proxy->mutex);
  free(proxy);
}
