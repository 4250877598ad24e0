# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the functional tests: one private broker a session, one cloud a test or a class."""

import io
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from novalite.devcloud.broker import Broker
from tests.functional import cloud as cloud_module
from tests.functional import faults

Make = Callable[..., cloud_module.Cloud]
_RUNNING: list[cloud_module.Cloud] = []
_TABLE = pytest.StashKey[faults.Table]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure the logs of every cloud that runs, a class's cloud too."""
    report = yield
    if report.failed and call.when != "teardown":
        for running in _RUNNING:
            with redirect_stdout(io.StringIO()) as text:
                running.print_logs()
            report.sections.append((f"Logs of {running.directory.name}", text.getvalue()))
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=0, help="how often drill tests repeat")
    parser.addoption("--first", type=int, default=1, help="the first round of random faults")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TABLE] = faults.Table()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = terminalreporter.config.stash[_TABLE].lines()
    if lines:
        terminalreporter.section("what became of the faults")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> range:
    """The rounds of a drill: as many as --rounds says, one without it."""
    return range(max(1, request.config.getoption("--rounds")))


@pytest.fixture(scope="session")
def only_in_drill(request: pytest.FixtureRequest) -> None:
    """Skip what is too wide for every day: it runs with --rounds."""
    if not request.config.getoption("--rounds"):
        pytest.skip("runs in a drill only: --rounds N")


@pytest.fixture(scope="session")
def table(request: pytest.FixtureRequest) -> faults.Table:
    """What became of each fault; printed at the end of the session."""
    return request.config.stash[_TABLE]


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


@contextmanager
def _maker(directory: Path, broker: Broker | None, template: Path | None) -> Iterator[Make]:
    with ExitStack() as stack:
        count = 0

        def make(**options: Any) -> cloud_module.Cloud:
            nonlocal count
            count += 1
            made = cloud_module.Cloud(
                directory / f"cloud{count}",
                broker=broker,
                transport_url=cloud_module.transport_url_from_environment(),
                database_url=cloud_module.database_url_from_environment(),
                template=template,
                **options,
            )
            stack.enter_context(made)
            _RUNNING.append(made)
            stack.callback(_RUNNING.remove, made)
            return made

        yield make


@pytest.fixture
def make_cloud(tmp_path: Path, broker: Broker | None, template: Path | None) -> Iterator[Make]:
    """Return a function that starts a cloud, which lives until the end of the test."""
    with _maker(tmp_path, broker, template) as make:
        yield make


@pytest.fixture(scope="class")
def make_class_cloud(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker | None, template: Path | None
) -> Iterator[Make]:
    """Return a function that starts a cloud, which lives until the end of the class."""
    with _maker(tmp_path_factory.mktemp("class"), broker, template) as make:
        yield make


@pytest.fixture(scope="session")
def standing_clouds(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker | None, template: Path | None
) -> Iterator[faults.Standing]:
    with _maker(tmp_path_factory.mktemp("standing"), broker, template) as make:
        yield faults.Standing(make)


@pytest.fixture
def standing(standing_clouds: faults.Standing) -> Iterator[cloud_module.Cloud]:
    """A cloud with two of everything that tests share: each leaves it empty and whole.

    A test that cannot do that gets an error of its own, and the next one a new cloud.
    """
    yield standing_clouds.get()
    standing_clouds.tidy()


@pytest.fixture
def cloud(make_cloud: Make) -> cloud_module.Cloud:
    """A small cloud: one of everything, noauth2, no neighbours."""
    return make_cloud()
