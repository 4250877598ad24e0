# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that need a database."""

import pytest

from tests.unit.db import books as books_module


@pytest.fixture(scope="session")
def open_books(tmp_path_factory):
    """Return a function that makes empty books; equal options get the same ones, emptied, since a
    database that is opened anew compiles all its statements anew."""
    made = {}

    def open_(**options):
        key = tuple(sorted(options.items()))
        if key not in made:
            directory = tmp_path_factory.mktemp("books")
            conf = books_module.make_conf(directory, **options)
            made[key] = books_module.open_books(conf)
        made[key].empty()
        return made[key]

    yield open_
    for books in made.values():
        books.close()


@pytest.fixture
def books(open_books):
    """An empty database on a clock of the test's own."""
    return open_books()
