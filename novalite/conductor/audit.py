# SPDX-License-Identifier: Apache-2.0
"""Do servers and allocations agree? The conductor's part of the audit, now and then.

It needs the database alone. What is wrong is put right in a transaction that looks again, so it
does not matter how many conductors do this at the same time. Hosts look after their own books
(compute/audit.py).
"""

import functools

from novalite import log
from novalite.db import audit
from novalite.db.engine import Database
from novalite.objects import agreement

LOG = log.get(__name__)


def run(database: Database) -> int:
    """Put right what is wrong and return how many differences that were.

    :raises exception.DatabaseUnavailable: the rest is left to the next time
    """
    facts = database.read(audit.read)
    repaired = 0
    for found in agreement.compare_database(facts):
        uuid = str(found.instance_uuid)
        if database.transaction(functools.partial(audit.settle, uuid=uuid)):
            repaired += 1
            LOG.warning("Put right: %s", found.text, instance=uuid)
    return repaired
