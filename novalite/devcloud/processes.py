# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the command which started them.

Each runs in a session of its own and is remembered in a small file: pid, start time, boot of the
machine. A signal is sent only through a pidfd whose process has that start time, so a pid that the
kernel has given to somebody else is never hit.
"""

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from novalite.devcloud.errors import ProcessError

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# In the environment of each process and, by inheritance, of what it starts.
_MARK = "NOVALITE_PROCESS"


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a process unmistakable: ``start`` is in clock ticks since the machine's boot."""

    pid: int
    start: int
    boot: str
    mark: str
    began: float


class Process:
    """One program, known by its name, with its pid file and its log.

    :param run: directory of the pid files
    :param log: file that takes standard output and standard error
    """

    def __init__(self, name: str, run: Path, log: Path):
        self.name = name
        self.log = log
        self._file = run / f"{name}.json"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> None:
        """Start the program unless it runs.

        :raises ProcessError: the program cannot be executed
        """
        if self.alive():
            return
        for directory in (self._file.parent, self.log.parent):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _signals_deferred():
            self._start(argv, env, cwd)

    def _start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path | None) -> None:
        mark = secrets.token_hex(8)
        # The log is opened for appending: a restart continues it.
        with open(self.log, "ab", opener=_private) as log:
            try:
                self._child = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**env, _MARK: mark},
                    cwd=cwd,
                    start_new_session=True,
                    # Whatever the caller's is: databases and logs hold what others must not read.
                    umask=0o077,
                )
            except OSError as error:
                raise ProcessError(f"{self.name}: cannot run {argv[0]}: {error.strerror}") from None
        stat = _stat(self._child.pid)
        identity = Identity(
            pid=self._child.pid,
            start=stat.start if stat else 0,
            boot=_boot_id(),
            mark=mark,
            began=time.time(),
        )
        write_private(self._file, json.dumps(asdict(identity)))

    @property
    def identity(self) -> Identity | None:
        """What was started last, whether it still runs or not; None after :meth:`forget`."""
        try:
            return Identity(**json.loads(self._file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    @property
    def pid(self) -> int | None:
        """The pid while the process runs."""
        identity = self.identity
        return identity.pid if identity and _runs(identity) else None

    def alive(self) -> bool:
        """Tell whether the process runs."""
        if self._child is not None:
            self._child.poll()  # takes the exit code, so that no zombie is left
        return self.pid is not None

    @property
    def exit_code(self) -> int | None:
        """The exit code, if this object started the process and it has ended."""
        return self._child.poll() if self._child is not None else None

    def send_signal(self, number: int) -> bool:
        """Send a signal; return False if the process does not run any more."""
        identity = self.identity
        if identity is None:
            return False
        descriptor = _open(identity)
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def wait(self, timeout: float) -> bool:
        """Wait until the process has ended; False if it still runs after *timeout* seconds."""
        identity = self.identity
        descriptor = _open(identity) if identity else None
        if descriptor is not None:
            try:
                poller = select.poll()
                poller.register(descriptor, select.POLLIN)
                if not poller.poll(max(0.0, timeout) * 1000):
                    return False
            finally:
                os.close(descriptor)
        if self._child is not None:
            self._child.wait()
        return True

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill the process, wait for its end, and kill what it started and left behind."""
        identity = self.identity
        if identity is None:
            return
        self.send_signal(number)
        self.wait(10.0)
        _kill_marked(identity.mark)

    def terminate(self) -> None:
        """Ask the process to end, without waiting for it."""
        self.send_signal(signal.SIGTERM)

    def join(self, timeout: float) -> bool:
        """Wait for the end, after *timeout* seconds kill, and forget the process.

        :returns: False if it had to be killed
        """
        graceful = self.wait(timeout)
        self.kill()
        self.forget()
        return graceful

    def stop(self, timeout: float) -> bool:
        """End the process with SIGTERM, after *timeout* seconds with SIGKILL, and forget it.

        :returns: False if it had to be killed
        """
        self.terminate()
        return self.join(timeout)

    def forget(self) -> None:
        """Remove the pid file."""
        self._file.unlink(missing_ok=True)

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of the log."""
        return "\n".join(tail(self.log, lines))

    def died(self) -> ProcessError:
        """Return the error that tells the user of an unexpected end."""
        code = self.exit_code
        how = "has ended" if code is None else f"has ended with exit code {code}"
        return ProcessError(f"{self.name} {how}; the end of {self.log}:\n{self.tail()}")


def recorded(run: Path) -> list[str]:
    """Return the names of all processes that have a pid file in *run*."""
    return sorted(file.stem for file in run.glob("*.json"))


def tail(file: Path, lines: int) -> list[str]:
    """Return the last lines of a text file; none if it does not exist."""
    try:
        with file.open("rb") as text:
            text.seek(0, os.SEEK_END)
            text.seek(max(0, text.tell() - lines * 400))
            return text.read().decode(errors="replace").splitlines()[-lines:]
    except OSError:
        return []


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read, all at once."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    with open(new, "w", opener=_private) as stream:
        stream.write(text)
    new.replace(file)


def memory_kb(pid: int) -> int:
    """Return the resident memory in kB of a process and its workers; 0 if it is gone."""
    try:
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        workers = []
    return _memory_kb(pid) + sum(memory_kb(int(worker)) for worker in workers)


def _memory_kb(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    start: int


def _stat(pid: int) -> _Stat | None:
    try:
        # The second field, the name in parentheses, may itself contain spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return _Stat(state=fields[0], start=int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


def _runs(identity: Identity) -> bool:
    stat = _stat(identity.pid)
    if stat is None or stat.state in "ZX":
        return False
    return stat.start == identity.start and identity.boot == _boot_id()


def _open(identity: Identity) -> int | None:
    """Return a pidfd of the very process, or None if it has ended."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if not _runs(identity):
        os.close(descriptor)
        return None
    return descriptor


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _kill_marked(mark: str) -> None:
    """Kill the processes that carry *mark*: workers that outlived their parent, for example."""
    wanted = f"{_MARK}={mark}".encode()
    for pid in [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]:
        try:
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue  # it has ended, or it is somebody else's


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait: one between the start of a process and the writing of its pid
    file would leave a process that nobody knows."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    former = {
        number: signal.signal(number, lambda number, _frame: caught.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        for caught_number in caught:
            signal.raise_signal(caught_number)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
