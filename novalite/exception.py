# SPDX-License-Identifier: Apache-2.0
"""Every error of the domain. None of them knows HTTP: api/errors.py maps them, by MRO.

NovaliteException
├── Invalid                    bad input; ``field``, ``value`` and what is allowed are in the text
│   ├── MarkerNotFound, FlavorInBodyNotFound ... (found by id inside a body)
├── NotFound                   InstanceNotFound, FlavorNotFound, ServiceNotFound, ...
├── Conflict                   InstanceActionOpen, InstanceNotReady, FlavorExists, ...
├── Forbidden                  PolicyNotAuthorized, OverQuota, ...
├── Unavailable                DatabaseUnavailable, BusUnavailable, NeighborUnavailable
├── NoValidHost, MaxRetriesExceeded, BuildAbortException
└── ComputeResourcesUnavailable, HypervisorError ...
"""

from typing import Any, ClassVar


class NovaliteException(Exception):
    """Base: ``msg_fmt`` with keyword arguments, which must be JSON primitives to cross the bus.

    Build user messages with :meth:`message`; ``str()`` of an error that came over the bus carries
    the remote traceback.
    """

    msg_fmt: ClassVar[str] = "An unknown error occurred."

    def __init__(self, message: str | None = None, **kwargs: Any):
        self.kwargs = kwargs
        self._text = message
        super().__init__(self.message())

    def message(self) -> str:
        """Return the text for a user, made from the template and the arguments."""
        if self._text is not None:
            return self._text
        try:
            return self.msg_fmt % self.kwargs
        except (KeyError, TypeError):
            return self.msg_fmt


class Invalid(NovaliteException):
    msg_fmt = "Bad Request - Invalid Parameters"


class InvalidInput(Invalid):
    msg_fmt = "Invalid input received: %(reason)s"


class ValidationError(Invalid):
    msg_fmt = "%(detail)s"


class MarkerNotFound(Invalid):
    msg_fmt = "Marker %(marker)s could not be found."


class ImageInBodyNotFound(Invalid):
    msg_fmt = "Image %(image_id)s could not be found."


class ImageNotActive(ImageInBodyNotFound):
    msg_fmt = "Image %(image_id)s is not active."


class FlavorInBodyNotFound(Invalid):
    msg_fmt = "Flavor %(flavor_id)s could not be found."


class HostInBodyNotFound(Invalid):
    msg_fmt = "Compute host %(host)s could not be found."


class NetworkInBodyNotFound(Invalid):
    msg_fmt = "Network %(network_id)s could not be found."


class PortInBodyNotFound(Invalid):
    msg_fmt = "Port %(port_id)s not found."


class SecurityGroupInBodyNotFound(Invalid):
    msg_fmt = "Security group %(name)s not found."


class InstanceGroupInBodyNotFound(Invalid):
    msg_fmt = "Instance group %(group_uuid)s could not be found."


class InvalidKeypair(Invalid):
    msg_fmt = "Keypair data is invalid: %(reason)s"


class FixedIpInvalid(Invalid):
    msg_fmt = "Fixed IP address %(address)s is not valid on network %(network_id)s."


class FixedIpAlreadyInUse(Invalid):
    msg_fmt = "Fixed IP address %(address)s is already in use."


class InvalidFixedIpAndMaxCountRequest(Invalid):
    msg_fmt = "Failed to launch instances: %(reason)s"


class MultiplePortsNotApplicable(Invalid):
    msg_fmt = "Failed to launch instances: %(reason)s"


class NetworkRequiresSubnet(Invalid):
    msg_fmt = "Network %(network_id)s requires a subnet in order to boot instances on."


class PortRequiresFixedIP(Invalid):
    msg_fmt = "Port %(port_id)s requires a FixedIP in order to be used."


class ComputeServiceUnavailable(Invalid):
    msg_fmt = "Compute service of %(host)s is unavailable at this time."


class ZoneNotAvailable(Invalid):
    msg_fmt = "The requested availability zone is not available"


class AggregateUpdateRefused(Invalid):
    msg_fmt = "Cannot update aggregate %(aggregate_id)s. Reason: %(reason)s."


class AggregateNotEmpty(Invalid):
    msg_fmt = "Cannot remove aggregate %(aggregate_id)s. Reason: Host aggregate is not empty."


class FlavorTooSmall(Invalid):
    msg_fmt = "Flavor's %(resource)s is too small for requested image."


class NotFound(NovaliteException):
    msg_fmt = "Resource could not be found."


class InstanceNotFound(NotFound):
    msg_fmt = "Instance %(instance_id)s could not be found."


class FlavorNotFound(NotFound):
    msg_fmt = "Flavor %(flavor_id)s could not be found."


class FlavorExtraSpecNotFound(NotFound):
    msg_fmt = "Flavor %(flavor_id)s has no extra specs with key %(key)s."


class InstanceTagNotFound(NotFound):
    msg_fmt = "Server %(instance_id)s has no tag '%(tag)s'"


class MetadataItemNotFound(NotFound):
    msg_fmt = "Metadata item was not found"


class FlavorAccessNotFound(NotFound):
    msg_fmt = "Flavor access not found for %(flavor_id)s / %(project_id)s combination."


class ServiceNotFound(NotFound):
    msg_fmt = "Service %(service_id)s could not be found."


class ComputeHostNotFound(NotFound):
    msg_fmt = "Compute host %(host)s could not be found."


class ActionNotFound(NotFound):
    msg_fmt = "Action for request_id %(request_id)s on instance %(instance_id)s not found"


class KeypairNotFound(NotFound):
    msg_fmt = "Keypair %(name)s not found for user %(user_id)s"


class InstanceGroupNotFound(NotFound):
    msg_fmt = "Instance group %(group_uuid)s could not be found."


class AggregateNotFound(NotFound):
    msg_fmt = "Aggregate %(aggregate_id)s could not be found."


class AggregateHostNotFound(NotFound):
    msg_fmt = "Aggregate %(aggregate_id)s has no host %(host)s."


class VersionNotFound(NotFound):
    msg_fmt = "API version %(version)s is not supported on this method."


class Conflict(NovaliteException):
    msg_fmt = "Conflict."


class InstanceActionOpen(Conflict):
    msg_fmt = (
        "Cannot '%(action)s' instance %(instance_id)s while it is in task_state %(task_state)s"
    )


class InstanceInvalidState(Conflict):
    msg_fmt = "Cannot '%(action)s' instance %(instance_id)s while it is in %(attr)s %(state)s"


class InstanceIsLocked(Conflict):
    msg_fmt = "Instance %(instance_id)s is locked"


class InstanceNotReady(Conflict):
    msg_fmt = "Instance %(instance_id)s is not ready"


class FlavorExists(Conflict):
    msg_fmt = "Flavor with name %(name)s already exists."


class FlavorIdExists(Conflict):
    msg_fmt = "Flavor with ID %(flavor_id)s already exists."


class FlavorAccessExists(Conflict):
    msg_fmt = "Flavor access already exists for flavor %(flavor_id)s and project %(project_id)s."


class KeyPairExists(Conflict):
    msg_fmt = "Key pair '%(key_name)s' already exists."


class ServiceInUse(Conflict):
    msg_fmt = "Unable to delete compute service that is hosting instances."


class AggregateNameExists(Conflict):
    msg_fmt = "Aggregate %(aggregate_name)s already exists."


class AggregateHostExists(Conflict):
    msg_fmt = "Aggregate %(aggregate_id)s already has host %(host)s."


class AggregateAddRefused(Conflict):
    msg_fmt = "Cannot add host to aggregate %(aggregate_id)s. Reason: %(reason)s."


class AggregateRemoveRefused(Conflict):
    msg_fmt = "Cannot remove host from aggregate %(aggregate_id)s. Reason: %(reason)s."


class NetworkAmbiguous(Conflict):
    msg_fmt = "Multiple possible networks found, use a Network ID to be more specific."


class PortInUse(Conflict):
    msg_fmt = "Port %(port_id)s is still in use."


class SecurityGroupNotUnique(Conflict):
    msg_fmt = (
        "Multiple security groups found matching name '%(name)s'. Use an ID to be more specific."
    )


class Forbidden(NovaliteException):
    msg_fmt = "Not authorized."


class PolicyNotAuthorized(Forbidden):
    msg_fmt = "Policy doesn't allow %(action)s to be performed."


class ExternalNetworkAttachForbidden(Forbidden):
    msg_fmt = "It is not allowed to create an interface on external network %(network_id)s"


class OverQuota(Forbidden):
    msg_fmt = (
        "Quota exceeded for %(overs)s: Requested %(req)s, but already used %(used)s of "
        "%(allowed)s %(overs)s"
    )


class KeypairLimitExceeded(OverQuota):
    msg_fmt = "Quota exceeded, too many key pairs."


class ServerGroupLimitExceeded(OverQuota):
    msg_fmt = "Quota exceeded, too many server groups."


class ServerGroupMemberLimitExceeded(OverQuota):
    msg_fmt = "Quota exceeded, too many servers in group"


class MetadataLimitExceeded(OverQuota):
    msg_fmt = "Maximum number of metadata items exceeds %(allowed)d"


class Unavailable(NovaliteException):
    msg_fmt = "The service is currently unavailable, try again."


class DatabaseUnavailable(Unavailable):
    msg_fmt = "The database is currently unavailable, try again."


class BusUnavailable(Unavailable):
    msg_fmt = "The message bus is currently unavailable, try again."


class SchedulerExtensionBroken(Unavailable):
    msg_fmt = "The scheduler could not decide: the %(who)s is broken (%(what)s)."


class VersionUnsupported(BusUnavailable):
    """The other side is older; the log says which [upgrade_levels] to set."""


class NeighborUnavailable(Unavailable):
    msg_fmt = "The %(service)s service is currently unavailable, try again."


class NeighborError(NovaliteException):
    msg_fmt = "The %(service)s service answered %(status)s: %(reason)s"


class PortBindingFailed(NovaliteException):
    msg_fmt = (
        "Binding failed for port %(port_id)s, please check the logs of the network service for "
        "more information."
    )


class NoValidHost(NovaliteException):
    msg_fmt = "No valid host was found. %(reason)s"


class MaxRetriesExceeded(NoValidHost):
    msg_fmt = "Exceeded maximum number of retries. %(reason)s"


class ComputeResourcesUnavailable(NovaliteException):
    msg_fmt = "Insufficient compute resources: %(reason)s."


class RescheduledException(NovaliteException):
    msg_fmt = "Build of instance %(instance_uuid)s was re-scheduled: %(reason)s"


class BuildAbortException(NovaliteException):
    msg_fmt = "Build of instance %(instance_uuid)s aborted: %(reason)s"


class HypervisorError(NovaliteException):
    msg_fmt = "Hypervisor error: %(reason)s"


class DomainNotFound(HypervisorError):
    msg_fmt = "Domain of instance %(instance_uuid)s not found"


class BuildCancelled(NovaliteException):
    msg_fmt = "Build of instance %(instance_uuid)s was cancelled"


class ConfigurationError(NovaliteException):
    msg_fmt = "%(reason)s"


def is_of_host(error: Exception) -> bool:
    """Tell whether a build failed through the host that it was tried on.

    The hypervisor, a port that cannot be bound there, an error that nobody expected. What other
    services answer, and what was asked for, is not the host's.
    """
    if isinstance(error, NovaliteException):
        return isinstance(error, (HypervisorError, PortBindingFailed))
    return True


# Answers of a neighbour to what was asked for; any host would get the same.
_REFUSALS = frozenset({400, 403, 404, 409})


def is_of_request(error: Exception) -> bool:
    """Tell whether a build failed for what was asked for and not for the host it was tried on.

    A bad image or flavor, a port that is taken, a quota: another host would fail alike.
    """
    if isinstance(error, NeighborError):
        return error.kwargs.get("status") in _REFUSALS
    return isinstance(error, (Invalid, NotFound, Conflict, Forbidden))
