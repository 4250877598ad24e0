# SPDX-License-Identifier: Apache-2.0
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from novalite.devcloud import processes
from novalite.devcloud.errors import ProcessError

ENVIRONMENT = {"PATH": os.environ["PATH"]}
# Says a word when it is there, then waits for its end.
PATIENT = "import signal,sys; print('here', flush=True); signal.pause()"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[processes.Process]:
    made = processes.Process("sleeper", tmp_path / "run", tmp_path / "logs" / "sleeper.log")
    yield made
    made.kill()


def start(process: processes.Process, code: str) -> int:
    process.start([sys.executable, "-c", code], ENVIRONMENT)
    assert process.pid is not None
    return process.pid


def wait_for_line(process: processes.Process, text: str) -> None:
    while text not in process.tail():
        assert process.alive()


def test_runs_in_its_own_session_and_ends_on_sigterm(process: processes.Process) -> None:
    pid = start(process, PATIENT)
    assert os.getsid(pid) == pid
    assert process.stop(10.0) is True
    assert not process.alive()
    assert process.identity is None


def test_starting_twice_keeps_the_first(process: processes.Process) -> None:
    pid = start(process, PATIENT)
    assert start(process, PATIENT) == pid


def test_another_object_finds_it_by_its_file(process: processes.Process, tmp_path: Path) -> None:
    pid = start(process, PATIENT)
    other = processes.Process("sleeper", tmp_path / "run", process.log)
    assert other.pid == pid
    assert processes.recorded(tmp_path / "run") == ["sleeper"]
    assert other.stop(10.0) is True
    assert not process.alive()


def test_is_killed_when_it_ignores_sigterm(process: processes.Process) -> None:
    code = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {PATIENT}"
    start(process, code)
    wait_for_line(process, "here")
    assert process.stop(0.1) is False
    assert not process.alive()


def test_takes_what_it_left_behind_along(process: processes.Process) -> None:
    # The child is in another session, so neither session nor group would find it.
    code = (
        "import subprocess,sys,time\n"
        "c = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'],"
        " start_new_session=True)\n"
        "print('child', c.pid, flush=True)\n"
        f"{PATIENT}"
    )
    start(process, code)
    wait_for_line(process, "here")
    child = int(process.tail().split()[1])
    descriptor = os.pidfd_open(child)
    process.kill()
    with pytest.raises(ProcessLookupError):
        # A zombie whose parent is gone may need a moment until init has taken it.
        while True:
            signal.pidfd_send_signal(descriptor, 0)
    os.close(descriptor)


def test_never_hits_a_pid_that_belongs_to_somebody_else(
    process: processes.Process, tmp_path: Path
) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", PATIENT], stdout=subprocess.PIPE)
    assert stranger.stdout is not None and stranger.stdout.readline()
    try:
        start(process, PATIENT)
        file = tmp_path / "run" / "sleeper.json"
        real = file.read_text()
        # As after a reboot or a wrap of the pids: the number is the stranger's now.
        file.write_text(json.dumps({**json.loads(real), "pid": stranger.pid, "mark": "none"}))
        other = processes.Process("sleeper", tmp_path / "run", process.log)
        assert not other.alive()
        assert other.send_signal(signal.SIGKILL) is False
        other.kill()
        assert stranger.poll() is None
        file.write_text(real)
    finally:
        stranger.kill()
        stranger.communicate()


def test_a_process_of_a_former_boot_does_not_run(
    process: processes.Process, tmp_path: Path
) -> None:
    start(process, PATIENT)
    file = tmp_path / "run" / "sleeper.json"
    real = file.read_text()
    file.write_text(json.dumps({**json.loads(real), "boot": "another"}))
    assert processes.Process("sleeper", tmp_path / "run", process.log).pid is None
    file.write_text(real)


def test_a_signal_during_the_start_waits_for_the_pid_file(
    process: processes.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(file: Path, text: str) -> None:
        signal.raise_signal(signal.SIGINT)
        written(file, text)

    written = processes.write_private
    monkeypatch.setattr(processes, "write_private", interrupted)
    # Started from a shell's background, this process would ignore SIGINT.
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            start(process, PATIENT)
        assert process.alive()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, former)


def test_died_names_the_service_and_its_last_lines(process: processes.Process) -> None:
    process.start([sys.executable, "-c", "print('no database'); raise SystemExit(3)"], ENVIRONMENT)
    assert process.wait(10.0)
    text = str(process.died())
    assert "sleeper has ended with exit code 3" in text
    assert "no database" in text


def test_a_missing_program_is_named(process: processes.Process) -> None:
    with pytest.raises(ProcessError, match="sleeper: cannot run /no/such/program"):
        process.start(["/no/such/program"], ENVIRONMENT)


def test_its_files_are_private(process: processes.Process, tmp_path: Path) -> None:
    start(process, PATIENT)
    for file in (tmp_path / "run" / "sleeper.json", process.log):
        assert file.stat().st_mode & 0o777 == 0o600


def test_write_private_replaces_a_file_that_others_could_read(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old")
    file.chmod(0o644)
    processes.write_private(file, "new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_tail_returns_the_last_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    assert processes.tail(file, 3) == []
    file.write_text("".join(f"line {number}\n" for number in range(5000)))
    assert processes.tail(file, 2) == ["line 4998", "line 4999"]
