# SPDX-License-Identifier: Apache-2.0
"""Policy files: laid over the defaults, read again, refused as a whole; who is an administrator."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

import novalite.api
from novalite import context as context_module
from novalite import exception
from novalite.api import policy, rules
from novalite.conf.files import ConfigError
from tests.unit.api import access_table
from tests.unit.api.cloud import Cloud

ROOT = Path(__file__).parents[3]


def who(*roles: str, **values: Any) -> context_module.RequestContext:
    given = {"user_id": "u", "project_id": "p", **values}
    return context_module.RequestContext(roles=list(roles), is_admin=False, **given)


@pytest.fixture
def file(conf: cfg.ConfigOpts, tmp_path: Path) -> Path:
    """The policy file that the options name; not there yet."""
    policy.register_opts(conf)
    path = tmp_path / "policy.yaml"
    conf.set_override("policy_file", str(path), group="oslo_policy")
    conf.set_override("policy_dirs", [str(tmp_path / "policy.d")], group="oslo_policy")
    return path


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def pass_by(self) -> None:
        """Let the memory of decisions end."""
        self.now += policy.MEMORY


def test_a_file_overrides_a_default(conf: cfg.ConfigOpts, file: Path) -> None:
    assert not policy.Policy(conf).allows(who("member"), "os-services:list")
    file.write_text('"os_compute_api:os-services:list": "role:member"\n')
    found = policy.Policy(conf)
    assert found.allows(who("member"), "os-services:list")
    with pytest.raises(exception.PolicyNotAuthorized) as caught:
        found.check(who("member"), "os-services:update")
    assert caught.value.message() == (
        "Policy doesn't allow os_compute_api:os-services:update to be performed."
    )


def test_a_directory_lies_over_the_file(conf: cfg.ConfigOpts, file: Path) -> None:
    folder = file.parent / "policy.d"
    folder.mkdir()
    (folder / "20.yaml").write_text('"os_compute_api:os-services:list": "role:member"\n')
    (folder / "10.yaml").write_text('"os_compute_api:os-services:list": "!"\n')
    (folder / ".hidden").write_text("[broken")
    # Also without a policy file.
    assert policy.Policy(conf).allows(who("member"), "os-services:list")
    file.write_text('"os_compute_api:os-services:list": "!"\n')
    assert policy.Policy(conf).allows(who("member"), "os-services:list")


def test_changes_are_in_force_after_some_seconds(conf: cfg.ConfigOpts, file: Path) -> None:
    clock = Clock()
    found = policy.Policy(conf, clock=clock)
    member = who("member")

    def allowed_now() -> bool:
        clock.pass_by()
        return found.allows(member, "os-services:list")

    assert not allowed_now()
    file.write_text('"os_compute_api:os-services:list": "@"\n')
    assert not found.allows(member, "os-services:list")
    assert allowed_now()
    file.unlink()
    assert not allowed_now()
    folder = file.parent / "policy.d"
    folder.mkdir()
    (folder / "one.yaml").write_text('"os_compute_api:os-services:list": "@"\n')
    assert allowed_now()
    (folder / "one.yaml").write_text('"os_compute_api:os-services:list": "!"\n')
    assert not allowed_now()
    (folder / "one.yaml").unlink()
    file.write_text('"os_compute_api:os-services:list": "role:member"\n')
    found.reload()
    assert found.allows(member, "os-services:list")


BROKEN = {
    "no yaml": "[",
    "a list": "- one\n- two\n",
    "a number": '"os_compute_api:os-services:list": 3\n',
    "a word": '"os_compute_api:os-services:list": "admin"\n',
    "half a rule": '"os_compute_api:os-services:list": "role:a and"\n',
    "a word inside": '"os_compute_api:os-services:list": "role:a or (admin)"\n',
    "an unknown rule": '"os_compute_api:os-services:list": "rule:nothing"\n',
    "a circle": '"a": "rule:b"\n"b": "rule:a"\n',
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_in_one_line(
    conf: cfg.ConfigOpts, file: Path, text: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        policy.check_files(conf)
    assert "policy file" in str(caught.value) and "\n" not in str(caught.value)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_leaves_the_former_rules(
    conf: cfg.ConfigOpts, file: Path, text: Any, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text('"os_compute_api:os-services:list": "role:member"\n')
    clock = Clock()
    found = policy.Policy(conf, clock=clock)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with caplog.at_level(logging.ERROR, logger="novalite.api.policy"):
        for _round in range(3):
            clock.pass_by()
            assert found.allows(who("member"), "os-services:list")
            assert not found.allows(who("member"), "os-services:update")
        found.reload()
        assert found.allows(who("member"), "os-services:list")
    assert len([r for r in caplog.records if "stays in force" in r.message]) == 2
    file.write_text('"os_compute_api:os-services:list": "!"\n')
    clock.pass_by()
    assert not found.allows(who("member"), "os-services:list")


def test_a_missing_file_is_none(conf: cfg.ConfigOpts, file: Path) -> None:
    assert policy.check_files(conf) == []


def test_an_unknown_name_is_told(conf: cfg.ConfigOpts, file: Path) -> None:
    file.write_text('"os_compute_api:servers:crate": "@"\n"my_rule": "role:x"\n')
    (warning,) = policy.check_files(conf)
    assert "there is no rule os_compute_api:servers:crate" in warning


@pytest.mark.parametrize(
    "text", ["!", "@", "", "(role:a and not role:b) or rule:admin_api", "'a':%(b)s"]
)
def test_good_rules_are_understood(conf: cfg.ConfigOpts, file: Path, text: str) -> None:
    file.write_text(f'"os_compute_api:servers:show": "{text}"\n')
    assert policy.check_files(conf) == []


class TestScope:
    @pytest.mark.parametrize("scope", [{"system_scope": "all"}, {"domain_id": "d"}])
    def test_only_projects(self, conf: cfg.ConfigOpts, scope: dict[str, str]) -> None:
        found = policy.Policy(conf)
        context = who("admin", "member", "reader", project_id=None, **scope)
        for name, _check, _text, *_operations in rules.RULES:
            assert not found.allows(context, name)

    def test_no_project_owns_nothing(self, conf: cfg.ConfigOpts) -> None:
        found = policy.Policy(conf)
        context = who("member", "reader", project_id=None, user_id=None)
        assert not found.allows(context, "servers:show")
        assert not found.allows(context, "servers:show", "None")
        assert not found.allows(context, "os-keypairs:show")
        assert not found.allows(context, "os-keypairs:show", user_id="None")


class TestAdministrator:
    def test_is_who_the_rule_says(self, conf: cfg.ConfigOpts, file: Path) -> None:
        clock = Clock()
        found = policy.Policy(conf, clock=clock)
        assert found.is_admin(who("admin")) and not found.is_admin(who("operator"))
        file.write_text('"context_is_admin": "role:operator"\n')
        clock.pass_by()
        assert not found.is_admin(who("admin")) and found.is_admin(who("operator"))

    def test_the_api_follows_a_changed_file(self, cloud: Cloud, file: Path) -> None:
        """Also where no rule is asked, but is_admin: other projects' servers."""
        server = cloud.boot(user="u:theirs")
        assert cloud.call("GET", f"/servers/{server}").status_code == 200
        file.write_text('"context_is_admin": "role:operator"\n')
        cloud.policy.reload()
        assert cloud.call("GET", f"/servers/{server}").status_code == 404
        assert cloud.call("GET", "/os-services").status_code == 403

    def test_the_bus_carries_the_answer(self) -> None:
        context = who("admin")
        assert not context.is_admin
        assert not context_module.from_wire(context.to_wire()).is_admin
        other = context_module.RequestContext(roles=["operator"], is_admin=True)
        assert context_module.from_wire(other.to_wire()).is_admin


def test_each_rule_is_asked_by_somebody() -> None:
    folder = Path(novalite.api.__file__).parent
    text = "".join(file.read_text() for file in folder.rglob("*.py") if file.name != "rules.py")
    names = [rule[0] for rule in rules.RULES]
    assert len(names) == len(set(names))
    missing = {
        name
        for name in names
        if f'"{name}"' not in text and f'f"{name.partition(":")[0]}:{{' not in text
    }
    assert missing <= access_table.RESERVED


def test_the_sample_is_fresh(tmp_path: Path) -> None:
    made = tmp_path / "policy.yaml.sample"
    program = Path(sys.executable).with_name("oslopolicy-sample-generator")
    command = [program, "--namespace", "novalite", "--output-file", made]
    subprocess.run(command, cwd=ROOT, check=True)
    kept = (ROOT / "etc" / "novalite" / "policy.yaml.sample").read_text()
    assert made.read_text() == kept, "run: tox -e genpolicy"
