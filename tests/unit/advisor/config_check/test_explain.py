# SPDX-License-Identifier: Apache-2.0
"""What is said about one option: value, place, who else sets it, effect."""

from pathlib import Path

import pytest

from novalite.advisor.config_check import explain
from novalite.advisor.config_check import known as known_options
from novalite.advisor.config_check.explain import UnknownOption
from novalite.advisor.config_check.finding import Totals
from novalite.advisor.config_check.known import Known


@pytest.fixture(scope="module")
def known() -> Known:
    return known_options.load()


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    first, second = tmp_path / "nova.conf", tmp_path / "site.conf"
    first.write_text(
        "[DEFAULT]\nram_allocation_ratio = 1.0\nscheduler_max_attempts = 7\n"
        "[database]\nconnection = mysql://nova:hunter2@db/nova\n[vnc]\nenabled = true\n"
    )
    second.write_text("[DEFAULT]\nreport_interval = 5\nram_allocation_ratio = 2.0\n")
    return [str(first), str(second)]


def text(known: Known, paths: list[str], word: str, **environ: str) -> str:
    found = explain.explain(word, paths, known, Totals(memory_mb=10240), environ)
    return "\n".join(line for each in found for line in explain.lines(each))


def test_value_place_others_and_effect(known: Known, paths: list[str]) -> None:
    said = text(known, paths, "ram_allocation_ratio")
    assert said.startswith("[DEFAULT] ram_allocation_ratio = 2.0\n")
    assert f"from: {paths[1]}, line 3" in said
    assert f"also set: {paths[0]}, line 2: [DEFAULT] ram_allocation_ratio = 1.0" in said
    # 10240 x 2 - 512 = 19968 MB, 4 servers of 4096 MB; 10240 x 1.5 - 512 = 14848: 3.
    assert "limit 20480 MB, 512 MB kept back, 19968 MB for servers" in said
    assert "takes 4 servers of 4096 MB by its memory; with the default (1.5) 3" in said


@pytest.mark.parametrize(
    "word",
    [
        "scheduler_max_attempts",
        "scheduler.max_attempts",
        "[scheduler] max_attempts",
        "DEFAULT.scheduler_max_attempts",
    ],
)
def test_former_names_and_sections_lead_to_the_option(
    known: Known, paths: list[str], word: str
) -> None:
    said = text(known, paths, word)
    assert said.startswith("[scheduler] max_attempts = 7\n")
    assert f"{paths[0]}, line 3" in said
    assert "up to 6 alternates" in said


def test_a_ratio_that_no_filter_looks_at(known: Known, tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[filter_scheduler]\nenabled_filters = ComputeFilter,RamFilter\n")
    said = text(known, [str(file)], "cpu_allocation_ratio")
    assert "but without CoreFilter in enabled_filters vcpu has no limit at all" in said
    assert "no limit" not in text(known, [str(file)], "ram_allocation_ratio")


def test_an_option_that_is_added_up(known: Known, tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    lines = ["[filter_scheduler]", "available_filters = a.B", "available_filters = c.D", ""]
    file.write_text("\n".join(lines))
    said = text(known, [str(file)], "available_filters")
    assert said.startswith("[filter_scheduler] available_filters = a.B,c.D\n")
    assert "does not count" not in said


def test_the_environment_wins(known: Known, paths: list[str]) -> None:
    said = text(known, paths, "report_interval", OS_DEFAULT__REPORT_INTERVAL="9")
    assert said.startswith("[DEFAULT] report_interval = 9\n")
    assert "OS_DEFAULT__REPORT_INTERVAL, which wins" in said
    assert f"also set: {paths[1]}, line 2" in said


def test_the_default(known: Known, paths: list[str]) -> None:
    said = text(known, paths, "service_down_time")
    assert "from: default, no file sets it" in said
    assert "fences itself after 55 s" in said
    assert "60 + 10 = 70 s" in said


def test_a_secret_is_not_shown(known: Known, paths: list[str]) -> None:
    said = text(known, paths, "database.connection")
    assert "hunter2" not in said
    assert said.startswith("[database] connection = ***")


def test_an_option_of_nova_alone(known: Known, paths: list[str]) -> None:
    said = text(known, paths, "vnc.enabled")
    assert "an option of Nova that novalite does not have" in said
    assert f"{paths[0]}, line 7" in said


def test_a_typing_error(known: Known, paths: list[str]) -> None:
    with pytest.raises(UnknownOption, match=r"did you mean \[DEFAULT\] ram_allocation_ratio"):
        text(known, paths, "ram_alocation_ratio")


def test_the_interval_of_recovery_is_that_of_the_files(known: Known, tmp_path: Path) -> None:
    file = tmp_path / "slow.conf"
    file.write_text("[conductor]\nrecovery_interval = 7\n")
    for word in ("task_lease", "recovery_interval"):
        assert "goes on after 15 + 7 s at most" in text(known, [str(file)], word)


def test_every_effect_has_numbers(known: Known, paths: list[str]) -> None:
    for word, number in (
        ("reserved_host_memory_mb", "512 MB kept back"),
        ("cpu_allocation_ratio", "limit 256 VCPU"),
        ("reserved_host_disk_mb", "500 GB for servers"),
        ("enabled_filters", "10 filters"),
        ("host_subset_size", "the best host is always taken"),
        ("cpu_weight_multiplier", "25.0 %"),
        ("io_ops_weight_multiplier", "the host with the least gets 1 more"),
        ("build_failure_weight_multiplier", "1e+06"),
        ("quota.ram", "12 servers of 2 vcpus and 4096 MB"),
        ("task_lease", "15 + 2 s"),
        ("update_resources_interval", "every 60 s"),
        ("max_concurrent_builds", "60 a minute"),
    ):
        assert number in text(known, paths, word), word
