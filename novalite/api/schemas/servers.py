# SPDX-License-Identifier: Apache-2.0
"""Bodies of /servers and /servers/{id}/action."""

from novalite.api import validation
from novalite.api.schemas import common

# So many servers one request may ask for.
MAX_COUNT = 1000

# In GB. No block storage takes more, and a build would find that out late.
_VOLUME_SIZE: common.Json = {
    "type": ["integer", "string", "null"],
    "pattern": "^[0-9]{0,9}$",
    "maximum": 2147483647,
}
_BLOCK_DEVICE: common.Json = {
    "type": "object",
    "properties": {
        "source_type": {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]},
        "destination_type": {"type": "string", "enum": ["volume", "local"]},
        "uuid": {"type": "string", "maxLength": 255},
        "image_id": {"type": "string", "maxLength": 255},
        "boot_index": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]{1,10}$"},
        "delete_on_termination": common.boolean(),
        "volume_size": _VOLUME_SIZE,
        "guest_format": {"type": "string", "maxLength": 255},
        "device_name": {"type": "string", "maxLength": 255},
        "device_type": {"type": "string", "maxLength": 255},
        "disk_bus": {"type": "string", "maxLength": 255},
        "no_device": {},
        "volume_id": {"type": "string"},
        "snapshot_id": {"type": "string"},
    },
    "additionalProperties": False,
}
# The syntax of old: volumes by the name of the device.
_LEGACY_BLOCK_DEVICE: common.Json = {
    "type": "object",
    "properties": {
        "virtual_name": {"type": "string", "maxLength": 255},
        "volume_id": common.UUID,
        "snapshot_id": common.UUID,
        "volume_size": _VOLUME_SIZE,
        "device_name": {"type": "string", "minLength": 1, "maxLength": 255},
        "delete_on_termination": common.boolean(),
        "no_device": {},
        "connection_info": {"type": "object"},
    },
    "additionalProperties": False,
}
_NETWORK: common.Json = {
    "type": "object",
    "properties": {
        "uuid": common.UUID,
        "port": {"oneOf": [common.UUID, {"type": "null"}]},
        "fixed_ip": {"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "ipv6"}]},
    },
    "additionalProperties": False,
}
_UUIDS: common.Json = {
    "oneOf": [common.UUID, {"type": "array", "items": common.UUID, "maxItems": 1000}]
}
_HINTS: common.Json = {
    "type": "object",
    "properties": {
        "group": common.UUID,
        "different_host": _UUIDS,
        "same_host": _UUIDS,
        "query": {"type": ["string", "object"]},
        "target_cell": {"type": "string"},
        "different_cell": {"type": ["string", "array"], "items": {"type": "string"}},
        "build_near_host_ip": {"type": "string", "format": "ipv4"},
        "cidr": {"type": "string", "pattern": r"^/[0-9a-f.:]+$"},
    },
    "additionalProperties": True,
    "maxProperties": 64,
}
_CREATE: common.Json = {
    "name": common.NAME,
    "flavorRef": {"type": ["string", "integer"], "minLength": 1, "maxLength": 255},
    "imageRef": {"type": "string", "oneOf": [{"format": "uuid"}, {"maxLength": 0}]},
    "adminPass": {"type": "string", "maxLength": 255},
    "metadata": common.METADATA,
    "networks": {"type": "array", "items": _NETWORK, "maxItems": 64},
    "OS-DCF:diskConfig": common.DISK_CONFIG,
    "accessIPv4": common.IPV4,
    "accessIPv6": common.IPV6,
    "personality": {
        "type": "array",
        "items": common.closed(
            {"path": {"type": "string"}, "contents": {"type": "string", "format": "base64"}}
        ),
    },
    "availability_zone": {"type": "string", "minLength": 1, "maxLength": 255, "format": "name"},
    "block_device_mapping": {"type": "array", "items": _LEGACY_BLOCK_DEVICE, "maxItems": 64},
    "block_device_mapping_v2": {"type": "array", "items": _BLOCK_DEVICE, "maxItems": 64},
    "config_drive": common.boolean(null=True),
    "key_name": {"type": "string", "minLength": 1, "maxLength": 255},
    "min_count": common.whole(1),
    "max_count": common.whole(1),
    "return_reservation_id": common.boolean(),
    "security_groups": {
        "type": "array",
        "items": common.closed({"name": {"type": "string", "minLength": 1, "maxLength": 255}}),
        "maxItems": 64,
    },
    "user_data": {"type": ["string", "null"], "format": "base64", "maxLength": 65535},
}

_VOLUME_TYPE: common.Json = {"type": ["string", "null"], "minLength": 0, "maxLength": 255}
_CERTIFICATES: common.Json = {
    "type": ["array", "null"],
    "minItems": 1,
    "maxItems": 50,
    "uniqueItems": True,
    "items": {"type": "string", "minLength": 1, "maxLength": 255, "format": "storable"},
}
# Since when, name, schema.
_LATER: tuple[tuple[int, str, common.Json], ...] = (
    (19, "description", common.DESCRIPTION),
    (52, "tags", common.TAGS),
    (63, "trusted_image_certificates", _CERTIFICATES),
    (74, "host", common.HOST),
    (74, "hypervisor_hostname", common.HOST),
)


def _create(version: int) -> common.Json:
    properties = dict(_CREATE)
    required = ["name", "flavorRef"]
    networks, disks = properties["networks"], properties["block_device_mapping_v2"]
    # Tags of devices came with 2.32, were broken in 2.37 (networks) and 2.33 (disks), and are
    # back from 2.42 on.
    if 32 <= version < 37 or version >= 42:
        networks = _with(networks, tag=common.TAG)
    if version == 32 or version >= 42:
        disks = _with(disks, tag=common.TAG)
    if version >= 37:
        networks = {"oneOf": [networks, {"type": "string", "enum": ["none", "auto"]}]}
        required.append("networks")
    if version >= 67:
        disks = _with(disks, volume_type=_VOLUME_TYPE)
    properties.update(networks=networks, block_device_mapping_v2=disks)
    if version >= 57:
        del properties["personality"]
    for since, name, schema in _LATER:
        if version >= since:
            properties[name] = schema
    return common.closed(
        {
            "server": common.closed(properties, *required),
            "os:scheduler_hints": _HINTS,
            "OS-SCH-HNT:scheduler_hints": _HINTS,
        },
        "server",
    )


def _with(array: common.Json, **more: common.Json) -> common.Json:
    """Return the schema of an array whose items may have more properties."""
    items = array["items"]
    return {**array, "items": {**items, "properties": {**items["properties"], **more}}}


CREATE = validation.schemas(
    *((version, _create(version)) for version in (1, 19, 32, 33, 37, 42, 52, 57, 63, 67, 74))
)

_UPDATE: common.Json = {
    "name": common.NAME,
    "OS-DCF:diskConfig": common.DISK_CONFIG,
    "accessIPv4": common.IPV4,
    "accessIPv6": common.IPV6,
}
UPDATE = validation.schemas(
    (1, common.wrapped("server", _UPDATE)),
    (19, common.wrapped("server", {**_UPDATE, "description": common.DESCRIPTION})),
)

ACTION = validation.schemas((1, {"type": "object", "minProperties": 1, "maxProperties": 1}))
CONSOLE_OUTPUT = validation.schemas(
    (
        1,
        common.wrapped(
            "os-getConsoleOutput",
            {
                "length": {
                    "type": ["integer", "string", "null"],
                    "pattern": "^-?[0-9]{1,10}$",
                    "minimum": -1,
                    "maximum": 2**31 - 1,
                }
            },
        ),
    )
)
_ANYTHING: common.Json = {"type": ["null", "object", "string"]}
LOCK = validation.schemas(
    (1, common.closed({"lock": _ANYTHING}, "lock")),
    (
        73,
        common.closed(
            {
                "lock": {
                    "type": ["object", "null"],
                    "properties": {
                        "locked_reason": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": 255,
                            "format": "storable",
                        }
                    },
                    "additionalProperties": False,
                }
            },
            "lock",
        ),
    ),
)
UNLOCK = validation.schemas((1, common.closed({"unlock": _ANYTHING}, "unlock")))
FORCE_DELETE = validation.schemas((1, common.closed({"forceDelete": _ANYTHING}, "forceDelete")))
