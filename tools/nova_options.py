# SPDX-License-Identifier: Apache-2.0
"""Writes ``nova_options.txt`` of the configuration check: the options of Nova and its libraries.

``novalite-status config check`` reads it to tell an option of Nova that novalite does not have from
a typing error. It holds facts only: section, name, type and former names; no defaults and no help.
Run it by hand when a new Nova is out:

    python3 -m venv /tmp/nova && /tmp/nova/bin/pip install nova
    for version in 15.1.5 18.3.0 21.2.4 27.5.1; do      # options that a later Nova has dropped
        /tmp/nova/bin/pip install --no-deps --target /tmp/old/$version nova==$version
    done
    cd novalite/advisor/config_check
    /tmp/nova/bin/python ../../../tools/nova_options.py /tmp/old/* > nova_options.txt

Each directory is looked at by a process of its own, with the libraries of the environment.
"""

import contextlib
import importlib.metadata
import json
import os
import subprocess
import sys

# Section -> name -> (type, former names as "section/name").
Table = dict[str, dict[str, tuple[str, list[str]]]]

# Options of Kilo to Newton that no version on PyPI has any more, and those of the libraries of
# that time. Operators carry them along. With * it is a family of names.
GONE = {
    "DEFAULT": {
        "allow_migrate_to_same_host": "bool",
        "allowed_rpc_exception_modules": "list",
        "amqp_durable_queues": "bool",
        "api_rate_limit": "bool",
        "baremetal_*": "str",
        "cells_*": "str",
        "cert_manager": "str",
        "cert_topic": "str",
        "compute_available_monitors": "multi",
        "compute_manager": "str",
        "compute_stats_class": "str",
        "conductor_manager": "str",
        "connection_type": "str",
        "console_manager": "str",
        "db_backend": "str",
        "dbapi_use_tpool": "bool",
        "disable_process_locking": "bool",
        "ec2_*": "str",
        "fake_call": "bool",
        "fake_rabbit": "bool",
        "fatal_exception_format_errors": "bool",
        "force_config_drive": "str",
        "glance_*": "str",
        "host_state_interval": "int",
        "hyperv_*": "str",
        "image_cache_*": "str",
        "image_info_filename_pattern": "str",
        "image_service": "str",
        "instance_usage_audit": "bool",
        "keystone_ec2_*": "str",
        "l3_lib": "str",
        "libvirt_*": "str",
        "linuxnet_interface_driver": "str",
        "lock_path": "str",
        "lockout_*": "str",
        "matchmaker_*": "str",
        "memcached_servers": "list",
        "metadata_manager": "str",
        "network_api_class": "str",
        "neutron_*": "str",
        "notification_driver": "multi",
        "notification_topics": "list",
        "notify_on_any_change": "bool",
        "osapi_compute_ext*": "str",
        "osapi_hide_*": "str",
        "policy_default_rule": "str",
        "powervm_*": "str",
        "qpid_*": "str",
        "quantum_*": "str",
        "quota_injected_file_path_bytes": "int",
        "rabbit_*": "str",
        "rpc_backend": "str",
        "rpc_cast_timeout": "int",
        "rpc_conn_pool_size": "int",
        "rpc_thread_pool_size": "int",
        "rpc_zmq_*": "str",
        "s3_*": "str",
        "scheduler_manager": "str",
        "security_group_api": "str",
        "service_neutron_metadata_proxy": "bool",
        "slave_connection": "str",
        "sql_*": "str",
        "sqlite_synchronous": "bool",
        "ssl_only": "bool",
        "use_neutron": "bool",
        "use_syslog_rfc_format": "bool",
        "verbose": "bool",
        "vmwareapi_*": "str",
        "volume_api_class": "str",
        "xenapi_*": "str",
        "xvpvnc*": "str",
    },
    "conductor": {
        "manager": "str",
        "topic": "str",
        "use_local": "bool",
    },
    "database": {
        "idle_timeout": "int",
        "min_pool_size": "int",
        "mysql_enable_ndb": "bool",
        "sqlite_db": "str",
        "use_db_reconnect": "bool",
        "use_tpool": "bool",
    },
    "glance": {
        "api_servers": "list",
        "host": "str",
        "port": "port",
        "protocol": "str",
    },
    "keystone_authtoken": {
        "admin_password": "str",
        "admin_tenant_name": "str",
        "admin_token": "str",
        "admin_user": "str",
        "auth_admin_prefix": "str",
        "auth_host": "str",
        "auth_port": "port",
        "auth_protocol": "str",
        "auth_uri": "str",
        "check_revocations_for_cached": "bool",
        "hash_algorithms": "list",
        "identity_uri": "str",
        "revocation_cache_time": "int",
        "signing_dir": "str",
    },
    "libvirt": {
        "vif_driver": "str",
    },
    "neutron": {
        "admin_auth_url": "str",
        "admin_password": "str",
        "admin_tenant_name": "str",
        "admin_user_id": "str",
        "admin_username": "str",
        "auth_strategy": "str",
        "url": "str",
        "url_timeout": "int",
    },
    "oslo_concurrency": {
        "disable_process_locking": "bool",
        "lock_path": "str",
    },
    "oslo_messaging_rabbit": {
        "fake_rabbit": "bool",
        "heartbeat_in_pthread": "bool",
        "rabbit_host": "str",
        "rabbit_hosts": "list",
        "rabbit_max_retries": "int",
        "rabbit_password": "str",
        "rabbit_port": "port",
        "rabbit_userid": "str",
        "rabbit_virtual_host": "str",
    },
    "oslo_policy": {
        "enforce_new_defaults": "bool",
        "enforce_scope": "bool",
    },
}
# Sections of libraries that are gone or optional, and those that another option gives a name.
WHOLE = (
    "baremetal",
    "keymgr",
    "matchmaker_redis",
    "mdev_*",
    "nova_sys_admin",
    "osapi_v3",
    "oslo_messaging_amqp",
    "oslo_messaging_zmq",
    "privsep_osbrick",
    "profiler",
    "vgpu_*",
    "vif_plug_*",
    "zookeeper",
)
# The sections that hold the login of an account: what they take depends on auth_type.
LOGINS = ("password", "v3password", "v3applicationcredential", "v2password", "token")


def main() -> None:
    """Print the table of this environment and of the versions in the named directories."""
    table: Table = {}
    for directory in ["", *sys.argv[1:]]:
        environment = dict(os.environ, PYTHONPATH=directory)
        command = [sys.executable, __file__, "--dump"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        for section, names in json.loads(done.stdout).items():
            for name, (kind, former) in names.items():
                found = table.setdefault(section, {})
                known, others = found.get(name, (kind, []))
                others.extend(each for each in former if each not in others)
                # What was a text once may still be one in a file.
                found[name] = (kind if kind == known else "str", others)
    for section, gone in GONE.items():
        for name, kind in gone.items():
            known, others = table.setdefault(section, {}).get(name, (kind, []))
            table[section][name] = (kind if kind == known else "str", others)
    for section in WHOLE:
        table[section] = {"*": ("str", [])}
    print("# SPDX-License-Identifier: Apache-2.0")
    print("# Written by tools/nova_options.py: NAME TYPE [FORMER SECTION/NAME ...] by section.")
    for section in sorted(table):
        print(f"[{section}]")
        for name, (kind, former) in sorted(table[section].items()):
            print(" ".join([name, kind, *sorted(former)]))


def dump() -> None:
    """Print the table of the Nova that this process imports, as JSON."""
    table: Table = {}
    for point in importlib.metadata.entry_points(group="oslo.config.opts"):
        if ".test" in point.name or point.name == "cotyledon":
            continue
        with contextlib.redirect_stdout(sys.stderr):
            try:
                found = point.load()()
            except Exception as error:  # a library that does not go with an old Nova
                print(f"left out: {point.name}: {error!r}", file=sys.stderr)
                continue
        for group, opts in found:
            for opt in opts:
                _add(table, getattr(group, "name", group) or "DEFAULT", opt)
    _add_logins(table)
    json.dump(table, sys.stdout)


def _add(table: Table, section: str, opt: object) -> None:
    former = []
    for old in opt.deprecated_opts:
        former.append(f"{old.group or section}/{(old.name or opt.name).replace('-', '_')}")
    table.setdefault(section, {})[opt.dest] = (_kind(opt), former)


def _add_logins(table: Table) -> None:
    from keystoneauth1 import loading

    for section, names in table.items():
        if "auth_type" not in names and "auth_section" not in names:
            continue
        for login in LOGINS:
            for opt in loading.get_auth_plugin_conf_options(login):
                if opt.dest not in names:
                    _add(table, section, opt)


def _kind(opt: object) -> str:
    if opt.multi:
        return "multi"
    kind = type(opt.type).__name__
    short = {"Boolean": "bool", "Integer": "int", "Float": "float", "List": "list"}
    return "port" if kind == "Port" else short.get(kind, "str")


if __name__ == "__main__":
    dump() if sys.argv[1:] == ["--dump"] else main()
