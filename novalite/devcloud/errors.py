# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a development cloud; every text is written for a user."""


class DevCloudError(Exception):
    """Base of all; caught by the command, which prints the text and exits with 1."""


class ProcessError(DevCloudError):
    """A process could not be started or has died; names it and shows its last lines."""


class BrokerError(DevCloudError):
    """The broker cannot be had; says what to do."""


class ServiceError(DevCloudError):
    """A service did not become ready; names it and shows its last log lines."""


class ClientError(DevCloudError):
    """An API is not there or refused."""


class CloudError(DevCloudError):
    """The cloud cannot be had as asked."""
