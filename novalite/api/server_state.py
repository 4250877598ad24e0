# SPDX-License-Identifier: Apache-2.0
"""In which states a server may be changed, and who may change a locked one.

Called by resources with a row of db/instance_queries, also inside transactions: nothing here asks
a database.
"""

from typing import Any

from novalite import context as context_module
from novalite import exception
from novalite.objects.states import VMState

# Tags and metadata belong to servers that have come into being.
SETTLED = frozenset(
    state.value for state in (VMState.ACTIVE, VMState.PAUSED, VMState.SUSPENDED, VMState.STOPPED)
)


def check_settled(row: Any, what: str, *, idle: bool = False) -> None:
    """Refuse a server that is being built, has failed, or if *idle* has something going on.

    :param what: the refused doing, for the message
    :raises exception.InstanceInvalidState: naming what is in the way
    """
    if row.vm_state not in SETTLED:
        raise exception.InstanceInvalidState(
            action=what, instance_id=row.uuid, attr="vm_state", state=row.vm_state
        )
    if idle and row.task_state is not None:
        raise exception.InstanceInvalidState(
            action=what, instance_id=row.uuid, attr="task_state", state=row.task_state
        )


def check_unlocked(context: context_module.RequestContext, row: Any) -> None:
    """Refuse a locked server to everybody but administrators.

    :raises exception.InstanceIsLocked: it is
    """
    if row.locked and not context.is_admin:
        raise exception.InstanceIsLocked(instance_id=row.uuid)


def is_owner(context: context_module.RequestContext, row: Any) -> bool:
    """Tell whether the caller acts for the project of the server."""
    return bool(row.project_id == context.project_id)
