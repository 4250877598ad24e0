# SPDX-License-Identifier: Apache-2.0
"""Tables of the neighbours' SQLite file, and which key of a record goes into which column.

Run by the store when it opens the file. Everything a client can name is a *record*: one JSON
document with the few columns that look-ups need. What must be unique or counted has its own table.
"""

from typing import NamedTuple


class Columns(NamedTuple):
    """The document's keys that are copied into the columns owner, parent and attached."""

    owner: str = ""
    parent: str = ""
    attached: str = ""


KINDS: dict[str, Columns] = {
    "domain": Columns(),
    "project": Columns(owner="domain_id", parent="parent_id"),
    "user": Columns(owner="domain_id"),
    "role": Columns(owner="domain_id"),
    "image": Columns(owner="owner"),
    "network": Columns(owner="project_id"),
    "subnet": Columns(owner="project_id", parent="network_id"),
    "port": Columns(owner="project_id", parent="network_id", attached="device_id"),
    "router": Columns(owner="project_id"),
    "floatingip": Columns(owner="project_id", parent="floating_network_id", attached="port_id"),
    "security_group": Columns(owner="project_id"),
    "security_group_rule": Columns(owner="project_id", parent="security_group_id"),
    "quota": Columns(owner="project_id"),
    "volume": Columns(owner="project_id"),
    "attachment": Columns(owner="project_id", parent="volume_id", attached="instance"),
}

TABLES = """
CREATE TABLE IF NOT EXISTS records (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    parent TEXT NOT NULL,
    attached TEXT NOT NULL,
    doc TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS records_id ON records (kind, id);
CREATE INDEX IF NOT EXISTS records_name ON records (kind, name);
CREATE INDEX IF NOT EXISTS records_owner ON records (kind, owner);
CREATE INDEX IF NOT EXISTS records_parent ON records (parent, kind) WHERE parent != '';
CREATE INDEX IF NOT EXISTS records_attached ON records (attached, kind) WHERE attached != '';
CREATE UNIQUE INDEX IF NOT EXISTS records_identity ON records (kind, owner, name)
    WHERE kind IN ('domain', 'project', 'user', 'role');

CREATE TABLE IF NOT EXISTS passwords (user_id TEXT PRIMARY KEY, hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS assignments (
    user_id TEXT NOT NULL,
    target TEXT NOT NULL,
    role_id TEXT NOT NULL,
    PRIMARY KEY (user_id, target, role_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS assignments_target ON assignments (target);
CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    target TEXT NOT NULL,
    methods TEXT NOT NULL,
    audit_ids TEXT NOT NULL,
    issued REAL NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tokens_user ON tokens (user_id);
CREATE INDEX IF NOT EXISTS tokens_target ON tokens (target);
CREATE INDEX IF NOT EXISTS tokens_expires ON tokens (expires);

CREATE TABLE IF NOT EXISTS members (
    image_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (image_id, member_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS members_member ON members (member_id);

CREATE TABLE IF NOT EXISTS addresses (
    subnet_id TEXT NOT NULL,
    address TEXT NOT NULL,
    port_id TEXT NOT NULL,
    PRIMARY KEY (subnet_id, address)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS addresses_port ON addresses (port_id);
CREATE TABLE IF NOT EXISTS address_cursors (
    subnet_id TEXT PRIMARY KEY, address TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS macs (
    network_id TEXT NOT NULL,
    mac TEXT NOT NULL,
    port_id TEXT NOT NULL,
    PRIMARY KEY (network_id, mac)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS macs_port ON macs (port_id);
"""
