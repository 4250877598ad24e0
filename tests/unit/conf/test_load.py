# SPDX-License-Identifier: Apache-2.0
"""Every configuration error is one line with file, section, option, value and what is allowed."""

import os
from pathlib import Path

import pytest
from oslo_config import cfg

from novalite import concurrency, log
from novalite.conf import load, messaging, rules

SECRET = "s3cr3t-of-the-broker"


@pytest.fixture(autouse=True)
def no_default_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(concurrency, "DEFAULT_FILE", str(tmp_path / "none.conf"))


def loader(*argv: str) -> load.Loader:
    return load.Loader(
        cfg.ConfigOpts(),
        "novalite-test",
        list(argv),
        [log.register_opts, messaging.register_opts],
        [rules.check_bus, rules.check_database],
    )


def write(tmp_path: Path, text: str, name: str = "novalite.conf") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def refusal(*argv: str) -> str:
    with pytest.raises(load.ConfigError) as caught:
        loader(*argv).load()
    text = str(caught.value)
    assert "\n" not in text
    return text


def refusal_of(tmp_path: Path, section: str, line: str) -> str:
    path = write(tmp_path, f"[{section}]\n{line}\n")
    text = refusal("--config-file", str(path))
    assert text.startswith(f"{path}: [{section}] ")
    return text.removeprefix(f"{path}: [{section}] ")


@pytest.mark.parametrize(
    ("section", "line", "expected"),
    [
        ("DEFAULT", "report_interval = ten", "a whole number, 1 or more"),
        ("DEFAULT", "report_interval = 0", "a whole number, 1 or more"),
        ("DEFAULT", "report_interval = -5", "a whole number, 1 or more"),
        ("DEFAULT", "report_interval =", "a whole number, 1 or more"),
        ("DEFAULT", "cpu_allocation_ratio = -1", "a number such as 1.5, 0.0 or more"),
        ("DEFAULT", "ram_allocation_ratio = 1,5", "a number such as 1.5, 0.0 or more"),
        ("DEFAULT", "ram_allocation_ratio = nan", "a number such as 1.5, 0.0 or more"),
        ("DEFAULT", "disk_allocation_ratio = inf", "a number such as 1.5, 0.0 or more"),
        ("DEFAULT", "initial_cpu_allocation_ratio = x", "a number such as 1.5, 0.0 or more"),
        ("DEFAULT", "scheduler_max_attempts = 0", "a whole number, 1 or more"),
        ("DEFAULT", "concurrency_backend = gevent", "one of auto, eventlet, threading"),
        ("DEFAULT", "my_ip = not an address", "a host name or an IP address"),
        ("DEFAULT", "debug = maybe", "true or false"),
        ("DEFAULT", "rpc_response_timeout = soon", "a whole number"),
        ("scheduler", "max_attempts = 0", "a whole number, 1 or more"),
        ("libvirt", "virt_type = kvmm", "one of kvm, lxc, qemu, parallels"),
        ("fake_libvirt", "fail_spawn = 1.5", "a number such as 1.5 from 0.0 to 1.0"),
        ("neighbors", "identity_port = 70000", "a whole number from 0 to 65535"),
        ("filter_scheduler", "shuffle_best_same_weighed_hosts = 7", "true or false"),
        ("oslo_messaging_rabbit", "rabbit_login_method = X", "one of PLAIN, AMQPLAIN, EXTERNAL"),
    ],
)
def test_v36_wrong_value(tmp_path: Path, section: str, line: str, expected: str) -> None:
    name, _, value = (part.strip() for part in line.partition("="))
    text = refusal_of(tmp_path, section, line)
    assert text.startswith(f"{name} = {value}: not valid; allowed: {expected}")


def test_v36_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "absent.conf"
    text = refusal("--config-file", str(path))
    assert text == f"configuration file {path} does not exist"


def test_v36_missing_directory(tmp_path: Path) -> None:
    text = refusal("--config-dir", str(tmp_path / "absent.d"))
    assert text == f"configuration directory {tmp_path / 'absent.d'} does not exist"


def test_v36_unreadable_file(tmp_path: Path) -> None:
    path = write(tmp_path, "[DEFAULT]\n")
    path.chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o005)
        if folder.name.startswith("pytest-of"):
            break
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may read everything
    try:
        text = refusal("--config-file", str(path))
    finally:
        os.seteuid(user)
    assert text == f"configuration file {path} cannot be read: permission denied"


def test_v36_directory_in_place_of_a_file(tmp_path: Path) -> None:
    text = refusal("--config-file", str(tmp_path))
    assert text == f"configuration file {tmp_path} cannot be read: Is a directory"


def test_v36_shortened_option(tmp_path: Path) -> None:
    text = refusal("--config-fil", str(tmp_path / "absent.conf"))
    assert text == f"configuration file {tmp_path / 'absent.conf'} does not exist"


@pytest.mark.parametrize(
    ("lines", "number", "expected"),
    [
        (["[DEFAULT]", "debug = true", SECRET], 3, "no '=' found"),
        (["debug = true"], 1, "this option stands before the first [SECTION]"),
        (["[DEFAULT"], 1, "Invalid section (must end with ])"),
    ],
)
def test_v36_line_that_is_no_option(
    tmp_path: Path, lines: list[str], number: int, expected: str
) -> None:
    path = write(tmp_path, "\n".join(lines) + "\n")
    text = refusal("--config-file", str(path))
    assert text.startswith(f"configuration file {path}, line {number}: {expected}")
    assert SECRET not in text


def test_v36_not_text(tmp_path: Path) -> None:
    path = tmp_path / "novalite.conf"
    path.write_bytes(b"[DEFAULT]\nhost = \xff\xfe\n")
    text = refusal("--config-file", str(path))
    assert text == f"configuration file {path}, line 2: not text in UTF-8"


def test_a_wrong_value_is_wrong_in_every_file(tmp_path: Path) -> None:
    first = write(tmp_path, "[DEFAULT]\nreport_interval = ten\n", "1.conf")
    second = write(tmp_path, "[DEFAULT]\nreport_interval = 5\n", "2.conf")
    assert refusal("--config-file", str(first), "--config-file", str(second)).startswith(str(first))


def test_wrong_value_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_DEFAULT__REPORT_INTERVAL", "ten")
    assert refusal().startswith(
        "environment variable OS_DEFAULT__REPORT_INTERVAL: [DEFAULT] report_interval = ten: "
        "not valid; allowed: a whole number"
    )


def test_wrong_value_by_reference(tmp_path: Path) -> None:
    text = refusal_of(tmp_path, "DEFAULT", "report_interval = $state_path")
    assert text == "report_interval: not valid; allowed: a whole number, 1 or more"


@pytest.mark.parametrize("value", ["rabbit://u:a$bc@host/", "rabbit://u:${bc}@host/"])
def test_dollar_sign_in_a_password(tmp_path: Path, value: str) -> None:
    text = refusal_of(tmp_path, "DEFAULT", f"transport_url = {value}")
    assert "write $$ for a dollar sign" in text
    assert "bc" not in text


@pytest.mark.parametrize(
    ("option", "lines"),
    [
        ("report_interval", ["report_interval = $report_interval"]),
        ("state_path", ["state_path = ${state_path}/x"]),
        (
            "cpu_allocation_ratio",
            [
                "cpu_allocation_ratio = $ram_allocation_ratio",
                "ram_allocation_ratio = $host",
                "ram_allocation_ratio = $cpu_allocation_ratio",
            ],
        ),
    ],
)
def test_a_reference_that_goes_in_a_circle(tmp_path: Path, option: str, lines: list[str]) -> None:
    text = refusal("--config-file", str(write(tmp_path, "\n".join(["[DEFAULT]", *lines]) + "\n")))
    assert f"[DEFAULT] {option}: its value refers with $ to itself" in text


def test_a_byte_order_mark_is_named(tmp_path: Path) -> None:
    path = tmp_path / "novalite.conf"
    path.write_text("\ufeff[DEFAULT]\nhost = a\n")
    assert "line 1: begins with a byte order mark" in refusal("--config-file", str(path))


def test_a_value_without_an_end_is_cut(tmp_path: Path) -> None:
    assert len(refusal_of(tmp_path, "DEFAULT", "report_interval = " + "9x" * 50_000)) < 500


@pytest.mark.parametrize("option", ["memory_mb", "disk_mb", "cpus"])
def test_what_no_table_can_hold_is_not_taken(tmp_path: Path, option: str) -> None:
    text = refusal_of(tmp_path, "DEFAULT", f"reserved_host_{option} = 99999999999999999999")
    assert "allowed: a whole number from 0 to" in text


@pytest.mark.parametrize(
    "line", ["state_path = /srv/$host", "state_path = /srv/${host}", "state_path = a$$b"]
)
def test_references_that_are_good(tmp_path: Path, line: str) -> None:
    loader("--config-file", str(write(tmp_path, f"[DEFAULT]\n{line}\n"))).load()


@pytest.mark.parametrize(("report", "down"), [(60, 60), (90, 60), (10, 10)])
def test_v22_reports_too_rare(tmp_path: Path, report: int, down: int) -> None:
    path = write(tmp_path, f"[DEFAULT]\nreport_interval={report}\nservice_down_time={down}\n")
    assert refusal("--config-file", str(path)) == (
        f"{path}: [DEFAULT] report_interval = {report} must be less than "
        f"{path}: [DEFAULT] service_down_time = {down}"
    )


@pytest.mark.parametrize(("report", "down", "warned"), [(16, 60, True), (15, 60, False)])
def test_v22_reports_rather_rare(tmp_path: Path, report: int, down: int, warned: bool) -> None:
    path = write(tmp_path, f"[DEFAULT]\nreport_interval={report}\nservice_down_time={down}\n")
    warnings = loader("--config-file", str(path)).load()
    assert bool(warnings) == warned


def test_a_lease_that_ends_before_it_is_renewed(tmp_path: Path) -> None:
    text = refusal_of(tmp_path, "conductor", "task_renew_interval = 15")
    assert text == "task_renew_interval = 15.0 must be less than [conductor] task_lease = 15.0"


def test_pool_of_connections_smaller_than_the_threads(tmp_path: Path) -> None:
    text = refusal_of(tmp_path, "oslo_messaging_rabbit", "rpc_conn_pool_size = 7")
    assert text == (
        "rpc_conn_pool_size = 7 must not be less than [DEFAULT] executor_thread_pool_size = 8"
    )


@pytest.mark.parametrize(
    ("section", "name", "scheme"),
    [
        ("DEFAULT", "transport_url", "rabbit"),
        ("database", "connection", "mysql+pymysql"),
        ("database", "connection", "postgresql+psycopg"),
    ],
)
def test_v38_special_characters(tmp_path: Path, section: str, name: str, scheme: str) -> None:
    text = refusal_of(tmp_path, section, f"{name} = {scheme}://user:p@ss/w:rd#+%=@host:5672/v")
    assert text == f"{name} cannot be parsed; percent-encode special characters"


def test_v38_other_schemes(tmp_path: Path) -> None:
    text = refusal_of(tmp_path, "DEFAULT", f"transport_url = kafka://u:{SECRET}@host/v")
    assert text == "transport_url: kafka:// is not supported; allowed: rabbit://"


def test_no_secret_in_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_value: str) -> str:
        raise ValueError(_value)

    program = loader("--config-file", str(write(tmp_path, f"[x]\npassword = {SECRET}\n")))
    option = cfg.Opt("password", type=never, secret=True)
    program._register = (lambda conf: conf.register_opt(option, group="x"), *program._register)
    with pytest.raises(load.ConfigError) as caught:
        program.load()
    assert SECRET not in str(caught.value)
    assert "[x] password = ***: not valid" in str(caught.value)


def test_slip_of_the_pen(tmp_path: Path) -> None:
    text = "[DEFAULT]\nreport_intervall = 5\nosapi_max_limit_of_nova = 7\n[cinder]\nos_region = x\n"
    path = write(tmp_path, text)
    assert loader("--config-file", str(path)).load() == [
        f"{path}: [DEFAULT] report_intervall is not an option; did you mean report_interval?"
    ]


def test_directory_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    write(folder, "[DEFAULT]\nhost = one\n", "1.conf")
    write(folder, "[DEFAULT]\nhost = two\n", "2.conf")
    program = loader("--config-dir", str(folder))
    program.load()
    assert program._conf.host == "two"


def test_default_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "[DEFAULT]\nhost = from-default\n", "default.conf")
    monkeypatch.setattr(concurrency, "DEFAULT_FILE", str(path))
    program = loader()
    program.load()
    assert program._conf.host == "from-default"


def test_reread_takes_over(tmp_path: Path) -> None:
    path = write(tmp_path, "[DEFAULT]\nreport_interval = 5\n")
    program = loader("--config-file", str(path))
    program.load()
    write(tmp_path, "[DEFAULT]\nreport_interval = 6\n")
    reading = program.reread()
    assert reading.warnings == []
    assert program._conf.report_interval == 5
    reading.apply()
    assert program._conf.report_interval == 6
    assert [change.text() for change in reading.taken] == ["DEFAULT.report_interval: 5 -> 6"]
    # Nothing has changed since.
    again = program.reread()
    assert (again.taken, again.waiting) == ([], [])
    write(tmp_path, "")
    program.reread().apply()
    assert program._conf.report_interval == 10


def test_reread_can_be_undone(tmp_path: Path) -> None:
    path = write(tmp_path, "[DEFAULT]\nreport_interval = 5\n")
    program = loader("--config-file", str(path))
    program.load()
    former = list(program._conf.filter_scheduler.enabled_filters)
    write(tmp_path, "[DEFAULT]\nreport_interval = 6\n[filter_scheduler]\nenabled_filters =\n")
    reading = program.reread()
    reading.apply()
    assert program._conf.filter_scheduler.enabled_filters == []
    reading.undo()
    assert program._conf.report_interval == 5
    assert program._conf.filter_scheduler.enabled_filters == former != []


def test_reread_tells_what_needs_a_restart(tmp_path: Path) -> None:
    path = write(tmp_path, f"[DEFAULT]\nhost = one\n[service_user]\npassword = {SECRET}\n")
    program = loader("--config-file", str(path))
    program.load()
    write(tmp_path, f"[DEFAULT]\nhost = two\n[service_user]\npassword = {SECRET}2\n")
    reading = program.reread()
    reading.apply()
    assert program._conf.host == "one"
    assert program._conf.service_user.password == SECRET
    assert reading.taken == []
    assert [change.text() for change in reading.waiting] == [
        "DEFAULT.host: needs a restart; one stays in force",
        "service_user.password: needs a restart; *** stays in force",
    ]


def test_reread_knows_the_options_that_a_library_registered_later(tmp_path: Path) -> None:
    path = write(tmp_path, "[keystone_authtoken]\nmemcached = one\n")
    program = loader("--config-file", str(path))
    program.load()
    program._conf.register_opt(cfg.StrOpt("memcached"), group="keystone_authtoken")
    program._conf.register_opt(cfg.IntOpt("seconds", default=1), group="keystone_authtoken")
    program._conf.set_default("seconds", 2, group="keystone_authtoken")
    write(tmp_path, "[keystone_authtoken]\nmemcached = two\n")
    assert [change.text() for change in program.reread().waiting] == [
        "keystone_authtoken.memcached: needs a restart; one stays in force"
    ]


def test_a_dollar_sign_in_a_changed_value(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    program = loader("--config-file", str(path))
    program.load()
    write(tmp_path, "[DEFAULT]\ndefault_schedule_zone = a$$host\n")
    program.reread().apply()
    assert program._conf.default_schedule_zone == "a$host"
    again = program.reread()
    assert again.taken == []


def test_reread_keeps_all_former_values_if_one_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path, "[DEFAULT]\nreport_interval = 5\nhost = one\n")
    program = loader("--config-file", str(path))
    program.load()
    write(tmp_path, "[DEFAULT]\nreport_interval = 0\nhost = two\n")
    with pytest.raises(load.ConfigError, match="report_interval = 0"):
        program.reread()
    assert (program._conf.report_interval, program._conf.host) == (5, "one")


def test_defaults_are_valid() -> None:
    assert loader().load() == []
