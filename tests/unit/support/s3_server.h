/* SPDX-License-Identifier: Apache-2.0 */
/* A real S3 server on a free port of 127.0.0.1 (tools/s3), and a proxy before it that loses or replaces answers. */
#ifndef TESTS_UNIT_SUPPORT_S3_SERVER_H
#define TESTS_UNIT_SUPPORT_S3_SERVER_H

/* 0 on success, as cmocka's set-up functions want it. */
int s3_server_start(int *port);
int s3_server_wipe(int port);

typedef enum s3_fault {
  S3_PASS,
  S3_LOSE_REQUEST, /* the server never sees it, and the connection is closed */
  S3_LOSE_ANSWER,  /* the server does it, and the connection is closed */
  S3_ANSWER,       /* `status` is answered, without the server */
  S3_ANSWER_LATE,  /* the server does it, and `status` is answered */
  S3_ANSWER_BODY   /* the server does it, and 200 with an <Error> is answered */
} s3_fault;

typedef struct s3_rule {
  const char *method; /* of the requests that the rule is for */
  s3_fault fault;
  int status;
  int times; /* as often; then requests pass */
} s3_rule;

/* One connection at a time, one request each. *port is the proxy's. */
typedef struct s3_proxy s3_proxy;
s3_proxy *s3_proxy_start(int server, int *port);
void s3_proxy_rule(s3_proxy *proxy, s3_rule rule);
/* Requests that came since the last rule was set. */
int s3_proxy_count(s3_proxy *proxy);
void s3_proxy_stop(s3_proxy *proxy);

#endif
