# SPDX-License-Identifier: Apache-2.0
"""How a compute removes a server, for a delete or to clean up after an attempt that was left.

A request names the highest attempt that may go (none: all). What is in hand up to that attempt is
cancelled first; a build that runs stops at its next stage, and the destroy, which waits for the
instance's lock, comes after it. Gone is reported whatever was found: a guest that is gone already
is a success. A guest or a port that will not go is reported too, and then the books keep it.
"""

import time

from novalite import context as context_module
from novalite import crash, log
from novalite.compute.build import Build
from novalite.compute.host import ComputeHost, brought_ports, cause
from novalite.objects import build
from novalite.objects.action import ActionEvent

LOG = log.get(__name__)

EVENT = "compute_terminate_instance"


def destroy_instances(host: ComputeHost, requests: list[build.DestroyRequest]) -> None:
    """Start to remove these servers; each is done in the pool of the deletes."""
    for request in requests:
        destroy = Destroy(host, request)
        uuid = request.instance.uuid
        if not host.hand.take_delete(uuid, request.action_id, request.attempt):
            destroy.say("The message to remove it is ignored: that is in hand")
            continue
        crash.point(host.conf, "delete.after_mark")
        destroy.cancel_builds()
        host.deletes.submit(destroy.run)


class Destroy:
    """One removal."""

    def __init__(self, host: ComputeHost, request: build.DestroyRequest):
        self.host = host
        self.request = request
        self.instance_uuid = request.instance.uuid
        self.bound = request.attempt
        self.context = context_module.from_wire(request.context)
        infos = request.instance.network_info
        self.brought = {info.port_id for info in infos if not info.owned}
        # A server that was never built may have ports that nobody has written down yet.
        self.has_network = bool(infos) or request.instance.launched_at is None

    def say(self, message: str, *args: object) -> None:
        """Log a move of this removal."""
        LOG.info(message, *args, context=self.context, instance=self.instance_uuid)

    def cancel_builds(self) -> None:
        """Stop what is in hand of this server, as far as it may go."""
        builds = [w for w in self.host.hand.of_instance(self.instance_uuid) if isinstance(w, Build)]
        if builds:
            self.has_network = any(each.request.spec.networks != [] for each in builds)
        for each in builds:
            self.brought |= brought_ports(each.request.spec.networks)
        for work in self.host.hand.cancel(self.instance_uuid, self.bound):
            self.host.forget(work)

    def run(self) -> None:
        """Remove guest, ports, volumes and claim, and report it."""
        host = self.host
        began = time.time()
        failure = None
        with host.hand.instance_lock(self.instance_uuid):
            try:
                self._remove()
            except Exception as error:
                failure = cause(error)
                LOG.error(
                    "It could not be removed: %s",
                    failure,
                    context=self.context,
                    instance=self.instance_uuid,
                )
            else:
                host.tracker.release_up_to(self.instance_uuid, self.bound)
                if self.bound is None:
                    host.power.forget(self.instance_uuid)
                    host.unmarked.pop(self.instance_uuid, None)
        event = ActionEvent(EVENT, host.name, began, time.time())
        event.result = "Success" if failure is None else "Error"
        if failure is not None:
            event.details = {"error": failure}
        host.reporter.ask((self.request.context, self._gone(failure, event), self._reported))

    def _remove(self) -> None:
        host = self.host
        guest = host.driver.get_guest(self.instance_uuid)
        newer = False
        if guest is None:
            self.say("There is no guest of it here")
        elif self.bound is None or guest.metadata.attempt <= self.bound:
            host.driver.destroy(self.instance_uuid)
            self.say("Instance destroyed successfully.")
        else:
            newer = True
            self.say("The guest is attempt %d's and stays", guest.metadata.attempt)
        crash.point(host.conf, "delete.after_destroy")
        if newer or self._is_built_here():
            return
        if self.has_network:
            host.deallocate_network(
                self.context, self.instance_uuid, self.brought, everywhere=self.bound is None
            )
        self._give_back_volumes()

    def _give_back_volumes(self) -> None:
        server, volumes = self.request.instance, self.host.volumes
        if not server.block_devices:
            return
        if self.bound is None:
            built = server.launched_at is not None
            volumes.release(self.context, server.uuid, server.block_devices, built=built)
        else:
            volumes.detach(self.context, server.uuid, server.block_devices, self.host.name)

    def _is_built_here(self) -> bool:
        """Tell whether an attempt that this request does not reach uses the ports."""
        works = self.host.hand.of_instance(self.instance_uuid)
        return self.bound is not None and any(work.attempt > self.bound for work in works)

    def _gone(self, failure: str | None, event: ActionEvent) -> build.Gone:
        return build.Gone(
            instance_uuid=self.instance_uuid,
            node=self.request.node,
            picture=self.host.tracker.picture(self.request.node),
            attempt=self.bound,
            action_id=self.request.action_id,
            failure=failure,
            events=[event],
        )

    def _reported(self, answer: build.Answer) -> None:
        request = self.request
        self.host.hand.end_delete(self.instance_uuid, request.action_id, request.attempt)
