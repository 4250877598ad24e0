# SPDX-License-Identifier: Apache-2.0
"""Who may do what: oslo.policy with the rules of :mod:`novalite.api.rules` and the policy files.

Handlers ask :meth:`Policy.check` (raises) or :meth:`Policy.allows`. A decision for the same rule,
roles and ownership is remembered for some seconds; then the policy files are looked at again. A
file that is wrong is refused as a whole: at the start by :func:`check_files`, later by keeping the
rules that were in force.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import yaml
from oslo_config import cfg
from oslo_policy import opts, policy

from novalite import context as context_module
from novalite import exception
from novalite.api.rules import full_name, list_rules
from novalite.conf.files import ConfigError

__all__ = ["Policy", "check_files", "list_rules", "register_opts"]

LOG = logging.getLogger(__name__)

MEMORY = 5.0
_MEMORY_SIZE = 5000
_WORDS = frozenset(("and", "or", "not", "@", "!", ""))
Fingerprint = tuple[tuple[str, int, int, int], ...]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register [oslo_policy], so that its values are checked like all others."""
    for group, options in opts.list_opts():
        conf.register_opts(options, group=group)


def check_files(conf: cfg.ConfigOpts) -> list[str]:
    """Read all policy files as a rule of the options; return warnings.

    :raises ConfigError: one line that names the file and what is wrong in it
    """
    _enforcer, warnings = _load(conf)
    return warnings


def _paths(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the policy files in the order in which they are laid over each other."""
    path = conf.find_file(conf.oslo_policy.policy_file)
    if path:
        yield path
    for folder in conf.oslo_policy.policy_dirs:
        found = conf.find_file(folder)
        if found and os.path.isdir(found):
            names = sorted(name for name in os.listdir(found) if not name.startswith("."))
            full = [os.path.join(found, name) for name in names]
            yield from (path for path in full if not os.path.isdir(path))


def _fingerprint(conf: cfg.ConfigOpts) -> Fingerprint:
    """Return what changes when a policy file is changed, made or removed."""
    found = []
    for path in _paths(conf):
        try:
            status = os.stat(path)
        except OSError:
            found.append((path, 0, 0, 0))
        else:
            found.append((path, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)


def _load(conf: cfg.ConfigOpts) -> tuple[Any, list[str]]:
    """Return an enforcer with the rules of all files, which looks at no file any more, and
    warnings.

    :raises ConfigError: a file is wrong
    """
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list_rules())
    known = set(enforcer.registered_rules)
    warnings, named = [], set()
    for path in _paths(conf):
        names = _check_file(path)
        named.update(names)
        warnings += [
            f"policy file {path}: there is no rule {name}"
            for name in names - known
            if name.partition(":")[0] in ("os_compute_api", "compute", "network")
        ]
    try:
        enforcer.load_rules(force_reload=True)
        enforcer.check_rules(raise_on_violation=True)
    except policy.InvalidDefinitionError as error:
        wrong = ", ".join(sorted(error.names)) if hasattr(error, "names") else str(error)
        raise ConfigError(f"policy files: {_one_line(wrong)}") from None
    except Exception as error:
        raise ConfigError(f"policy files cannot be read: {_one_line(str(error))}") from None
    # From here on, files are read when we say so and never by a request that meets a broken one.
    enforcer.use_conf = False
    return enforcer, warnings


def _check_file(path: str) -> set[str]:
    """Return the names of the rules in a file.

    :raises ConfigError: it cannot be read, or a rule in it cannot be understood
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.safe_load(file) or {}
    except OSError as error:
        raise ConfigError(f"policy file {path} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"policy file {path}: {_one_line(str(error))}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"policy file {path}: must be NAME: RULE pairs")
    for name, text in content.items():
        if not isinstance(name, str) or not isinstance(text, (str, list)):
            raise ConfigError(f"policy file {path}: {name}: a rule is a text")
        if isinstance(text, str) and not _is_understood(text):
            raise ConfigError(f"policy file {path}: {name}: cannot be understood: {text[:200]}")
    return set(content)


def _is_understood(text: str) -> bool:
    """Tell whether oslo.policy can parse a rule; it turns what it cannot into "nobody"."""
    for token in text.split():
        word = token.lstrip("(").rstrip(")").lower()
        if word not in _WORDS and ":" not in word:
            return False
    parser = logging.getLogger("oslo_policy._parser")
    former, parser.disabled = parser.disabled, True
    try:
        whole = str(policy.RuleDefault("any", text).check)
    finally:
        parser.disabled = former
    return whole != "!" or text.strip(" ()") == "!"


def _one_line(text: str) -> str:
    return " ".join(text.split())


class Policy:
    """One process's enforcer."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Any = time.monotonic):
        """Read the policy files.

        :raises ConfigError: one of them is wrong
        """
        register_opts(conf)
        self._conf = conf
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[tuple[Any, ...], bool] = {}
        self._fresh_until = 0.0
        self._files = _fingerprint(conf)
        self._enforcer, _warnings = _load(conf)

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
        return self._decide(
            context,
            full_name(rule),
            context.project_id if project_id is None else project_id,
            context.user_id if user_id is None else user_id,
            bool(context.is_admin),
        )

    def is_admin(self, context: context_module.RequestContext) -> bool:
        """Tell whether the rule context_is_admin makes an administrator of the caller."""
        return self._decide(context, "context_is_admin", context.project_id, context.user_id, False)

    def _decide(
        self,
        context: context_module.RequestContext,
        name: str,
        project: str | None,
        user: str | None,
        is_admin: bool,
    ) -> bool:
        key = (
            name,
            context.project_id,
            context.user_id,
            tuple(context.roles),
            is_admin,
            context.system_scope,
            context.domain_id,
            project,
            user,
        )
        now = self._clock()
        if now >= self._fresh_until or len(self._known) > _MEMORY_SIZE:
            self._refresh(now)
        known = self._known
        if key not in known:
            # What is missing must equal nothing: oslo.policy compares texts, and None has one.
            values = dict(context.to_policy_values())
            credentials = {field: value for field, value in values.items() if value is not None}
            credentials["is_admin"] = is_admin
            target = {"project_id": project or "", "user_id": user or ""}
            known[key] = bool(self._enforcer.authorize(name, target, credentials))
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
            raise exception.PolicyNotAuthorized(action=full_name(rule))

    def reload(self) -> None:
        """Read the policy files again (SIGHUP); if one is wrong, the former rules stay."""
        with self._lock:
            self._take_over(_fingerprint(self._conf))
            self._forget(self._clock())

    def _refresh(self, now: float) -> None:
        with self._lock:
            if now < self._fresh_until and len(self._known) <= _MEMORY_SIZE:
                return
            files = _fingerprint(self._conf)
            if files != self._files:
                self._take_over(files)
            self._forget(now)

    def _take_over(self, files: Fingerprint) -> None:
        self._files = files
        try:
            self._enforcer, warnings = _load(self._conf)
        except ConfigError as error:
            LOG.error("The former policy stays in force: %s", error)
            return
        for warning in warnings:
            LOG.warning("%s", warning)
        LOG.info("The policy files have been read again")

    def _forget(self, now: float) -> None:
        self._known = {}
        self._fresh_until = now + MEMORY
