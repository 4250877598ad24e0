# SPDX-License-Identifier: Apache-2.0
"""Options of [quota]: limits of a project that has none of its own. Read at every request."""

from oslo_config import cfg

_UNLIMITED = "-1 is unlimited."


def _limit(name: str, default: int, what: str) -> cfg.Opt:
    return cfg.IntOpt(
        name,
        default=default,
        min=-1,
        max=2**31 - 1,
        mutable=True,
        deprecated_group="DEFAULT",
        deprecated_name=f"quota_{name}",
        help=f"{what}; {_UNLIMITED}",
    )


OPTS: list[cfg.Opt] = [
    _limit("instances", 10, "Most servers of a project"),
    _limit("cores", 20, "Most vcpus of a project's servers"),
    _limit("ram", 51200, "Most MB of memory of a project's servers"),
    _limit("metadata_items", 128, "Most metadata items of a server"),
    _limit("injected_files", 5, "Most files to be put into a new server"),
    _limit("injected_file_content_bytes", 10240, "Most bytes of such a file"),
    _limit("injected_file_path_length", 255, "Most bytes of the path of such a file"),
    _limit("key_pairs", 100, "Most key pairs of a user"),
    _limit("server_groups", 10, "Most server groups of a project"),
    _limit("server_group_members", 10, "Most servers in a server group"),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this section."""
    conf.register_opts(OPTS, group="quota")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample generator."""
    return [("quota", OPTS)]
