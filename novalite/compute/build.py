# SPDX-License-Identifier: Apache-2.0
"""How a compute builds a server. The other half of conductor/tasks/build_instances.py.

    build_and_run_instance   claim in the node's books; refused: Build.refuse
      Build.on_begun         the conductor's answer: GO, or it is not ours (Build.leave)
    Build.run                in a build slot, under the instance's lock:
      start_over             what a former handling left of this server goes
      allocate_networks      task state networking
      attach_volumes         task state block_device_mapping, if the server has volumes
      spawn                  task state spawning; leaves the guest paused
      let_run                resume, unless the fence fell or a cancel came since GO; ask finish
    Build.on_finished        DONE: mark_done; SUPERSEDED: leave
    Build.fail               whatever raised: what was made goes first, then the failure is told

Nothing of the server is touched before GO. Each step may be the last one of this process: what is
on the host then is found by the next registration, what is in the database by recovery. Methods
named on_ run in the reporter's thread and hand on. The rules are those of docs/architecture.md.
"""

import traceback

from novalite import crash, exception, log
from novalite.compute import claims
from novalite.compute.attempt import Attempt
from novalite.compute.hand import Stage
from novalite.compute.host import MANAGER_LOG, ComputeHost, cause, made_by
from novalite.compute.reporter import Ask
from novalite.objects import build, capacity
from novalite.objects.states import PowerState, TaskState, Verdict

LOG = log.get(__name__)
REPORT_LOG = log.get(log.REPORT)


def build_and_run_instances(host: ComputeHost, requests: list[build.BuildRequest]) -> None:
    """Claim for all of them, then let all ask begin in one report."""
    started: list[tuple[Build, Ask]] = []
    for request in requests:
        attempt = Build(host, request)
        try:
            ask = build_and_run_instance(attempt)
        except Exception:
            LOG.exception("A build message was given up", instance=request.instance.uuid)
            attempt.end()
            continue
        if ask is not None:
            started.append((attempt, ask))
    tickets = host.reporter.ask(*[ask for _, ask in started])
    for (attempt, _), ticket in zip(started, tickets, strict=True):
        attempt.ticket = ticket


def build_and_run_instance(attempt: "Build") -> Ask | None:
    """Step 5 of a boot: claim, and return the question whether the build may begin.

    None: the message is ignored, or the claim was refused.
    """
    host, request = attempt.host, attempt.request
    crash.point(host.conf, "build.before_claim")
    ignored, dropped = host.hand.take(attempt)
    if ignored is not None:
        attempt.say("The message for attempt %d is ignored: %s", attempt.attempt, ignored)
        return None
    for lower in dropped:
        host.forget(lower)
    attempt.say("step=5 attempt %d on node %s", attempt.attempt, attempt.node)
    limits = request.limits.as_dict() if request.limits is not None else {}
    MANAGER_LOG.info("%s", limits, context=attempt.context)
    try:
        verdict = host.tracker.claim(
            attempt.node,
            attempt.instance_uuid,
            capacity.need(request.spec.flavor, request.spec.volume_backed),
            request.limits,
            token=attempt.token,
            attempt=attempt.attempt,
            flavorid=request.spec.flavor.flavorid,
        )
    except exception.ComputeHostNotFound as error:
        attempt.refuse(error.message(), stale=False)
        return None
    attempt.steps.claimed(verdict.numbers(), verdict.reason)
    claims.announce(attempt.context, attempt.instance_uuid, verdict)
    crash.point(host.conf, "build.after_claim")
    if verdict.reason is not None:
        attempt.refuse(verdict.reason, stale=verdict.stale)
        return None
    attempt.resources = verdict.resources()
    return request.context, attempt.begin(verdict.picture), attempt.on_begun


class Build(Attempt):
    """The flow of one attempt on this host, from its claim to the answer to its end."""

    def on_begun(self, answer: build.Answer) -> None:
        """Take the answer to begin."""
        hand = self.host.hand
        if answer.verdict not in (Verdict.GO, Verdict.RESUME):
            if hand.move(self, Stage.CLAIMED, Stage.LEAVING):
                self.host.ends.submit(self.leave, answer)
            return
        # Only this thread can lift the fence, so a fall after the report was sent shows here.
        self.falls = self.host.fence.falls
        if hand.move(self, Stage.CLAIMED, Stage.QUEUED, begun=True):
            REPORT_LOG.info(
                "Submitted allocation for instance",
                context=self.context,
                instance=self.instance_uuid,
            )
            self.host.builds.submit(self.run)

    def run(self) -> None:
        """Build the guest; in a build slot."""
        host = self.host
        with host.hand.instance_lock(self.instance_uuid):
            if self.is_fenced():
                self.begin_again(Stage.QUEUED)
                return
            if not host.hand.move(self, Stage.QUEUED, Stage.RUNNING):
                return
            crash.point(host.conf, "build.after_begin")
            try:
                self.start_over()
                self.allocate_networks()
                crash.point(host.conf, "build.after_network")
                self.attach_volumes()
                self.spawn()
                self.let_run()
            except exception.BuildCancelled:
                self.stop()
            except Exception as error:
                self.fail(error)

    def start_over(self) -> None:
        """Remove whatever guest of this server is here: nothing is adopted (rule 3)."""
        self.paused = False
        left = self.host.driver.get_guest(self.instance_uuid)
        if left is not None:
            self.say("The guest that attempt %d left here is removed", left.metadata.attempt)
            self.host.driver.destroy(self.instance_uuid)

    def allocate_networks(self) -> None:
        """Get the ports; those that a former handling made are used again."""
        self.steps.begin("build")
        self.steps.begin("network")
        self.tell_progress(TaskState.NETWORKING)
        spec = self.request.spec
        if spec.networks:
            self.network_info = self.host.network.allocate(
                self.context,
                self.instance_uuid,
                self.host.name,
                spec.networks,
                spec.security_groups,
            )
        self.steps.end("network")
        if self.is_cancelled():
            raise exception.BuildCancelled(instance_uuid=self.instance_uuid)

    def attach_volumes(self) -> None:
        """Get the volumes; those that a former handling made are used again."""
        host, instance = self.host, self.request.instance
        if not instance.block_devices:
            return
        self.steps.begin("volumes")
        self.tell_progress(TaskState.BLOCK_DEVICE_MAPPING)
        instance.block_devices = host.volumes.attach(
            self.context,
            self.instance_uuid,
            host.name,
            instance.block_devices,
            self.is_cancelled,
            lambda: crash.point(host.conf, "volumes.after_create"),
        )
        crash.point(host.conf, "volumes.after_attach")
        self.steps.end("volumes")

    def spawn(self) -> None:
        """Make the guest and leave it paused."""
        self.steps.begin("spawn")
        self.tell_progress(TaskState.SPAWNING, self.network_info or None)
        self.host.driver.spawn(
            self.context,
            self.request.instance,
            self.request.spec.image,
            self.network_info,
            self.metadata(done=False),
            self.is_cancelled,
        )

    def let_run(self) -> None:
        """Resume the guest and ask finish.

        Both are inside the fence's passage: a fence that falls meanwhile finds the guest in stage
        finishing and pauses it.

        :raises BuildCancelled: the fence fell, or a cancel came, since GO
        """
        host = self.host
        with host.fence.passage(self.falls) as is_open:
            if not is_open or self.cancelled:
                raise exception.BuildCancelled(instance_uuid=self.instance_uuid)
            host.driver.finish_spawn(self.request.instance)
            crash.point(host.conf, "build.after_spawn")
            self.steps.end("spawn")
            self.steps.end("build")
            host.tracker.settle(self.node, self.instance_uuid, self.token)
            finish = self.success()
            if not host.hand.move(self, Stage.RUNNING, Stage.FINISHING):
                raise exception.BuildCancelled(instance_uuid=self.instance_uuid)
            [self.ticket] = host.reporter.ask((self.request.context, finish, self.on_finished))

    def on_finished(self, answer: build.Answer) -> None:
        """Take the answer to finish."""
        hand, ends = self.host.hand, self.host.ends
        if answer.verdict is Verdict.DONE:
            if hand.move(self, Stage.FINISHING, Stage.DONE):
                ends.submit(self.mark_done)
        elif hand.move(self, Stage.FINISHING, Stage.LEAVING):
            ends.submit(self.leave, answer)

    def mark_done(self) -> None:
        """Write into the guest that it is a server's now; resume it if a fence had paused it.

        Until that is written the work stays in hand as done, so that a fence leaves it alone.
        """
        host = self.host
        crash.point(host.conf, "build.after_finish")
        with host.hand.instance_lock(self.instance_uuid):
            try:
                host.driver.set_metadata(self.instance_uuid, self.metadata(done=True))
                if self.paused:
                    host.driver.unpause_guest(self.instance_uuid)
                    self.say("The guest that the fence had paused runs again")
            except exception.DomainNotFound:
                self.say("The guest is gone already")
            except Exception as error:
                self.warn("The guest is not marked as done yet: %s", cause(error))
                host.unmarked[self.instance_uuid] = self.mark_done
                return
            host.unmarked.pop(self.instance_uuid, None)
            if not self.cancelled:
                host.power.note(self.instance_uuid, self.node, PowerState.RUNNING)
            host.hand.end(self)
        MANAGER_LOG.info(
            "Took %.2f seconds to build instance.",
            self.steps.seconds("build"),
            context=self.context,
            instance=self.instance_uuid,
        )

    # -- other ends

    def refuse(self, reason: str, *, stale: bool) -> None:
        """The claim does not fit: report that, after what is here of this attempt is gone."""
        if self.host.hand.move(self, Stage.CLAIMED, Stage.REFUSED):
            self.host.ends.submit(self._refuse, reason, stale)

    def _refuse(self, reason: str, stale: bool) -> None:
        host = self.host
        guest_left = False
        with host.hand.instance_lock(self.instance_uuid):
            try:
                guest = host.guest_of(self)
            except exception.HypervisorError as error:
                self.warn("The hypervisor cannot be asked: %s", error.message())
                guest, guest_left = None, True
            if guest is not None and guest.metadata.done:
                self.say("Attempt %d has finished here; its message is ignored", self.attempt)
                host.hand.end(self)
                return
            if guest is not None:
                guest_left = not self.remove_guest()
        if self.stage is not Stage.REFUSED:
            return
        refusal = self.refusal(reason, stale=stale, guest_left=guest_left)
        [self.ticket] = host.reporter.ask((self.request.context, refusal, self.end))

    def leave(self, answer: build.Answer) -> None:
        """The attempt is not ours (any more): remove what is here of it and of nothing else."""
        host = self.host
        self.say("Attempt %d is %s: %s", self.attempt, answer.verdict, answer.reason)
        try:
            if answer.verdict is not Verdict.DROP:
                with host.hand.instance_lock(self.instance_uuid):
                    guest = host.driver.get_guest(self.instance_uuid)
                    mine = guest is None or made_by(guest, self)
                    if guest is not None and mine:
                        self.remove_guest()
                    # Another attempt that is here, finished perhaps, needs the ports.
                    if mine and not self.is_followed():
                        self.give_back(attempt_only=True)
        finally:
            self.end()

    def fail(self, error: Exception) -> None:
        """Report a failed build after everything that it made is gone."""
        known = isinstance(error, exception.NovaliteException)
        inner = "" if known else traceback.format_exc()
        LOG.error(
            "Instance failed to spawn: %s%s",
            cause(error),
            f"\n{inner}" if inner else "",
            context=self.context,
            instance=self.instance_uuid,
        )
        self.steps.end_all(cause(error))
        guest_left = not self.remove_guest()
        self.give_back(attempt_only=self.is_cancelled(), volumes=not guest_left)
        self.host.tracker.release(self.node, self.instance_uuid, self.token)
        if exception.is_of_host(error):
            self.host.tracker.note_failure(self.node)
        fault = self.fault(error, inner, guest_left=guest_left)
        finish = self.failure(fault, error, guest_left=guest_left)
        if not self.host.hand.move(self, Stage.RUNNING, Stage.FAILED):
            self.end()
            return
        [self.ticket] = self.host.reporter.ask((self.request.context, finish, self.end))

    def stop(self) -> None:
        """End a run that was cancelled or fenced: no guest stays; a fenced one asks again."""
        gone = self.remove_guest()
        if self.begin_again(Stage.RUNNING):
            return
        # Whoever cancelled goes on from here under the instance's lock: a delete that also gives
        # the ports back, or a newer attempt that uses them.
        self.say("Attempt %d has stopped%s", self.attempt, "" if gone else "; its guest is left")
        self.end()

    def begin_again(self, before: Stage) -> bool:
        """Ask begin anew with the same token, after a fence; False if a cancel came first."""
        if not self.host.hand.move(self, before, Stage.CLAIMED):
            return False
        self.say("The fence fell: begin is asked again")
        [self.ticket] = self.host.reporter.ask((self.request.context, self.begin(), self.on_begun))
        return True

    def withdrawn_by_fence(self) -> None:
        """The fence fell before finish was ever sent: the guest goes and begin is asked again."""
        with self.host.hand.instance_lock(self.instance_uuid):
            self.stop()
