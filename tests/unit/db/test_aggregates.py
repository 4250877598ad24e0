# SPDX-License-Identifier: Apache-2.0
"""Aggregates: the rules of zones, and what schedulers read of them."""

import pytest

from novalite import exception
from novalite.db import aggregates

DEFAULT = "nova"


def make(books, name, zone=None, *hosts):
    record = books.write(aggregates.create, name, zone)
    for host in hosts:
        if books.read(aggregates.services.find, host, "nova-compute") is None:
            books.register(host)
        books.write(aggregates.add_host, record.aggregate.id, host, DEFAULT)
    return record.aggregate.id


def zones(books):
    return books.read(aggregates.zones)


class TestReading:
    def test_each_host_with_its_aggregates(self, books):
        left = make(books, "left", "left", "h1", "h2")
        fast = make(books, "fast", None, "h2", "h3")
        books.write(aggregates.set_metadata, fast, {"ssd": "true"}, DEFAULT)
        version, found = books.read(aggregates.of_hosts, None)
        names = {host: [each.name for each in each_of] for host, each_of in found.items()}
        assert names == {"h1": ["left"], "h2": ["left", "fast"], "h3": ["fast"]}
        assert [found["h1"][0].zone, found["h3"][0].zone] == ["left", None]
        assert found["h3"][0].metadata == {"ssd": "true"}
        assert found["h1"][0].metadata == {"availability_zone": "left"}
        assert books.read(aggregates.of_hosts, version) is None
        assert zones(books) == {"h1": "left", "h2": "left"}
        assert books.read(aggregates.zone_has_hosts, "left")
        assert not books.read(aggregates.zone_has_hosts, "mars")
        assert left < fast

    @pytest.mark.parametrize(
        "change",
        [
            lambda books, key: books.write(aggregates.create, "more"),
            lambda books, key: books.write(aggregates.rename, key, "other"),
            lambda books, key: books.write(aggregates.set_metadata, key, {"a": "b"}, DEFAULT),
            lambda books, key: books.write(aggregates.remove_host, key, "h1", DEFAULT),
            lambda books, key: books.write(aggregates.forget_host, "h1"),
            lambda books, key: make(books, "more", None, "h2"),
        ],
        ids=["create", "rename", "metadata", "remove", "forget", "add"],
    )
    def test_every_change_is_seen(self, books, change):
        key = make(books, "one", None, "h1")
        version, _ = books.read(aggregates.of_hosts, None)
        change(books, key)
        again = books.read(aggregates.of_hosts, version)
        assert again is not None and again[0] > version

    def test_what_is_refused_or_forgotten_in_vain_is_no_change(self, books):
        make(books, "one")
        version, _ = books.read(aggregates.of_hosts, None)
        with pytest.raises(exception.AggregateNameExists):
            books.write(aggregates.create, "one")
        books.write(aggregates.forget_host, "h9")
        assert books.read(aggregates.of_hosts, version) is None


class TestChanging:
    def test_names_are_unique_and_capitals_matter(self, books):
        one, other = make(books, "one"), make(books, "One")
        with pytest.raises(exception.AggregateNameExists):
            books.write(aggregates.rename, other, "one")
        assert books.write(aggregates.rename, one, "one").aggregate.name == "one"

    def test_metadata_is_merged_and_none_removes(self, books):
        key = make(books, "one")
        books.write(aggregates.set_metadata, key, {"a": "1", "b": "2"}, DEFAULT)
        changed = books.write(aggregates.set_metadata, key, {"a": None, "c": ""}, DEFAULT)
        assert changed.aggregate.metadata == {"b": "2", "c": ""}
        assert changed.updated_at is not None

    def test_hosts(self, books):
        key = make(books, "one", None, "h1")
        with pytest.raises(exception.AggregateHostExists):
            books.write(aggregates.add_host, key, "h1", DEFAULT)
        with pytest.raises(exception.ComputeHostNotFound):
            books.write(aggregates.add_host, key, "h9", DEFAULT)
        with pytest.raises(exception.AggregateHostNotFound):
            books.write(aggregates.remove_host, key, "h9", DEFAULT)
        with pytest.raises(exception.AggregateNotEmpty):
            books.write(aggregates.delete, key)
        books.write(aggregates.remove_host, key, "h1", DEFAULT)
        books.write(aggregates.delete, key)
        with pytest.raises(exception.AggregateNotFound):
            books.read(aggregates.get, key)
        assert books.rows(aggregates.schema.aggregate_metadata.select()) == []

    def test_only_computes_are_hosts(self, books):
        books.register("c1", binary="nova-conductor")
        key = make(books, "one")
        with pytest.raises(exception.ComputeHostNotFound):
            books.write(aggregates.add_host, key, "c1", DEFAULT)


class TestZones:
    def test_a_host_is_in_one_zone_only(self, books):
        make(books, "left", "left", "h1")
        right, plain = make(books, "right", "right", "h2"), make(books, "plain", None, "h1")
        with pytest.raises(exception.AggregateAddRefused, match=r"zone\(s\) \['left'\]"):
            books.write(aggregates.add_host, right, "h1", DEFAULT)
        with pytest.raises(exception.AggregateUpdateRefused, match=r"zone\(s\) \['left'\]"):
            books.write(aggregates.set_metadata, plain, {aggregates.ZONE: "right"}, DEFAULT)
        assert zones(books) == {"h1": "left", "h2": "right"}

    def test_two_aggregates_may_be_of_one_zone(self, books):
        make(books, "a", "left", "h1")
        key = make(books, "b", "left", "h1")
        books.active(host="h1")
        books.write(aggregates.remove_host, key, "h1", DEFAULT)
        assert zones(books) == {"h1": "left"}

    @pytest.mark.parametrize("state", ["started", "begun", "active"])
    def test_servers_keep_the_zone_of_their_host(self, books, state):
        left, empty = make(books, "left", "left", "h1"), make(books, "right", "right")
        plain = make(books, "plain", None, "h2")
        getattr(books, state)(host="h1")
        for zone in ("right", None):
            with pytest.raises(exception.AggregateUpdateRefused, match="contain instances"):
                books.write(aggregates.set_metadata, left, {aggregates.ZONE: zone}, DEFAULT)
        with pytest.raises(exception.AggregateRemoveRefused, match="contain instances"):
            books.write(aggregates.remove_host, left, "h1", DEFAULT)
        # What does not change the zone of a host with servers may be done.
        books.write(aggregates.set_metadata, left, {aggregates.ZONE: "left", "a": "b"}, DEFAULT)
        books.write(aggregates.add_host, plain, "h1", DEFAULT)
        books.write(aggregates.add_host, empty, "h2", DEFAULT)
        assert zones(books) == {"h1": "left", "h2": "right"}

    def test_a_host_with_servers_stays_in_the_default_zone(self, books):
        left = make(books, "left", "left")
        books.register("h1")
        books.active(host="h1")
        with pytest.raises(exception.AggregateAddRefused, match="contain instances"):
            books.write(aggregates.add_host, left, "h1", DEFAULT)
        # An aggregate that names the default zone changes nothing.
        make(books, "same", DEFAULT, "h1")
        assert zones(books) == {"h1": DEFAULT}
