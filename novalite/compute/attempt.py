# SPDX-License-Identifier: Apache-2.0
"""One attempt to build a server, as an object: what it is, what it says, what it can take back.

The flow through it is in build.py, which reads from top to bottom; this file has the parts that
the flow uses at more than one place. Only build.py makes attempts.
"""

import secrets
import time
from typing import Any

from novalite import context as context_module
from novalite import exception, log
from novalite.compute import steps
from novalite.compute.hand import Work
from novalite.compute.host import ComputeHost, brought_ports, cause
from novalite.objects import build
from novalite.objects.compute_node import ComputeNode
from novalite.objects.instance import InstanceFault, NetworkInfo
from novalite.objects.states import PowerState, TaskState
from novalite.virt.driver import GuestMetadata

LOG = log.get(__name__)

ROOT_DEVICE = "/dev/vda"
CANNOT_CLEAN_UP = "Could not clean up failed build, not rescheduling"


class Attempt(Work):
    """One handling of one build message."""

    def __init__(self, host: ComputeHost, request: build.BuildRequest):
        # Random for each handling, so that no two handlings of an attempt can be mixed up.
        token = secrets.token_hex(8)
        instance = request.instance
        super().__init__(request.action_id, request.attempt, instance.uuid, request.node, token)
        instance.host, instance.node = host.name, request.node
        self.host = host
        self.request = request
        self.context = context_module.from_wire(request.context)
        self.steps = steps.Steps(host.name, request.attempt)
        # What the claim took, by resource class.
        self.resources: dict[str, int] = {}
        self.network_info: list[NetworkInfo] = []
        # The fence has paused the guest, or is about to.
        self.paused = False
        # How often the fence had fallen when GO came; no count is -1.
        self.falls = -1

    def say(self, message: str, *args: Any) -> None:
        """Log a move of this attempt."""
        LOG.info(message, *args, context=self.context, instance=self.instance_uuid)

    def warn(self, message: str, *args: Any) -> None:
        """Log what an operator may have to look at."""
        LOG.warning(message, *args, context=self.context, instance=self.instance_uuid)

    def is_fenced(self) -> bool:
        """Tell whether the fence is down or has fallen since GO."""
        fence = self.host.fence
        return fence.is_closed() or fence.falls != self.falls

    def is_cancelled(self) -> bool:
        """Tell whether this attempt has to stop: a delete, a newer attempt or the fence."""
        return self.cancelled or self.is_fenced()

    # -- what it says to the conductor

    def begin(self, picture: ComputeNode | None = None) -> build.Begin:
        """Return the question whether it may begin.

        :param picture: one that contains the claim; the present one if it is not at hand
        """
        return build.Begin(
            action_id=self.action_id,
            attempt=self.attempt,
            token=self.token,
            instance_uuid=self.instance_uuid,
            node=self.node,
            resources=self.resources,
            picture=picture or self.host.tracker.picture(self.node),
            event=self.steps.claim,
        )

    def refusal(self, reason: str, *, stale: bool, guest_left: bool) -> build.Refusal:
        """Return the message that the claim does not fit."""
        return build.Refusal(
            action_id=self.action_id,
            attempt=self.attempt,
            token=self.token,
            instance_uuid=self.instance_uuid,
            node=self.node,
            reason=reason,
            stale=stale,
            picture=self.host.tracker.picture(self.node),
            guest_left=guest_left,
            event=self.steps.claim,
        )

    def tell_progress(
        self, task_state: TaskState, network_info: list[NetworkInfo] | None = None
    ) -> None:
        """Show the task state and the steps so far; nobody waits for it."""
        item = build.Progress(
            action_id=self.action_id,
            attempt=self.attempt,
            token=self.token,
            instance_uuid=self.instance_uuid,
            task_state=task_state.value,
            network_info=network_info,
            events=self.steps.report(),
        )
        self.host.reporter.tell(self.request.context, item)

    def success(self) -> build.Finish:
        """Return the message that the guest runs."""
        finish = self._finish()
        finish.power_state = PowerState.RUNNING
        finish.launched_at = time.time()
        finish.root_device_name = ROOT_DEVICE
        finish.network_info = self.network_info
        finish.block_devices = self.request.instance.block_devices
        return finish

    def failure(self, fault: InstanceFault, error: Exception, *, guest_left: bool) -> build.Finish:
        """Return the message that the build failed.

        With a guest left it goes nowhere else, nor if any host would fail alike.
        """
        finish = self._finish()
        finish.fault, finish.guest_left = fault, guest_left
        finish.reschedule = not guest_left and not exception.is_of_request(error)
        return finish

    def _finish(self) -> build.Finish:
        return build.Finish(
            action_id=self.action_id,
            attempt=self.attempt,
            token=self.token,
            instance_uuid=self.instance_uuid,
            node=self.node,
            picture=self.host.tracker.picture(self.node),
            events=self.steps.report(),
        )

    def fault(self, error: Exception, inner: str, *, guest_left: bool) -> InstanceFault:
        """Word the fault: the message is for the user, the details for administrators."""
        message = cause(error)
        details = f"{message}\n{inner}".rstrip()
        if guest_left or exception.is_of_request(error):
            message = exception.BuildAbortException(
                instance_uuid=self.instance_uuid,
                reason=CANNOT_CLEAN_UP if guest_left else message,
            ).message()
        return InstanceFault(500, message, details, self.host.name, time.time())

    def metadata(self, *, done: bool) -> GuestMetadata:
        """Return what the guest itself says of this attempt."""
        return GuestMetadata(self.action_id, self.attempt, done, self.paused, self.token)

    # -- what it can take back

    def remove_guest(self) -> bool:
        """Destroy the server's guest on this host; False if it would not go."""
        try:
            self.host.driver.destroy(self.instance_uuid)
        except Exception as error:
            self.warn("The guest could not be removed: %s", cause(error))
            return False
        return True

    def give_back(self, *, attempt_only: bool, volumes: bool = True) -> None:
        """Give back ports and volumes that are bound here; what cannot be given back is logged.

        :param attempt_only: the server may be another attempt's by now, so the volumes that were
            made for it stay
        :param volumes: false while a guest is left that may write to them
        """
        if self.request.spec.networks:
            self._give_back_network()
        if volumes and self.request.instance.block_devices:
            self._give_back_volumes(attempt_only)

    def _give_back_volumes(self, attempt_only: bool) -> None:
        volumes, devices = self.host.volumes, self.request.instance.block_devices
        try:
            if attempt_only:
                volumes.detach(self.context, self.instance_uuid, devices, self.host.name)
            else:
                volumes.release(self.context, self.instance_uuid, devices, built=False)
        except Exception as error:
            self.warn("Volumes were not given back: %s", cause(error))

    def _give_back_network(self) -> None:
        brought = brought_ports(self.request.spec.networks)
        try:
            self.host.deallocate_network(self.context, self.instance_uuid, brought)
        except Exception as error:
            self.warn("Ports were not given back: %s", cause(error))

    def is_followed(self) -> bool:
        """Tell whether a newer attempt here uses the ports by now."""
        return any(
            (other.action_id, other.attempt) > (self.action_id, self.attempt)
            for other in self.host.hand.of_instance(self.instance_uuid)
        )

    def end(self, answer: build.Answer | None = None) -> None:
        """Let go of the attempt and give its claim back; also takes the answer to a failure."""
        host = self.host
        host.hand.end(self)
        if host.tracker.release(self.node, self.instance_uuid, self.token):
            host.tell_picture(self.node)
