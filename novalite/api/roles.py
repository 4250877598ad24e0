# SPDX-License-Identifier: Apache-2.0
"""Who a policy rule may be for: the defaults that the rules are made of.

Read by :mod:`novalite.api.rules`. The names and checks are Nova's.
"""

ADMIN = "rule:context_is_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
USER = f"({ADMIN}) or user_id:%(user_id)s"
ANYBODY = "@"

BASE = (
    ("context_is_admin", "role:admin", "Decides what makes an administrator (is_admin:True)."),
    (
        "admin_or_owner",
        "is_admin:True or project_id:%(project_id)s",
        "Former default of most rules; for policy files that still name it.",
    ),
    (
        "admin_api",
        "is_admin:True",
        "Former default of rules for administrators; for policy files that still name it.",
    ),
    (
        "project_member_api",
        "role:member and project_id:%(project_id)s",
        "Members, in their project.",
    ),
    (
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        "Readers, in their project.",
    ),
    (
        "project_member_or_admin",
        "rule:project_member_api or rule:context_is_admin",
        "Default of what changes something in a project.",
    ),
    (
        "project_reader_or_admin",
        "rule:project_reader_api or rule:context_is_admin",
        "Default of what shows something of a project.",
    ),
)
