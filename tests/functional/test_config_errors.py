# SPDX-License-Identifier: Apache-2.0
"""Options that are wrong: the real programs end with one line before they touch anything."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from novalite.devcloud.broker import Broker
from novalite.devcloud.configuration import Sections, merge, render
from novalite.devcloud.services import environment_of_services, find_program

# Neither of these may ever be printed.
SECRETS = ("ge-heim", "p@ss/w:rd#+%=")
PLAIN, SPECIAL = SECRETS
UNREADABLE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
URL_TEXT = "cannot be parsed; percent-encode special characters"


@dataclass(slots=True)
class Place:
    """A directory with option files, and a port that notices who knocks."""

    directory: Path
    listener: socket.socket

    @property
    def port(self) -> int:
        """The port of the broker that is none."""
        return int(self.listener.getsockname()[1])

    def write(self, sections: Sections, name: str = "novalite.conf") -> Path:
        """Write a file of options; bus and database have passwords in their URLs."""
        usual: Sections = {
            "DEFAULT": {
                "state_path": self.directory / "state",
                "transport_url": f"rabbit://nova:{PLAIN}@127.0.0.1:{self.port}/v",
            },
            "database": {"connection": f"sqlite:///{self.directory}/novalite.db"},
            "service_user": {"password": PLAIN},
        }
        path = self.directory / name
        path.write_text(render(merge(usual, sections)))
        return path

    def assert_untouched(self) -> None:
        """Check that nothing was connected and nothing was made."""
        with pytest.raises(BlockingIOError):
            self.listener.accept()
        assert [path.name for path in self.directory.iterdir() if path.suffix != ".conf"] == []


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield Place(tmp_path, listener)


def run(program: str, *words: str | Path, before: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Run a program to its end; return its code and what it printed."""
    command = [*before, find_program(program), *map(str, words)]
    environment = environment_of_services({})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    for secret in SECRETS:
        assert secret not in done.stdout + done.stderr
    return done.returncode, done.stdout, done.stderr


def one_line(program: str, *words: str | Path, before: tuple[str, ...] = ()) -> str:
    """Run a program that must refuse to start; return its one line without its name."""
    code, out, err = run(program, *words, before=before)
    assert (code, out) == (1, ""), err
    assert err.startswith(f"{program}: ") and err.endswith("\n") and err.count("\n") == 1
    assert "Traceback" not in err
    return err.removeprefix(f"{program}: ").rstrip("\n")


@pytest.mark.parametrize(
    ("program", "section", "option", "value", "allowed"),
    [
        ("conductor", "DEFAULT", "report_interval", "ten", "a whole number, 1 or more"),
        ("compute", "libvirt", "virt_type", "kvmm", "one of kvm, "),
        ("compute", "DEFAULT", "cpu_allocation_ratio", "-1", "a number such as 1.5, 0.0 or more"),
        ("compute", "DEFAULT", "ram_allocation_ratio", "1,5", "a number such as 1.5, 0.0 or more"),
        ("scheduler", "scheduler", "max_attempts", "0", "a whole number, 1 or more"),
        ("conductor", "scheduler", "max_attempts", "-1", "a whole number, 1 or more"),
        ("api", "api", "auth_strategy", "kerberos", "one of keystone, noauth2"),
        ("neighbors", "neighbors", "identity_port", "http", "a whole number from 0 to 65535"),
    ],
)
def test_v36_a_wrong_value(
    place: Place, program: str, section: str, option: str, value: str, allowed: str
) -> None:
    path = place.write({section: {option: value}})
    line = one_line(f"novalite-{program}", "--config-file", path)
    assert line.startswith(f"{path}: [{section}] {option} = {value}: not valid; allowed: {allowed}")
    place.assert_untouched()


def test_v36_the_file_of_the_wrong_value_is_named(place: Place) -> None:
    first = place.write({})
    second = place.directory / "compute.conf"
    second.write_text("[fake_libvirt]\nspawn_delay = soon\n")
    line = one_line("novalite-compute", "--config-file", first, "--config-file", second)
    assert line.startswith(f"{second}: [fake_libvirt] spawn_delay = soon: not valid")
    place.assert_untouched()


def test_v36_a_line_that_is_no_option(place: Place) -> None:
    path = place.write({})
    path.write_text(f"{path.read_text()}\npassword {PLAIN}\n")
    number = len(path.read_text().splitlines())
    line = one_line("novalite-api", "--config-file", path)
    assert line.startswith(f"configuration file {path}, line {number}: no '=' found")
    place.assert_untouched()


@pytest.mark.parametrize("program", ["compute", "neighbors"])
def test_v36_a_missing_file(place: Place, program: str) -> None:
    path = place.directory / "none.conf"
    line = one_line(f"novalite-{program}", "--config-file", path)
    assert line == f"configuration file {path} does not exist"
    place.assert_untouched()


@pytest.mark.skipif(
    os.getuid() == 0 and not shutil.which("setpriv"), reason="root can read every file"
)
def test_v36_an_unreadable_file(place: Place) -> None:
    path = place.write({})
    path.chmod(0)
    before = UNREADABLE if os.getuid() == 0 else ()
    line = one_line("novalite-api", "--config-file", path, before=before)
    assert line == f"configuration file {path} cannot be read: permission denied"
    place.assert_untouched()


def test_v36_two_options_that_contradict(place: Place) -> None:
    path = place.write({"DEFAULT": {"report_interval": 60, "service_down_time": 60}})
    line = one_line("novalite-compute", "--config-file", path)
    assert line == (
        f"{path}: [DEFAULT] report_interval = 60 must be less than "
        f"{path}: [DEFAULT] service_down_time = 60"
    )
    place.assert_untouched()


@pytest.mark.parametrize("program", ["api", "conductor", "scheduler", "compute", "neighbors"])
def test_v22_reports_rarer_than_the_limit(place: Place, program: str) -> None:
    path = place.write({"DEFAULT": {"report_interval": 90, "service_down_time": 60}})
    line = one_line(f"novalite-{program}", "--config-file", path)
    assert line == (
        f"{path}: [DEFAULT] report_interval = 90 must be less than "
        f"{path}: [DEFAULT] service_down_time = 60"
    )
    place.assert_untouched()


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("option", ["report_interval", "service_down_time"])
def test_v22_no_time_at_all(place: Place, option: str, value: int) -> None:
    path = place.write({"DEFAULT": {option: value}})
    line = one_line("novalite-compute", "--config-file", path)
    assert line == (
        f"{path}: [DEFAULT] {option} = {value}: not valid; allowed: a whole number, 1 or more"
    )
    place.assert_untouched()


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ("RamFilter,num_instances_filter", "num_instances_filter"),
        ("RamFilter,RetryFilterr,x", "RetryFilterr, x"),
        ("ramfilter", "ramfilter"),
    ],
)
def test_v37_unknown_filters(place: Place, value: str, unknown: str) -> None:
    path = place.write({"filter_scheduler": {"enabled_filters": value}})
    line = one_line("novalite-scheduler", "--config-file", path)
    assert line.startswith(
        f"{path}: [filter_scheduler] enabled_filters: unknown filters: {unknown}; "
        "valid: ComputeFilter, RetryFilter, "
    )
    place.assert_untouched()


@pytest.mark.parametrize(
    ("program", "url"),
    [
        ("novalite-compute", f"rabbit://nova:{SPECIAL}@127.0.0.1:5672/v"),
        ("novalite-api", f"rabbit://{SPECIAL}:x@127.0.0.1:5672/v"),
        ("novalite-scheduler", f"rabbit://nova:x@127.0.0.1:5672/{SPECIAL}"),
    ],
)
def test_v38_special_characters_in_transport_url(place: Place, program: str, url: str) -> None:
    path = place.write({"DEFAULT": {"transport_url": url}})
    line = one_line(program, "--config-file", path)
    assert line == f"{path}: [DEFAULT] transport_url {URL_TEXT}"
    place.assert_untouched()


@pytest.mark.parametrize("program", ["novalite-conductor", "novalite-manage"])
def test_v38_special_characters_in_the_database_url(place: Place, program: str) -> None:
    url = f"mysql+pymysql://nova:{SPECIAL}@127.0.0.1:{place.port}/novalite"
    path = place.write({"database": {"connection": url}})
    command = ("db", "version") if program == "novalite-manage" else ()
    line = one_line(program, "--config-file", path, *command)
    assert line == f"{path}: [database] connection {URL_TEXT}"
    place.assert_untouched()


@pytest.mark.parametrize("program", ["api", "compute", "scheduler"])
def test_v39_a_wrong_password_at_the_start(
    place: Place, broker: Broker | None, template: Path | None, program: str
) -> None:
    if broker is None or template is None:
        pytest.skip("needs the private broker and a SQLite file")
    if not broker.alive():
        broker.start()
    shutil.copy(template, place.directory / "novalite.db")
    url = f"rabbit://novalite:{PLAIN}@127.0.0.1:{broker.port}/novalite"
    log = place.directory / "service.log"
    path = place.write({"DEFAULT": {"transport_url": url, "debug": True, "log_file": log}})
    line = one_line(f"novalite-{program}", "--config-file", path)
    assert line.startswith(
        f"{path}: [DEFAULT] transport_url: access refused for user novalite at "
        f"127.0.0.1:{broker.port}: "
    )
    text = log.read_text()
    assert line in text
    assert "unreachable" not in text and "Traceback" not in text
    assert not [secret for secret in SECRETS if secret in text]
