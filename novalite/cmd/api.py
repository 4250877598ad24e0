# SPDX-License-Identifier: Apache-2.0
"""``novalite-api``: the Compute API on its own HTTP server."""

from typing import Any

from novalite.cmd import launch


def main() -> None:
    """Start the API."""
    launch.main(
        "novalite-api",
        build,
        needs_database=True,
        checks=[check_policy],
        workers=lambda conf: int(conf.osapi_compute_workers),
        listen=listen,
    )


def listen(conf: Any) -> Any:
    """Open the socket that the workers share.

    :raises exception.ConfigurationError: it cannot be had
    """
    from novalite.api import listener

    return listener.obtain(conf)


def check_policy(conf: Any) -> list[str]:
    """Refuse to start, and to take over changed options, with a wrong policy file."""
    from novalite.api import policy

    return policy.check_files(conf)


def build(conf: Any, bus: Any, fail: Any) -> Any:
    """Make the API's manager."""
    from novalite.api import manager
    from novalite.db import engine

    return manager.ApiManager(conf, bus, engine.Database(conf), fail)


if __name__ == "__main__":
    main()
