# SPDX-License-Identifier: Apache-2.0
"""Statements of the boot path, compiled once: a third of what SQLAlchemy's execute() costs.

Used by the modules of the nouns in place of ``conn.execute`` for INSERT and UPDATE with one fixed
set of parameters. Errors, counters and transactions are those of the connection. Not for SELECT,
since results are not converted, and not for lists whose length varies (``in_`` with expanding).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import compiler

Values = Mapping[str, Any]
Parameter = tuple[str, Callable[[Any], Any] | None]


class Prepared:
    """One INSERT or UPDATE for all databases."""

    def __init__(self, statement: sa.Insert | sa.Update):
        self._statement = statement
        self._forms: dict[str, _Form] = {}

    def execute(self, conn: sa.Connection, values: Values) -> "sa.CursorResult[Any]":
        """Run it; *values* has the same keys each time."""
        form = self._form(conn, values)
        return conn.exec_driver_sql(form.text, form.parameters(values))

    def execute_many(self, conn: sa.Connection, rows: Sequence[Values]) -> None:
        """Run it for each of the rows, all at once; does nothing without rows."""
        if rows:
            form = self._form(conn, rows[0])
            conn.exec_driver_sql(form.text, [form.parameters(values) for values in rows])

    def insert(self, conn: sa.Connection, values: Values) -> int:
        """Run an INSERT and return the id that the database gave to the row."""
        result = self.execute(conn, values)
        return int(result.scalar_one() if result.returns_rows else result.lastrowid)

    def _form(self, conn: sa.Connection, values: Values) -> "_Form":
        form = self._forms.get(conn.dialect.name)
        if form is None:
            form = self._forms[conn.dialect.name] = _Form(self._statement, conn.dialect, values)
        return form


class _Form:
    """The statement in the words of one database."""

    def __init__(self, statement: sa.Insert | sa.Update, dialect: sa.Dialect, values: Values):
        columns = statement.table.c
        keys = [name for name in values if name in columns] if statement.is_insert else None
        compiled = statement.compile(dialect=dialect, column_keys=keys)
        assert isinstance(compiled, compiler.SQLCompiler)
        if compiled.insert_prefetch or compiled.update_prefetch:
            raise TypeError("every column with a default must be named: " + str(compiled))
        processors = {
            name: parameter.type.dialect_impl(dialect).bind_processor(dialect)
            for parameter, name in compiled.bind_names.items()
        }
        self.text = str(compiled)
        # What stands in the statement itself.
        self._fixed = {
            name: value if (process := processors[name]) is None else process(value)
            for name, value in compiled.params.items()
            if name not in values
        }
        self._given: list[Parameter] = [
            (name, processors[name]) for name in processors if name in values
        ]
        self._order = compiled.positiontup

    def parameters(self, values: Values) -> Any:
        """Return the parameters as the driver takes them."""
        named = self._fixed.copy()
        for name, process in self._given:
            value = values[name]
            named[name] = value if process is None else process(value)
        return named if self._order is None else tuple([named[name] for name in self._order])
