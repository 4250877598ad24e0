# SPDX-License-Identifier: Apache-2.0
"""How a compute announces a start and learns what of its guests is still wanted (rules 3 and 11).

Runs before any work is taken, and again if the conductor does not know the service any more. The
database says which servers are kept here; every other guest of ours goes, except those whose build
is open at this host: they are left until begin is answered.
"""

import threading
import time

from novalite import context as context_module
from novalite import exception, log
from novalite.compute.host import ComputeHost, cause
from novalite.compute.reporter import BINARY, Conductor
from novalite.objects import build
from novalite.objects.states import PowerState
from novalite.virt.driver import GuestInfo, GuestMetadata

LOG = log.get(__name__)

# Seconds that one try may take, between two tries, and between two warnings.
TIMEOUT = 10.0
SPACING = 1.0
WARN_EVERY = 30.0


def register(
    host: ComputeHost, conductor: Conductor, identity: str, stopping: threading.Event
) -> float:
    """Register this start, open the books and sort out the guests.

    :param stopping: when it is set, no further try is made
    :returns: the moment (the fence's clock) at which the answered registration was sent
    :raises exception.ConfigurationError: the registration is refused; nothing was touched
    :raises exception.BusUnavailable: stopped before an answer came
    :raises exception.HypervisorError: the hypervisor cannot be asked
    """
    sent_at, answer = _ask(host, conductor, identity, stopping)
    if answer.refused is not None:
        raise exception.ConfigurationError(reason=answer.refused)
    host.reporter.begin_epoch(answer.epoch)
    host.tracker.start(answer.epoch, answer.node_uuids, answer.kept)
    _sort_guests(host, answer)
    LOG.info(
        "Registered with epoch %d: %d servers are kept here, %d builds are open",
        answer.epoch,
        len(answer.kept),
        len(answer.open),
    )
    return sent_at


def _ask(
    host: ComputeHost, conductor: Conductor, identity: str, stopping: threading.Event
) -> tuple[float, build.Registration]:
    context = context_module.service_context()
    nodes = host.driver.nodes()
    warned: float | None = None
    while not stopping.is_set():
        sent_at = host.fence.clock()
        try:
            answer = conductor.register(
                context,
                host=host.name,
                binary=BINARY,
                identity=identity,
                nodes=nodes,
                timeout=TIMEOUT,
            )
            return sent_at, answer
        except Exception as error:
            if warned is None or time.monotonic() - warned >= WARN_EVERY:
                warned = time.monotonic()
                LOG.warning(
                    "No conductor answers the registration (%s); it is repeated",
                    type(error).__name__.removesuffix("_Remote"),
                )
        stopping.wait(SPACING)
    raise exception.BusUnavailable()


def _sort_guests(host: ComputeHost, answer: build.Registration) -> None:
    kept = {each.instance.uuid: each for each in answer.kept}
    missing = dict(kept)
    for guest in host.driver.list_guests():
        uuid = guest.instance_uuid
        each = kept.get(uuid)
        if each is not None and each.attempt == guest.metadata.attempt:
            del missing[uuid]
            _keep(host, each, guest)
        elif uuid in answer.open or host.hand.of_instance(uuid):
            LOG.info("The guest of an open build is left for now", instance=uuid)
        else:
            _remove(host, guest)
    for uuid, each in missing.items():
        node = each.instance.node or ""
        host.power.note(uuid, node, each.instance.power_state)
        LOG.warning("It is kept here but has no guest", instance=uuid)


def _keep(host: ComputeHost, kept: build.Kept, guest: GuestInfo) -> None:
    """Mark the guest as a server's, and resume it if a fence had paused it."""
    uuid, metadata = guest.instance_uuid, guest.metadata
    host.power.note(uuid, kept.instance.node or "", kept.instance.power_state)
    if metadata.done and not metadata.paused_by_fence:
        return
    paused = metadata.paused_by_fence
    try:
        host.driver.set_metadata(
            uuid,
            GuestMetadata(metadata.action_id, metadata.attempt, True, paused, metadata.token),
        )
        if paused or guest.power_state is PowerState.PAUSED:
            host.driver.unpause_guest(uuid)
            LOG.info("The guest that a fence had paused runs again", instance=uuid)
    except exception.HypervisorError as error:
        LOG.error("The guest could not be taken over: %s", error.message(), instance=uuid)


def _remove(host: ComputeHost, guest: GuestInfo) -> None:
    uuid = guest.instance_uuid
    LOG.warning(
        "The guest of attempt %d is no server's here and is removed",
        guest.metadata.attempt,
        instance=uuid,
    )
    try:
        host.driver.destroy(uuid)
        host.deallocate_network(context_module.service_context(), uuid, set())
    except Exception as error:
        LOG.error("The guest could not be removed completely: %s", cause(error), instance=uuid)
