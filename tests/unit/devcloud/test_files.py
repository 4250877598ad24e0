# SPDX-License-Identifier: Apache-2.0
import os
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg

from novalite.devcloud import configuration, ports, services, state
from novalite.devcloud.broker import Broker
from novalite.devcloud.errors import BrokerError, ServiceError
from novalite.devcloud.ready import ReadyListener

ENDPOINTS = configuration.Endpoints(api=8774, identity=5000, image=9292, network=9696)
PRINTABLE = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1).map(
    lambda text: f"x{text}x"  # oslo.config strips blanks and quotes at the ends
)


@given(PRINTABLE)
def test_rendered_values_are_read_back(value: str) -> None:
    text = configuration.render({"DEFAULT": {"transport_url": value}})
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt("transport_url")])
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(text)
        file.flush()
        conf(["--config-file", file.name], default_config_files=[], default_config_dirs=[])
    assert conf.transport_url == value


def test_later_layers_win() -> None:
    merged = configuration.merge(
        {"DEFAULT": {"a": 1, "b": 2}}, {"DEFAULT": {"b": 3}, "api": {"c": None}}
    )
    assert configuration.render(merged) == "[DEFAULT]\na = 1\nb = 3\n\n[api]\n"


def test_each_compute_has_a_name_and_a_state_path_of_its_own() -> None:
    services_ = configuration.services(ENDPOINTS, state_path="/state", computes=2)
    own = {s.name: s.own["DEFAULT"] for s in services_ if s.program == "novalite-compute"}
    assert own == {
        "compute1": {"host": "compute1", "state_path": "/state/compute1"},
        "compute2": {"host": "compute2", "state_path": "/state/compute2"},
    }


def test_several_conductors_have_different_hosts() -> None:
    names = [
        (service.name, service.host)
        for service in configuration.services(
            ENDPOINTS, state_path="/s", computes=1, conductors=2, schedulers=1
        )
    ]
    assert names[:3] == [
        ("conductor1", "controller1"),
        ("conductor2", "controller2"),
        ("scheduler", "controller"),
    ]


def test_clouds_yaml_has_what_the_client_needs() -> None:
    text = configuration.clouds_yaml(ENDPOINTS, {"novalite": ("admin", "admin", "p:a#ss")})
    cloud = yaml.safe_load(text)["clouds"]["novalite"]
    assert cloud["auth"]["password"] == "p:a#ss"
    assert cloud["auth"]["auth_url"] == "http://127.0.0.1:5000/v3"
    assert cloud["region_name"] == "RegionOne"


def test_openrc_can_be_sourced() -> None:
    text = configuration.openrc(ENDPOINTS, "secret") + 'echo "$OS_AUTH_URL $OS_PASSWORD$OS_CLOUD"'
    done = subprocess.run(
        ["sh", "-c", text], env={"OS_CLOUD": "other"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "http://127.0.0.1:5000/v3 secret\n"


def test_settings_are_kept_and_private(tmp_path: Path) -> None:
    kept = state.State(tmp_path / "cloud")
    assert kept.load() is None
    settings = state.new_settings()
    with kept.lock():
        kept.save(settings)
    assert kept.load() == settings
    assert stat.S_IMODE((tmp_path / "cloud").stat().st_mode) == 0o700
    assert settings.admin_password not in repr(settings)


def test_ports_that_are_taken_are_chosen_anew() -> None:
    settings = state.new_settings()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings.api_port = taken.getsockname()[1]
        assert not ports.is_free(settings.api_port)
        assert ports.answers(settings.api_port)
        settings.repick_ports()
        assert settings.api_port != taken.getsockname()[1]
    again = state.Settings(**{name: getattr(settings, name) for name in settings.__slots__})
    again.repick_ports()
    assert again == settings


def test_free_ports_differ() -> None:
    chosen = ports.free(8)
    assert len(set(chosen)) == 8
    assert all(map(ports.is_free, chosen))


def test_default_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert state.default_directory() == Path("/home/somebody/.local/share/novalite")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert state.default_directory() == Path("/data/novalite")


def test_services_do_not_inherit_what_misleads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_PASSWORD", "secret")
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/systemd/notify")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    environment = services.environment_of_services({"EXTRA": "1"})
    assert environment["EXTRA"] == "1"
    assert not {"OS_PASSWORD", "NOTIFY_SOCKET", "PYTHONDONTWRITEBYTECODE"} & set(environment)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(ServiceError, match="novalite-nonsense is not installed"):
        services.find_program("novalite-nonsense")


def test_ready_is_heard_per_service() -> None:
    with ReadyListener() as listener:
        addresses = {name: listener.address(name) for name in ("api", "conductor")}
        _notify(addresses["api"], "STATUS=starting")
        listener.listen(1.0)
        assert not listener.is_ready("api")
        assert listener.status("api") == "starting"
        _notify(addresses["api"], "READY=1\nSTATUS=serving")
        listener.listen(1.0)
        assert listener.is_ready("api")
        assert not listener.is_ready("conductor")


def _notify(address: str, text: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(text.encode(), "\0" + address[1:])


def test_a_missing_broker_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("novalite.devcloud.broker.PROGRAMS", ("/no/such/rabbitmq-server",))
    with pytest.raises(BrokerError, match="apt-get install .*rabbitmq-server"):
        Broker(tmp_path / "mq").start()
    assert not (tmp_path / "mq").exists()


def test_names_of_vhosts_are_checked(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="cannot be the name"):
        Broker(tmp_path / "mq", vhosts=['a">>, evil']).url()


def test_the_brokers_secrets_are_private(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "mq")
    url = broker.url()
    again = Broker(tmp_path / "mq")
    assert again.url() == url
    mode = os.stat(tmp_path / "mq" / "broker.json").st_mode
    assert stat.S_IMODE(mode) == 0o600
    assert broker.settings.password not in repr(broker)
