# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the functional tests: one private broker a session, one cloud a test."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from novalite.devcloud.broker import Broker
from tests.functional import cloud as cloud_module

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember a failure, so that the fixtures can show the logs."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=1, help="how often drill tests repeat")


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> range:
    """The rounds of a drill."""
    return range(request.config.getoption("--rounds"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker | None]:
    """The private RabbitMQ node of this session; None if the environment names another broker."""
    if cloud_module.transport_url_from_environment() is not None:
        yield None
        return
    node = Broker(tmp_path_factory.mktemp("rabbitmq"))
    node.start()
    try:
        yield node
    finally:
        node.kill()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A SQLite file with all tables; None if another database is tested."""
    if cloud_module.database_url_from_environment() is not None:
        return None
    return cloud_module.make_template(tmp_path_factory.mktemp("template"))


@pytest.fixture
def make_cloud(
    request: pytest.FixtureRequest, tmp_path: Path, broker: Broker | None, template: Path | None
) -> Iterator[Callable[..., cloud_module.Cloud]]:
    """Return a function that starts a cloud, which lives until the end of the test."""
    with ExitStack() as stack:
        clouds: list[cloud_module.Cloud] = []

        def make(**options: Any) -> cloud_module.Cloud:
            made = cloud_module.Cloud(
                tmp_path / f"cloud{len(clouds) + 1}",
                broker=broker,
                transport_url=cloud_module.transport_url_from_environment(),
                database_url=cloud_module.database_url_from_environment(),
                template=template,
                **options,
            )
            clouds.append(stack.enter_context(made))
            return made

        yield make
        if request.node.stash.get(_FAILED, False):
            for made in clouds:
                made.print_logs()


@pytest.fixture
def cloud(make_cloud: Callable[..., cloud_module.Cloud]) -> cloud_module.Cloud:
    """A small cloud: one of everything, noauth2, no neighbours."""
    return make_cloud()
