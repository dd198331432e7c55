/* SPDX-License-Identifier: Apache-2.0 */
/* Deployment claims: the table by which a connector decides whose a target is (cursor.h). */
#include <stddef.h>
#include <string.h>
#include <weir/cursor.h>

#include "base/base.h"

static bool is_own(const weir_namespace *ns, const uint8_t *deployment) {
  return memcmp(ns->deployment, deployment, WEIR_UUID_SIZE) == 0;
}

/* A namespace of an older host has no such field. */
static bool may_replace(const weir_namespace *ns) {
  return ns->struct_size >= offsetof(weir_namespace, may_replace) + sizeof(int32_t) &&
         ns->may_replace;
}

static weir_status refuse_replaced(const weir_namespace *ns, const char *owner,
                                   weir_error *err) {
  char own[WEIR_UUID_TEXT];
  weir_uuid_format(ns->deployment, own);
  return weir_error_set(
      err, WEIR_E_CONFLICT, 0,
      "this is deployment %s, and deployment %s has replaced it at "
      "the target (`weir run --new-deployment`), which delivers everything again. This "
      "one "
      "publishes nothing more; what it had decided and not published stays in its state "
      "folder. Stop it, and run with the state folder of deployment %s",
      own, owner, owner);
}

static weir_status refuse_other(const weir_namespace *ns, const char *owner,
                                weir_error *err) {
  static const uint8_t none[WEIR_UUID_SIZE];
  char own[WEIR_UUID_TEXT];
  weir_uuid_format(ns->deployment, own);
  if (is_own(ns, none))
    return weir_error_set(err, WEIR_E_CONFLICT, 0,
                          "the target belongs to deployment %s, and there is no state "
                          "folder: bring that of this deployment back, have one made "
                          "of what the target says (`weir adopt`), or deliver "
                          "everything again with `weir run --new-deployment`",
                          owner);
  return weir_error_set(
      err, WEIR_E_CONFLICT, 0,
      "the target belongs to deployment %s, but this state folder "
      "is that of deployment %s: the folder was lost or changed, or two instances with "
      "folders of their own run one pipeline. Bring the state folder of deployment %s "
      "back, have it made anew of what the target says (`weir adopt`), or deliver "
      "everything "
      "again with `weir run --new-deployment`",
      owner, own, owner);
}

static bool was_replaced(const weir_namespace *ns, const uint8_t *deployments, size_t n) {
  for (size_t i = 0; i + 1 < n; i++)
    if (is_own(ns, deployments + i * WEIR_UUID_SIZE)) return true;
  return false;
}

static weir_status refuse(const weir_namespace *ns, const uint8_t *deployments, size_t n,
                          weir_error *err) {
  char owner[WEIR_UUID_TEXT];
  weir_uuid_format(deployments + (n - 1) * WEIR_UUID_SIZE, owner);
  return was_replaced(ns, deployments, n) ? refuse_replaced(ns, owner, err)
                                          : refuse_other(ns, owner, err);
}

weir_status weir_claim_start(const weir_namespace *ns, const uint8_t *deployments,
                             size_t n, int32_t *append, weir_error *err) {
  if (n && is_own(ns, deployments + (n - 1) * WEIR_UUID_SIZE)) {
    *append = 0;
    return WEIR_OK;
  }
  if (n && (!may_replace(ns) || was_replaced(ns, deployments, n)))
    return refuse(ns, deployments, n, err);
  *append = 1;
  return WEIR_OK;
}

weir_status weir_claim_check(const weir_namespace *ns, const uint8_t *deployments,
                             size_t n, weir_error *err) {
  if (!n) {
    return weir_error_set(
        err, WEIR_E_CONFLICT, 0,
        "the target no longer says which "
        "deployment it belongs to: its records were removed. Bring them "
        "back, or deliver everything again with `weir run "
        "--new-deployment`");
  }
  if (is_own(ns, deployments + (n - 1) * WEIR_UUID_SIZE)) return WEIR_OK;
  return refuse(ns, deployments, n, err);
}
