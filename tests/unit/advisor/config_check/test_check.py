# SPDX-License-Identifier: Apache-2.0
"""The configuration check on files as operators have them: every planted mistake, nothing else."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from novalite import exception
from novalite.advisor.config_check import check, options_table, parser
from novalite.advisor.config_check import known as known_options
from novalite.advisor.config_check.finding import ERROR, WARNING, Totals
from novalite.advisor.config_check.known import Known
from novalite.advisor.config_check.settings import Settings
from novalite.conf import load
from novalite.conf.files import ConfigError
from novalite.virt.libvirt import config as libvirt_config

DATA = Path(__file__).parents[3] / "data"

# (line, severity, code, option) of each planted mistake.
PLANTED = {
    "nova-controller.conf": [
        (5, WARNING, "deprecated", "auth_strategy"),
        (22, WARNING, "deprecated", "scheduler_default_filters"),
        (22, ERROR, "wrong-value", "scheduler_default_filters"),
        (23, WARNING, "dangerous", "cpu_allocation_ratio"),
        (24, WARNING, "unknown-option", "ram_alocation_ratio"),
        (25, ERROR, "dangerous", "report_interval"),
        (26, WARNING, "deprecated", "quota_instances"),
        (27, WARNING, "deprecated", "quota_cores"),
        (28, WARNING, "deprecated", "quota_ram"),
        (28, ERROR, "wrong-value", "quota_ram"),
        (58, WARNING, "deprecated", "url"),
        (77, WARNING, "unknown-section", ""),
    ],
    "nova-compute.conf": [
        (12, WARNING, "dangerous", "cpu_allocation_ratio"),
        (13, ERROR, "wrong-value", "ram_allocation_ratio"),
        (14, WARNING, "dangerous", "disk_allocation_ratio"),
        (15, WARNING, "dangerous", "reserved_host_memory_mb"),
        (20, WARNING, "dangerous", "report_interval"),
        (22, WARNING, "wrong-value", "vif_plugging_is_fatal"),
        (23, WARNING, "wrong-section", "cpu_mode"),
        (28, WARNING, "deprecated", "cpu_model"),
        (28, ERROR, "dangerous", "cpu_model"),
        (59, WARNING, "deprecated", "url"),
        (61, ERROR, "wrong-value", "timeout"),
        (65, ERROR, "syntax", ""),
    ],
    "nova-master.conf": [
        (14, ERROR, "wrong-value", "transport_url"),
        (15, WARNING, "wrong-section", "max_attempts"),
        (17, WARNING, "deprecated", "initial_ram_allocation_ratio"),
        (20, WARNING, "set-twice", "report_interval"),
        (26, WARNING, "unknown-option", "max_atempts"),
        (31, WARNING, "dangerous", "enabled_filters"),
        (33, ERROR, "wrong-value", "host_subset_size"),
        (41, ERROR, "dangerous", "cpu_mode"),
        (45, WARNING, "unknown-section", ""),
        (75, ERROR, "wrong-value", "policy_file"),
        (78, ERROR, "wrong-value", "compute"),
    ],
}


@pytest.fixture(scope="module")
def known() -> Known:
    return known_options.load()


@pytest.fixture(scope="module")
def conf() -> cfg.ConfigOpts:
    return known_options.make_options()


def parse(conf: cfg.ConfigOpts, *paths: str) -> None:
    """Read files as the programs do; what was read before is forgotten."""
    conf([], default_config_files=list(paths), default_config_dirs=[], project="novalite")


def write(path: Path, text: str) -> str:
    file = path / "nova.conf"
    file.write_text(text)
    return str(file)


def run(known: Known, path: str, **totals: int) -> check.Report:
    return check.check([path], known, Totals(**totals))


@pytest.mark.parametrize("name", PLANTED)
def test_every_planted_mistake_is_found_and_nothing_else(known: Known, name: str) -> None:
    report = run(known, str(DATA / name))
    found = [(each.line, each.severity, each.code, each.option) for each in report.findings]
    assert found == PLANTED[name]
    assert report.code == check.ERRORS
    assert all(each.file.endswith(name) for each in report.findings)


def test_the_nearest_name_and_the_new_one_are_told(known: Known) -> None:
    texts = {
        (name, each.line): each.text
        for name in PLANTED
        for each in run(known, str(DATA / name)).findings
    }
    assert "did you mean [DEFAULT] ram_allocation_ratio?" in texts["nova-controller.conf", 24]
    assert "did you mean [oslo_messaging_rabbit]?" in texts["nova-controller.conf", 77]
    assert "write [neutron] endpoint_override" in texts["nova-compute.conf", 59]
    assert "write it as [libvirt] cpu_mode" in texts["nova-compute.conf", 23]
    assert "add RamFilter, DiskFilter, CoreFilter" in texts["nova-master.conf", 31]


def test_no_secret_is_shown(known: Known) -> None:
    for name in PLANTED:
        shown = str(run(known, str(DATA / name)).as_json())
        for secret in ("Rabb1t", "Db%40pass", "s3cret", "p@ss"):
            assert secret not in shown


def test_options_of_nova_alone_are_counted_apart(known: Known, tmp_path: Path) -> None:
    report = run(known, write(tmp_path, "[vnc]\nenabled = true\n[DEFAULT]\nuse_neutron = True\n"))
    assert (report.findings, report.code) == ([], check.SUCCESS)
    assert [each.option for each in report.foreign] == ["[vnc] enabled", "[DEFAULT] use_neutron"]


def test_every_option_of_novalite_with_its_default_is_silent(known: Known, tmp_path: Path) -> None:
    """Written out, the defaults must neither be unknown nor wrong nor dangerous."""
    lines: dict[str, list[str]] = {}
    for own in known.options():
        default = own.default
        if default is not None and isinstance(default, int | float | str | list):
            text = ",".join(map(str, default)) if isinstance(default, list) else str(default)
            lines.setdefault(own.section, []).append(f"{own.opt.dest} = {text}")
    text = "".join(f"[{section}]\n" + "\n".join(found) + "\n" for section, found in lines.items())
    assert len(text.splitlines()) > 150
    report = run(known, write(tmp_path, text))
    found = [(each.section, each.option, each.text) for each in report.findings]
    assert found == []


def test_references_that_go_in_a_circle(known: Known, tmp_path: Path) -> None:
    text = "[DEFAULT]\ncpu_allocation_ratio = $ram_allocation_ratio\nhost = $my_ip\n"
    text += "ram_allocation_ratio = ${DEFAULT.cpu_allocation_ratio}\n"
    found = run(known, write(tmp_path, text)).findings
    assert [(each.line, each.severity, each.code) for each in found] == [
        (2, ERROR, "reference"),
        (4, ERROR, "reference"),
    ]
    assert "to itself" in found[0].text


def test_a_byte_order_mark_is_the_only_fault(known: Known, tmp_path: Path) -> None:
    report = run(known, write(tmp_path, "\ufeff[DEFAULT]\nhost = a\n"))
    assert [(each.line, each.code) for each in report.findings] == [(1, "syntax")]
    assert "byte order mark" in report.findings[0].text


def test_names_and_values_without_an_end_are_cut(known: Known, tmp_path: Path) -> None:
    text = "[DEFAULT]\n" + "x" * 10_000 + " = 1\nram_allocation_ratio = " + "9" * 9_000 + "x\n"
    report = run(known, write(tmp_path, text))
    assert len(report.findings) == 2
    assert len(str(report.as_json()["findings"])) < 2_000


@pytest.mark.parametrize(
    ("text", "option", "severity", "words"),
    [
        ("[DEFAULT]\nram_allocation_ratio = 0", "ram_allocation_ratio", WARNING, "1.5 is used"),
        ("[DEFAULT]\nram_allocation_ratio = -1", "ram_allocation_ratio", ERROR, "0.0 or more"),
        ("[DEFAULT]\nreserved_host_disk_mb = 20", "reserved_host_disk_mb", WARNING, "20480"),
        ("[DEFAULT]\nreserved_host_memory_mb = 9000", "reserved_host_memory_mb", WARNING, "no "),
        ("[DEFAULT]\nreserved_host_cpus = 4", "reserved_host_cpus", WARNING, "(60 threads of it)"),
        ("[DEFAULT]\nmax_concurrent_builds = lots", "max_concurrent_builds", ERROR, "whole"),
        ("[DEFAULT]\nhost = a # b", "host", WARNING, "part of the value"),
        ("[DEFAULT]\nstate_path = $nowhere/x", "state_path", ERROR, "does not exist"),
        ("[DEFAULT]\nupdate_resources_interval = -1", "update_resources_interval", WARNING, ""),
        ("[DEFAULT]\naudit_interval = -1", "audit_interval", WARNING, "with its guests"),
        ("[conductor]\naudit_interval = 0", "audit_interval", WARNING, "with allocations"),
        ("[DEFAULT]\nexecutor_thread_pool_size = 99", "executor_thread_pool_size", ERROR, "64"),
        ("[DEFAULT]\ntransport_url = amqp://h/", "transport_url", ERROR, "rabbit://"),
        ("[database]\nconnection = oracle://h/x", "connection", ERROR, "oracle"),
        ("[conductor]\ntask_lease = 4", "task_lease", ERROR, "task_renew_interval"),
        ("[quota]\ncores = 0", "cores", WARNING, "-1 is unlimited"),
        ("[quota]\nram = 50", "ram", WARNING, "51200"),
        ("[scheduler]\nmax_attempts = 1", "max_attempts", WARNING, "nowhere else"),
        ("[testing]\ncrash_point = x", "crash_point", WARNING, "never on a real cloud"),
        ("[filter_scheduler]\nenabled_filters =", "enabled_filters", WARNING, "every host"),
        (
            "[filter_scheduler]\nenabled_filters = RamFilter,DiskFilter,CoreFilter",
            "enabled_filters",
            WARNING,
            "without ComputeFilter",
        ),
        (
            "[filter_scheduler]\nenabled_filters = ComputeFilter,RamFiltre",
            "enabled_filters",
            ERROR,
            "did you mean RamFilter?",
        ),
        (
            "[filter_scheduler]\nenabled_filters = nova.scheduler.filters.json_filter.JsonFilter",
            "enabled_filters",
            ERROR,
            "novalite has no JsonFilter",
        ),
        ("[filter_scheduler]\nweight_classes = RamWeigher", "weight_classes", ERROR, "RAMWeigher?"),
        (
            "[DEFAULT]\nscheduler_weight_classes = nova.scheduler.weights.metrics.MetricsWeigher",
            "scheduler_weight_classes",
            ERROR,
            "novalite has no MetricsWeigher",
        ),
        ("[libvirt]\ncpu_mode = none\ncpu_models = kvm64", "cpu_models", ERROR, "custom"),
        ("[libvirt]\ncpu_model_extra_flags = vmx", "cpu_model_extra_flags", WARNING, "custom"),
        ("[libvirt]\nvirt_type = lxc\ncpu_mode = custom", "cpu_mode", ERROR, "lxc"),
        ("[default]\nhost = a", "", WARNING, "did you mean [DEFAULT]?"),
        ("[DEFAULT]\nhost a", "", ERROR, "no '='"),
    ],
)
def test_finding(
    known: Known, tmp_path: Path, text: str, option: str, severity: str, words: str
) -> None:
    report = run(known, write(tmp_path, text), memory_mb=6000, vcpus=4)
    matching = [e for e in report.findings if e.option == option and words in e.text]
    assert [each.severity for each in matching] == [severity], report.findings
    assert report.code == (2 if severity == ERROR else 1) or len(report.findings) > 1


def test_classes_by_nova_paths_and_of_ones_own_are_silent(known: Known, tmp_path: Path) -> None:
    names = ["compute_filter.ComputeFilter", "ram_filter.RamFilter", "core_filter.CoreFilter"]
    paths = [f"nova.scheduler.filters.{name}" for name in names]
    own = ["my.filters:Mine", "my.filters.Other", "DiskFilter"]
    text = f"[filter_scheduler]\nenabled_filters = {','.join([*paths, *own])}\n"
    text += "weight_classes = nova.scheduler.weights.all_weighers\n"
    text += "[DEFAULT]\ncpu_allocation_ratio = 4.0\n"
    assert run(known, write(tmp_path, text)).findings == []


@pytest.mark.parametrize("more", ["", "available_filters = my.filters.Mine\n"])
def test_what_may_be_named_by_the_class_alone(known: Known, tmp_path: Path, more: str) -> None:
    text = "[filter_scheduler]\navailable_filters = nova.scheduler.filters.all_filters\n" + more
    text += "enabled_filters = ComputeFilter,RamFilter,Mine\n"
    found = [each.text for each in run(known, write(tmp_path, text)).findings]
    assert found == ([] if more else ["there is no filter Mine"])


def test_all_weights_off_is_found(known: Known, tmp_path: Path) -> None:
    names = [f"{name}_weight_multiplier" for name in ("ram", "cpu", "disk", "io_ops")]
    lines = [f"{name} = 0" for name in names]
    one_left = write(tmp_path, "\n".join(["[filter_scheduler]", *lines[1:]]))
    assert run(known, one_left).findings == []
    none_left = write(tmp_path, "\n".join(["[filter_scheduler]", *lines]))
    assert [each.option for each in run(known, none_left).findings] == [names[0]]


def test_totals_of_the_fake_hypervisor_are_known(known: Known, tmp_path: Path) -> None:
    text = "[DEFAULT]\nreserved_host_memory_mb = 2048\n[fake_libvirt]\nmemory_mb = 2048\n"
    found = run(known, write(tmp_path, text)).findings
    assert [(each.line, each.text) for each in found] == [
        (2, "2048 MB are kept back and the host has 2048: servers live on overcommit alone "
         "(1024 MB of it)")
    ]  # fmt: skip


def test_a_file_that_is_not_there(known: Known, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        run(known, str(tmp_path / "none.conf"))


# -- the same as what reads the options in earnest

_NAMES = st.sampled_from(["a", "b c", "d-e"])
_LINES = st.one_of(
    st.sampled_from(["", "# x", "; y", "[one]", "[two]", "   more", '  "z"', "\tt"]),
    st.builds(
        lambda name, mark, value: f"{name} {mark} {value}",
        _NAMES,
        st.sampled_from("=:"),
        st.sampled_from(["", "1", "x = y", "'q'", '"r"', "a:b", '"', "# c"]),
    ),
)


@settings(max_examples=40)
@given(st.lists(_LINES, max_size=12))
def test_files_are_read_as_oslo_reads_them(tmp_path_factory: Any, lines: list[str]) -> None:
    path = write(tmp_path_factory.mktemp("conf"), "\n".join(["[zero]", *lines, ""]))
    sections: dict[str, dict[str, list[str]]] = {}
    parsed = parser.read([path])
    try:
        cfg.ConfigParser(path, sections).parse()
    except cfg.ParseError:
        assert parsed.faults
        return
    assert parsed.faults == []
    mine: dict[str, dict[str, list[str]]] = {}
    for _file, _line, section in parsed.headers:
        mine.setdefault(section, {})
    for entry in parsed.entries:
        mine[entry.section].setdefault(entry.name, []).append(entry.value)
        assert Path(path).read_text().split("\n")[entry.line - 1].startswith(entry.name)
    assert mine == sections


_SETTINGS = st.sampled_from(
    ["[scheduler]\nmax_attempts", "[DEFAULT]\nscheduler_max_attempts", "[Scheduler]\nmax_attempts"]
)
_FILE = st.lists(st.tuples(_SETTINGS, st.integers(1, 99)), max_size=4)


@settings(max_examples=25)
@given(st.lists(_FILE, max_size=3))
def test_the_setting_in_force_is_that_of_oslo(
    tmp_path_factory: Any,
    known: Known,
    conf: cfg.ConfigOpts,
    contents: list[list[tuple[str, int]]],
) -> None:
    folder = tmp_path_factory.mktemp("conf")
    paths = []
    for index, content in enumerate(contents):
        path = folder / f"{index}.conf"
        path.write_text("".join(f"{head} = {value}\n" for head, value in content))
        paths.append(str(path))
    parse(conf, *paths)
    settings = Settings(parser.read(paths), known)
    assert settings.value("scheduler", "max_attempts") == conf.scheduler.max_attempts


@pytest.mark.parametrize("virt_type", ["kvm", "qemu", "lxc"])
@pytest.mark.parametrize("mode", [None, "host-model", "custom", "none"])
@pytest.mark.parametrize("models", [False, True])
def test_the_cpu_is_judged_as_the_compute_does(
    tmp_path: Path,
    known: Known,
    conf: cfg.ConfigOpts,
    virt_type: str,
    mode: str | None,
    models: bool,
) -> None:
    lines = ["[libvirt]", f"virt_type = {virt_type}"]
    lines += [f"cpu_mode = {mode}"] * (mode is not None) + ["cpu_models = kvm64"] * models
    path = write(tmp_path, "\n".join(lines))
    parse(conf, path)
    try:
        libvirt_config.cpu_policy(conf.libvirt)
        expected = check.SUCCESS
    except exception.ConfigurationError:
        expected = check.ERRORS
    assert run(known, path).code == expected


@pytest.mark.parametrize("name", PLANTED)
def test_a_service_refuses_each_of_the_files_and_takes_them_mended(
    known: Known, conf: cfg.ConfigOpts, tmp_path: Path, name: str
) -> None:
    """An error means that a service does not start; without those lines it does."""
    path = DATA / name
    errors = {each.line for each in run(known, str(path)).findings if each.severity == ERROR}
    with pytest.raises(ConfigError):
        load.Loader(conf, "x", [f"--config-file={path}"]).load()
    lines = path.read_text().splitlines()
    kept = ["" if at in errors else text for at, text in enumerate(lines, start=1)]
    mended = write(tmp_path, "\n".join(kept))
    assert check.ERRORS != run(known, mended).code
    load.Loader(conf, "x", [f"--config-file={mended}"]).load()


# -- the table


def test_the_table_knows_nova_of_every_age() -> None:
    table = options_table.load()
    for section, name in (
        ("DEFAULT", "compute_driver"),
        ("DEFAULT", "network_api_class"),
        ("placement", "auth_url"),
        ("vnc", "server_listen"),
        ("compute", "cpu_dedicated_set"),
        ("cells", "enable"),
    ):
        assert table.find(section, name) is not None, name
    for section, name in (("mdev_nvidia-35", "device_addresses"), ("DEFAULT", "ec2_workers")):
        assert table.find(section, name) is None
        assert table.family(section, name) is not None
    renamed = table.renamed("DEFAULT", "vncserver_listen")
    assert renamed is not None and renamed.text() == "[vnc] server_listen"
    assert table.find("DEFAULT", "ram_alocation_ratio") is None


def test_the_table_holds_facts_only() -> None:
    size = os.path.getsize(Path(options_table.__file__).with_name(options_table.FILE))
    assert size < 60_000
    kinds = {option.kind for names in options_table.load().options.values()
             for option in names.values()}  # fmt: skip
    assert kinds == {"bool", "int", "float", "str", "list", "multi", "port"}
