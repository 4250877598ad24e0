# SPDX-License-Identifier: Apache-2.0
"""The data of images: one file each, in the folder beside the store.

Used by upload, download and delete. Data is streamed, so an image is never in memory as a whole.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CHUNK = 256 * 1024


class Stored(NamedTuple):
    """What is known of data once it is all there."""

    size: int
    md5: str
    sha512: str


class Files:
    """The folder."""

    def __init__(self, folder: Path):
        self._folder = folder

    def _path(self, image_id: str) -> Path:
        return self._folder / image_id

    def path(self, image_id: str) -> Path:
        """Return the file of an image's data."""
        return self._path(image_id)

    def clean(self) -> None:
        """Delete what uploads left unfinished when the process was killed."""
        for path in self._folder.glob("*.part"):
            path.unlink(missing_ok=True)

    def write(self, image_id: str, stream: Any, key: str, length: int | None) -> Stored:
        """Copy a stream to a file; it is not visible before :meth:`publish`.

        :param key: sets this upload apart from another one of the same image
        :param length: bytes that were announced, None if that is not known
        :raises OSError: the disk is full or the client went away
        """
        size, md5, sha512 = 0, hashlib.md5(usedforsecurity=False), hashlib.sha512()
        path = self._folder / f"{image_id}.{key}.part"
        try:
            with path.open("wb") as target:
                while chunk := stream.read(CHUNK):
                    target.write(chunk)
                    md5.update(chunk)
                    sha512.update(chunk)
                    size += len(chunk)
            if length is not None and size != length:
                raise OSError(f"{size} of {length} bytes came")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return Stored(size, md5.hexdigest(), sha512.hexdigest())

    def publish(self, image_id: str, key: str) -> None:
        """Make finished data the image's."""
        (self._folder / f"{image_id}.{key}.part").replace(self._path(image_id))

    def discard(self, image_id: str, key: str) -> None:
        """Drop finished data that nobody wants any more."""
        (self._folder / f"{image_id}.{key}.part").unlink(missing_ok=True)

    def read(self, image_id: str) -> Iterator[bytes]:
        """Give the image's data piece by piece.

        :raises FileNotFoundError: there is none
        """
        return _pieces(self._path(image_id).open("rb"))

    def remove(self, image_id: str) -> None:
        """Delete the image's data, if there is any."""
        self._path(image_id).unlink(missing_ok=True)


def _pieces(source: Any) -> Iterator[bytes]:
    with source:
        while chunk := source.read(CHUNK):
            yield chunk
