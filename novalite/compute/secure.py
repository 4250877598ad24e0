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

LOG = log.get(__name__)

# Seconds to wait for a guest that something is being done to; then it is paused all the same.
LOCK_WAIT = 1.0
# In these stages the work's own thread looks after the guest: it is being spawned and asks the
# fence before it lets it run, or its finish is answered.
_OWN_CARE = (Stage.RUNNING, Stage.DONE, Stage.LEAVING)


def secure_guests(host: ComputeHost) -> None:
    """Pause or remove the guests of unfinished builds.

    :raises exception.HypervisorError: the guests cannot be listed, or one of them was not paused
    """
    failed: exception.HypervisorError | None = None
    for guest in host.driver.list_guests():
        if guest.metadata.done:
            continue
        made_by = guest.metadata
        work = host.hand.find(guest.instance_uuid, made_by.action_id, made_by.attempt)
        build = work if isinstance(work, Build) else None
        if build is not None and (build.stage in _OWN_CARE or _take_back(host, build)):
            continue
        try:
            _pause(host, guest.instance_uuid, build)
        except exception.DomainNotFound:
            continue
        except exception.HypervisorError as error:
            failed = error
            LOG.error(
                "The fence could not pause the guest: %s",
                error.message(),
                instance=guest.instance_uuid,
            )
    if failed is not None:
        raise failed


def _take_back(host: ComputeHost, build: Build) -> bool:
    """If finish was never sent, let the guest go and begin be asked again; tell whether so."""
    ticket = build.ticket
    if build.stage is not Stage.FINISHING or ticket is None:
        return False
    if not host.reporter.withdraw_unsent(ticket):
        return False
    if host.hand.move(build, Stage.FINISHING, Stage.RUNNING):
        host.ends.submit(build.withdrawn_by_fence)
    return True


def _pause(host: ComputeHost, instance_uuid: str, build: Build | None) -> None:
    with host.hand.instance_lock(instance_uuid, LOCK_WAIT) as held:
        # Looked at again under the lock: it may have become a server's meanwhile.
        guest = host.driver.get_guest(instance_uuid)
        if guest is None or guest.metadata.done or guest.power_state is not PowerState.RUNNING:
            return
        if build is not None:
            if held and build.stage in _OWN_CARE:
                return
            build.paused = True
        host.driver.pause_guest(instance_uuid, by_fence=True)
        LOG.warning("The fence has paused the guest", instance=instance_uuid)
    if not held and build is not None and build.stage is Stage.DONE:
        # The answer came meanwhile, and who marks the guest may not have seen the pause.
        host.ends.submit(build.mark_done)
