# SPDX-License-Identifier: Apache-2.0
"""novalite's defaults for the bus are in force before and after the library has come up."""

from oslo_config import cfg

from novalite import rpc
from novalite.conf import messaging


def test_defaults_survive_the_transport() -> None:
    conf = cfg.ConfigOpts()
    messaging.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    bus = rpc.Bus(conf)
    for group, values in messaging.DEFAULTS.items():
        section = conf if group is None else conf[group]
        assert {name: section[name] for name in values} == values
    assert bus.transport._driver._connection_pool._max_size == 64
    bus.close()


def test_a_file_wins_over_the_defaults(tmp_path) -> None:
    path = tmp_path / "novalite.conf"
    path.write_text("[oslo_messaging_rabbit]\nrpc_conn_pool_size = 100\n")
    conf = cfg.ConfigOpts()
    messaging.register_opts(conf)
    conf(["--config-file", str(path)], default_config_dirs=[])
    assert conf.oslo_messaging_rabbit.rpc_conn_pool_size == 100


def test_registering_twice_is_harmless() -> None:
    conf = cfg.ConfigOpts()
    messaging.register_opts(conf)
    messaging.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    assert conf.executor_thread_pool_size == 8
