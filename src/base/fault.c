/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#if defined(WEIR_FAULTS)
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum fault_action { FAULT_KILL, FAULT_STOP, FAULT_FAIL, FAULT_SLEEP };

struct fault_rule {
  char name[64];
  enum fault_action action;
  int64_t sleep_ns;
  uint64_t from, to; /* hits at which it acts, counted from 1 */
  atomic_uint_fast64_t hits;
};

enum { FAULT_RULES_MAX = 64 };
static struct fault_rule fault_rules[FAULT_RULES_MAX];
static size_t fault_rule_count;
static int fault_log_fd = -1;
static pthread_once_t fault_once = PTHREAD_ONCE_INIT;

static void fault_die(const char *rule) {
  fprintf(
      stderr,
      "WEIR_FAULTS: cannot read '%s'; expected NAME=kill|stop|fail|sleep:TIME[@N[+]]\n",
      rule);
  abort();
}

/* NAME=ACTION[@N[+]], see <weir/fault.h>. */
static void fault_parse(char *text) {
  char *action = strchr(text, '=');
  if (!action || fault_rule_count == FAULT_RULES_MAX) fault_die(text);
  struct fault_rule *rule = &fault_rules[fault_rule_count];
  size_t length = (size_t)(action - text);
  if (length == 0 || length >= sizeof(rule->name)) fault_die(text);
  memcpy(rule->name, text, length);
  rule->from = 1;
  rule->to = UINT64_MAX;
  action++;
  char *at = strchr(action, '@');
  if (at) {
    char *end = NULL;
    rule->from = strtoull(at + 1, &end, 10);
    rule->to = *end == '+' ? UINT64_MAX : rule->from;
    if (end == at + 1 || rule->from == 0 || (*end && strcmp(end, "+") != 0))
      fault_die(text);
    *at = 0;
  }
  if (strcmp(action, "kill") == 0) {
    rule->action = FAULT_KILL;
  } else if (strcmp(action, "stop") == 0) {
    rule->action = FAULT_STOP;
  } else if (strcmp(action, "fail") == 0) {
    rule->action = FAULT_FAIL;
  } else if (base_starts_with(action, "sleep:") &&
             !base_parse_duration(action + 6, &rule->sleep_ns, NULL)) {
    rule->action = FAULT_SLEEP;
  } else {
    fault_die(text);
  }
  fault_rule_count++;
}

static void fault_read_environment(void) {
  const char *rules = getenv("WEIR_FAULTS");
  const char *log = getenv("WEIR_FAULTS_LOG");
  if (log && *log)
    fault_log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (!rules || !*rules) return;
  char *copy = strdup(rules), *rest = NULL;
  if (!copy) abort();
  for (char *rule = strtok_r(copy, ",", &rest); rule; rule = strtok_r(NULL, ",", &rest)) {
    fault_parse(rule);
  }
  free(copy);
}

int weir_fault_hit(const char *name) {
  int fail = 0;
  pthread_once(&fault_once, fault_read_environment);
  if (fault_log_fd >= 0) {
    char line[80];
    int n = snprintf(line, sizeof(line), "%s\n", name);
    /* One write with O_APPEND: lines of several processes and threads do not mix. */
    if (write(fault_log_fd, line, (size_t)n) < 0) abort();
  }
  for (size_t i = 0; i < fault_rule_count; i++) {
    struct fault_rule *rule = &fault_rules[i];
    if (strcmp(rule->name, name) != 0 && strcmp(rule->name, "*") != 0) continue;
    uint64_t hit = atomic_fetch_add(&rule->hits, 1) + 1;
    if (hit < rule->from || hit > rule->to) continue;
    if (rule->action == FAULT_KILL) raise(SIGKILL);
    if (rule->action == FAULT_STOP) raise(SIGSTOP);
    if (rule->action == FAULT_FAIL) fail = 1;
    if (rule->action == FAULT_SLEEP) base_sleep(rule->sleep_ns);
  }
  return fail;
}
#endif
