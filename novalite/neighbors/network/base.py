# SPDX-License-Identifier: Apache-2.0
"""What all kinds of network records share: attributes, who sees what, filters, revisions.

Each kind is a subclass of :class:`Kind` with its rules; network/app.py serves them all alike.
"""

import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from novalite.neighbors import http
from novalite.neighbors.http import Fault
from novalite.neighbors.identity.tokens import Caller
from novalite.neighbors.store import Doc, Tx

PAGING = ("limit", "marker", "page_reverse", "sort_key", "sort_dir", "fields")
TAG_FILTERS = ("tags", "tags-any", "not-tags", "not-tags-any")


class Attr(NamedTuple):
    """One attribute that a client may send: its type, its default, and who may set it when."""

    type: type
    default: Any = None
    put: bool = True
    admin: bool = False


# What every kind takes; tenant_id is the old name of project_id.
COMMON: dict[str, Attr] = {
    "name": Attr(str, ""),
    "description": Attr(str, ""),
    "project_id": Attr(str, put=False),
    "tenant_id": Attr(str, put=False),
}


def bad_request(message: str, kind: str = "BadRequest") -> Fault:
    """Return the fault for bad input."""
    return Fault(400, message, kind)


def invalid_input(message: str) -> Fault:
    """Return the fault that network v2.0 words this way."""
    return Fault(400, f"Invalid input for operation: {message}.", "InvalidInput")


def conflict(message: str, kind: str) -> Fault:
    """Return the fault for something that is in use or taken."""
    return Fault(409, message, kind)


class Kind:
    """Rules of one kind of record; the base is a plain record."""

    name = ""
    # The noun in messages.
    noun = ""
    attrs: dict[str, Attr] = {}

    @property
    def plural(self) -> str:
        """The key of a list."""
        return f"{self.name}s"

    @property
    def path(self) -> str:
        """The collection's path below /v2.0."""
        return self.plural.replace("_", "-")

    def create(self, tx: Tx, caller: Caller, asked: Doc) -> Doc:
        """Make a record.

        :raises Fault: 400 naming the attribute, 403, 404 for what it refers to, 409
        """
        return tx.insert(self.name, self.new(caller, self.checked(caller, asked, new=True)))

    def update(self, tx: Tx, caller: Caller, doc: Doc, changes: Doc) -> Doc:
        """Change a record; *changes* are checked already."""
        doc.update(changes)
        return self.save(tx, doc)

    def delete(self, tx: Tx, caller: Caller, doc: Doc) -> None:
        """Delete a record.

        :raises Fault: 409 while it is in use
        """
        tx.remove(self.name, doc["id"])

    def view(self, tx: Tx, caller: Caller, doc: Doc) -> Doc:
        """Return the record as the API shows it."""
        shown = {**doc, "tenant_id": doc["project_id"]}
        shown["created_at"] = http.isotime(doc["created_at"])
        shown["updated_at"] = http.isotime(doc["updated_at"])
        return shown

    def visible(self, tx: Tx, caller: Caller, doc: Doc) -> bool:
        """Tell whether the caller may look at the record."""
        return owned(caller, doc)

    def candidates(self, tx: Tx, caller: Caller, params: dict[str, list[str]]) -> list[Doc]:
        """Return the records from which a list is filtered, narrowed by an index if possible."""
        for key, column in (("id", "id"), ("name", "name")):
            if key in params:
                return tx.find(self.name, **{column: params[key]})
        projects = params.get("project_id") or params.get("tenant_id")
        if projects:
            return tx.find(self.name, owner=projects)
        return self.all(tx, caller)

    def all(self, tx: Tx, caller: Caller) -> list[Doc]:
        """Return all records that the caller may see, and perhaps some more."""
        return (
            tx.find(self.name) if caller.is_admin else tx.find(self.name, owner=caller.project_id)
        )

    def matches(self, tx: Tx, doc: Doc, key: str, values: list[str]) -> bool:
        """Tell whether an attribute of a shown record is one of the values."""
        return any(http.same(doc[key], value) for value in values)

    # -- for the subclasses -------------------------------------------------------------------

    def checked(self, caller: Caller, asked: Doc, new: bool) -> Doc:
        """Return what was asked for with every attribute known, allowed and of its type.

        :raises Fault: 400 naming the attribute, 403
        """
        known = {**COMMON, **self.attrs}
        unknown = sorted(set(asked) - set(known))
        if unknown:
            raise Fault(400, f"Unrecognized attribute(s) '{', '.join(unknown)}'", "HTTPBadRequest")
        checked: Doc = {}
        for key, value in asked.items():
            attr = known[key]
            if not new and not attr.put:
                raise Fault(400, f"Cannot update read-only attribute {key}", "HTTPBadRequest")
            if attr.admin and not caller.is_admin and value not in (None, attr.default):
                raise forbidden(self, f"set {key}")
            checked[key] = _default(attr) if value is None else _typed(key, value, attr)
        return checked

    def new(self, caller: Caller, asked: Doc) -> Doc:
        """Return a record with id, owner, defaults and times, and what was asked for.

        :raises Fault: 403 when it is for another project
        """
        project = asked.pop("project_id", None) or asked.pop("tenant_id", None)
        asked.pop("tenant_id", None)
        if project and project != caller.project_id and not caller.is_admin:
            raise forbidden(self, "make one for another project")
        now = time.time()
        doc: Doc = {"id": str(uuid.uuid4()), "project_id": project or caller.project_id}
        for key, attr in {**COMMON, **self.attrs}.items():
            if key not in ("project_id", "tenant_id"):
                doc[key] = _default(attr)
        doc.update({key: value for key, value in asked.items() if value is not None})
        doc.update(tags=[], revision_number=1, created_at=now, updated_at=now)
        return doc

    def save(self, tx: Tx, doc: Doc) -> Doc:
        """Write a changed record with its next revision."""
        doc["revision_number"] += 1
        doc["updated_at"] = time.time()
        return tx.replace(self.name, doc)

    def get(self, tx: Tx, caller: Caller, record_id: str) -> Doc:
        """Return a record that the caller may see.

        :raises Fault: 404
        """
        doc = tx.get(self.name, record_id)
        if doc is None or not self.visible(tx, caller, doc):
            raise http.not_found(self.noun, record_id)
        return doc


def _default(attr: Attr) -> Any:
    return attr.default() if isinstance(attr.default, type) else attr.default


def _typed(key: str, value: Any, attr: Attr) -> Any:
    if attr.type is int and isinstance(value, bool):
        raise invalid_input(f"'{value}' is not an integer for {key}")
    if not isinstance(value, attr.type):
        raise invalid_input(f"{key} must be of type {attr.type.__name__}, not '{value}'")
    if isinstance(value, str) and len(value) > 255:
        raise invalid_input(f"{key} is longer than 255 characters")
    return value


def forbidden(kind: Kind, action: str) -> Fault:
    """Return the fault for what the policy does not allow."""
    return Fault(403, f"Policy does not allow to {action} ({kind.noun}).", "PolicyNotAuthorized")


def owned(caller: Caller, doc: Doc) -> bool:
    """Tell whether the record belongs to the caller, or the caller is an administrator."""
    return caller.is_admin or (bool(caller.project_id) and doc["project_id"] == caller.project_id)


def select(
    kind: Kind, tx: Tx, caller: Caller, params: dict[str, list[str]]
) -> list[tuple[Doc, Doc]]:
    """Return (record, shown record) of what the caller sees and the query wants."""
    found = []
    for doc in kind.candidates(tx, caller, params):
        if kind.visible(tx, caller, doc):
            shown = kind.view(tx, caller, doc)
            if _wanted(kind, tx, shown, params):
                found.append((doc, shown))
    return found


def _wanted(kind: Kind, tx: Tx, shown: Doc, params: dict[str, list[str]]) -> bool:
    for key, values in params.items():
        if key in PAGING:
            continue
        if key in TAG_FILTERS:
            if not _TAGS[key](set(shown["tags"]), set(values[-1].split(","))):
                return False
        elif key in shown:
            if not kind.matches(tx, shown, key, values):
                return False
    return True


_TAGS: dict[str, Callable[[set[str], set[str]], bool]] = {
    "tags": lambda have, asked: asked <= have,
    "tags-any": lambda have, asked: bool(asked & have),
    "not-tags": lambda have, asked: not asked <= have,
    "not-tags-any": lambda have, asked: not asked & have,
}
