# SPDX-License-Identifier: Apache-2.0
"""What ``novalite ps`` says about the health of a service: asked on its socket."""

from pathlib import Path

from novalite import health
from novalite.devcloud.configuration import Service


def of(service: Service, directory: Path) -> str:
    """Return ``ok``, or in a few words what is wrong with the service or its first ailing worker.

    :param directory: state_path of services that have none of their own
    """
    found = [_asked(path) for path in _sockets(service, directory)]
    return next((words for words in found if words != health.OK), health.OK if found else "silent")


def _sockets(service: Service, directory: Path) -> list[Path]:
    own = service.own.get("DEFAULT", {}).get("state_path")
    place = Path(str(own)) if own else directory
    first = health.default_path(str(place), service.program, service.host or "*")
    # Workers beyond the first have a number behind the name.
    return [*sorted(place.glob(first.name)), *sorted(place.glob(f"{first.stem}-*{first.suffix}"))]


def _asked(path: Path) -> str:
    try:
        answer = health.ask(path)
    except OSError:
        return "silent"
    failing = [
        f"{name} {check['reason']}"
        for name, check in answer["checks"].items()
        if check["status"] != health.OK
    ]
    return f"{answer['status']}: {', '.join(failing)}" if failing else str(answer["status"])
