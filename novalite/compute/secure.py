# SPDX-License-Identifier: Apache-2.0
"""What happens to the guests when the fence has fallen (rule 9).

Called in the fence's thread. "Unfinished" is read from the guests themselves: a guest whose
metadata says done is a server and runs on, whatever this process remembers. It may be repeated at
any time, so it does nothing to a guest that is paused already.
"""

from novalite import exception, log
from novalite.compute.build import Build
from novalite.compute.hand import Stage
from novalite.compute.host import ComputeHost
from novalite.objects.states import PowerState
from novalite.virt.driver import GuestInfo

LOG = log.get(__name__)

# Seconds to wait for a guest that something is being done to; then it is paused all the same.
LOCK_WAIT = 1.0
# In these stages the work's own thread looks after the guest: it is being spawned and asks the
# fence before it lets it run, or its finish is answered.
_OWN_CARE = (Stage.RUNNING, Stage.DONE, Stage.LEAVING)


def secure_guests(host: ComputeHost) -> None:
    """Pause or remove the guests of unfinished builds.

    :raises exception.HypervisorError: the guests cannot be listed
    """
    for guest in host.driver.list_guests():
        if guest.metadata.done:
            continue
        made_by = guest.metadata
        work = host.hand.find(guest.instance_uuid, made_by.action_id, made_by.attempt)
        if work is not None and work.stage in _OWN_CARE:
            continue
        if isinstance(work, Build) and work.stage is Stage.FINISHING:
            if _take_back(host, work):
                continue
            work.paused = True
        if guest.power_state is PowerState.RUNNING:
            _pause(host, guest)
        if isinstance(work, Build) and work.stage in (Stage.DONE, Stage.OVER):
            # The answer came while the guest was being paused.
            host.ends.submit(work.mark_done)


def _take_back(host: ComputeHost, work: Build) -> bool:
    """If finish was never sent, let the guest go and begin be asked again; tell whether so."""
    ticket = work.ticket
    if ticket is None or not host.reporter.withdraw_unsent(ticket):
        return False
    if host.hand.move(work, Stage.FINISHING, Stage.RUNNING):
        host.ends.submit(work.withdrawn_by_fence)
    return True


def _pause(host: ComputeHost, guest: GuestInfo) -> None:
    with host.hand.instance_lock(guest.instance_uuid, LOCK_WAIT):
        try:
            host.driver.pause_guest(guest.instance_uuid, by_fence=True)
        except exception.DomainNotFound:
            return
        except exception.HypervisorError as error:
            LOG.error(
                "The fence could not pause the guest: %s",
                error.message(),
                instance=guest.instance_uuid,
            )
            return
    LOG.warning("The fence has paused the guest", instance=guest.instance_uuid)
