# SPDX-License-Identifier: Apache-2.0
"""The node identity: which hypervisor this is, whatever its host is called today (rule 11).

A random name in the state directory, made at the first start. The registration sends it: another
identity under the same host name, or this one under another name, is refused before anything is
destroyed. The file stays locked while the process lives, so no second novalite-compute can work on
the same guests.
"""

import fcntl
import os
import uuid
from pathlib import Path

from novalite import exception

FILE = "compute_id"


class Identity:
    """The locked identity of this host."""

    def __init__(self, state_path: str):
        """Lock the file, and make the identity if there is none.

        :raises exception.ConfigurationError: the state directory cannot be used, is another
            process's, or holds something else under that name
        """
        path = Path(state_path) / FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise exception.ConfigurationError(
                reason=f"state_path: {path} cannot be opened: {error.strerror}"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise exception.ConfigurationError(
                reason=f"state_path: another novalite-compute has {path} locked; "
                "each needs a state_path of its own"
            ) from None
        self.value = self._read_or_make(path)

    def _read_or_make(self, path: Path) -> str:
        text = os.read(self._file, 100).decode("ascii", "replace").strip()
        if not text:
            text = str(uuid.uuid4())
            os.write(self._file, f"{text}\n".encode("ascii"))
            os.fsync(self._file)
        try:
            return str(uuid.UUID(text))
        except ValueError:
            self.release()
            raise exception.ConfigurationError(
                reason=f"state_path: {path} does not hold a node identity"
            ) from None

    def release(self) -> None:
        """Unlock the file."""
        os.close(self._file)
