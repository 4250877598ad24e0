# SPDX-License-Identifier: Apache-2.0
"""Who may do what: oslo.policy with Nova's rule names and defaults for the routes that exist.

Handlers ask :meth:`Policy.check` (raises) or :meth:`Policy.allows`. A decision for the same rule,
roles and ownership is remembered for some seconds, because oslo.policy looks at the policy files
at every question; a changed file is in force after that time.
"""

import threading
import time
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from novalite import context as context_module
from novalite import exception

MEMORY = 5.0
_MEMORY_SIZE = 5000

ADMIN = "rule:context_is_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
ANYBODY = "@"

BASE = (
    ("context_is_admin", "role:admin"),
    ("admin_or_owner", "is_admin:True or project_id:%(project_id)s"),
    ("admin_api", "is_admin:True"),
    ("project_member_api", "role:member and project_id:%(project_id)s"),
    ("project_reader_api", "role:reader and project_id:%(project_id)s"),
    ("project_member_or_admin", "rule:project_member_api or rule:context_is_admin"),
    ("project_reader_or_admin", "rule:project_reader_api or rule:context_is_admin"),
)

# Without the common prefix "os_compute_api:".
RULES = (
    ("servers:index", READER),
    ("servers:detail", READER),
    ("servers:index:get_all_tenants", ADMIN),
    ("servers:detail:get_all_tenants", ADMIN),
    ("servers:allow_all_filters", ADMIN),
    ("servers:show", READER),
    ("servers:show:host_status", ADMIN),
    ("servers:create", MEMBER),
    ("servers:create:forced_host", ADMIN),
    ("servers:create:attach_network", MEMBER),
    ("servers:update", MEMBER),
    ("servers:delete", MEMBER),
    ("os-extended-server-attributes", ADMIN),
    ("os-deferred-delete:force", MEMBER),
    ("os-console-output", MEMBER),
    ("ips:index", READER),
    ("ips:show", READER),
    ("os-instance-actions:list", READER),
    ("os-instance-actions:show", READER),
    ("os-instance-actions:events", ADMIN),
    ("os-flavor-manage:create", ADMIN),
    ("os-flavor-manage:delete", ADMIN),
    ("os-flavor-access", ADMIN),
    ("os-flavor-access:add_tenant_access", ADMIN),
    ("os-flavor-access:remove_tenant_access", ADMIN),
    ("os-flavor-extra-specs:index", READER),
    ("os-flavor-extra-specs:show", READER),
    ("os-flavor-extra-specs:create", ADMIN),
    ("os-flavor-extra-specs:update", ADMIN),
    ("os-flavor-extra-specs:delete", ADMIN),
    ("os-services:list", ADMIN),
    ("os-services:update", ADMIN),
    ("os-services:delete", ADMIN),
    ("os-hypervisors:list", ADMIN),
    ("os-hypervisors:list-detail", ADMIN),
    ("os-hypervisors:statistics", ADMIN),
    ("os-hypervisors:show", ADMIN),
    ("os-hypervisors:uptime", ADMIN),
    ("os-hypervisors:search", ADMIN),
    ("os-hypervisors:servers", ADMIN),
    ("os-availability-zone:list", ANYBODY),
    ("os-availability-zone:detail", ADMIN),
)
PREFIX = "os_compute_api:"


def list_rules() -> list[Any]:
    """Return all rules with their defaults."""
    rules = [policy.RuleDefault(name, check) for name, check in BASE]
    rules += [policy.RuleDefault(PREFIX + name, check) for name, check in RULES]
    return rules


class Policy:
    """One process's enforcer."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Any = time.monotonic):
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.register_defaults(list_rules())
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[tuple[Any, ...], bool] = {}
        self._fresh_until = 0.0

    def allows(
        self,
        context: context_module.RequestContext,
        rule: str,
        project_id: str | None = None,
        user_id: str | None = None,
    ) -> bool:
        """Tell whether the context may do *rule* (without prefix) to what the project owns.

        Without *project_id* the target is the caller's own project.
        """
        project = context.project_id if project_id is None else project_id
        user = context.user_id if user_id is None else user_id
        key = (
            rule,
            context.project_id,
            context.user_id,
            tuple(context.roles),
            context.is_admin,
            context.system_scope,
            project,
            user,
        )
        now = self._clock()
        if now >= self._fresh_until or len(self._known) > _MEMORY_SIZE:
            with self._lock:
                self._known = {}
                self._fresh_until = now + MEMORY
        known = self._known
        if key not in known:
            target = {"project_id": project, "user_id": user}
            credentials = dict(context.to_policy_values())
            credentials["is_admin"] = context.is_admin
            known[key] = bool(self._enforcer.authorize(PREFIX + rule, target, credentials))
        return known[key]

    def check(
        self,
        context: context_module.RequestContext,
        rule: str,
        project_id: str | None = None,
        user_id: str | None = None,
    ) -> None:
        """Like :meth:`allows`, but raise.

        :raises exception.PolicyNotAuthorized: naming the rule
        """
        if not self.allows(context, rule, project_id, user_id):
            raise exception.PolicyNotAuthorized(action=PREFIX + rule)

    def reload(self) -> None:
        """Read the policy files again (SIGHUP)."""
        self._enforcer.load_rules(force_reload=True)
        self._fresh_until = 0.0
