# SPDX-License-Identifier: Apache-2.0
"""An application on a temporary SQLite file with stand-ins for everything it calls."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from falcon import testing
from oslo_config import cfg

from novalite.api import app, auth, policy
from novalite.db import engine, flavors, schema
from novalite.objects.flavor import Flavor
from novalite.objects.request_spec import ImageMeta
from tests.unit.api.cloud import (
    BIG_IMAGE,
    FLAVOR,
    IMAGE,
    Cloud,
    FakeComputes,
    FakeImages,
    FakeNetworks,
    FakeSchedulers,
    FakeVolumes,
    FakeWakeup,
    make_conf,
)


@pytest.fixture
def conf(tmp_path: Any) -> cfg.ConfigOpts:
    return make_conf(tmp_path)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with tables and one flavor; making it takes longer than most tests."""
    folder = tmp_path_factory.mktemp("template")
    database = engine.Database(make_conf(folder))
    schema.metadata.create_all(database.engine)
    flavor = Flavor(
        flavorid=FLAVOR,
        name="m1.tiny",
        vcpus=1,
        memory_mb=512,
        root_gb=1,
        extra_specs={"hw:foo": "bar"},
    )
    database.transaction(lambda conn: flavors.create(conn, flavor))
    # What was written may still be in the write-ahead log; this makes one file of it all.
    with sqlite3.connect(folder / "test.db") as source, sqlite3.connect(folder / "one.db") as one:
        source.backup(one)
    return folder / "one.db"


@pytest.fixture
def cloud(conf: cfg.ConfigOpts, template: Path, tmp_path: Path) -> Cloud:
    return make_cloud(conf, template, tmp_path)


def make_cloud(conf: cfg.ConfigOpts, template: Path, folder: Path) -> Cloud:
    """Return a cloud on a copy of *template* in *folder*, which *conf* names."""
    shutil.copy(template, folder / "test.db")
    database = engine.Database(conf)
    images = FakeImages(
        {
            IMAGE: ImageMeta(id=IMAGE, name="cirros", size=1000),
            BIG_IMAGE: ImageMeta(id=BIG_IMAGE, name="big", min_ram=1024),
        }
    )
    networks, computes, wakeup = FakeNetworks(), FakeComputes(), FakeWakeup()
    schedulers, volumes = FakeSchedulers(), FakeVolumes()
    rules = policy.Policy(conf)
    application = app.make_app(
        conf,
        database,
        images=images,
        networks=networks,
        volumes=volumes,
        computes=computes,
        schedulers=schedulers,
        wakeup=wakeup,  # type: ignore[arg-type]
        authenticator=auth.NoAuth(),
        rules=rules,
    )
    client = testing.TestClient(application)
    return Cloud(
        conf, database, client, images, networks, volumes, computes, schedulers, wakeup, rules
    )
