# SPDX-License-Identifier: Apache-2.0
"""Our formatter writes what oslo.log would have written."""

import logging

import pytest
from oslo_config import cfg
from oslo_log import formatters

from novalite import context, log

CONTEXTS = {
    "none": None,
    "service": context.service_context(),
    "user": context.RequestContext(user_id="u", project_id="p", overwrite=False),
    "domains": context.RequestContext(
        user_id="u",
        project_id="p",
        user_domain_id="ud",
        project_domain_id="pd",
        domain_id="d",
        overwrite=False,
    ),
}


@pytest.fixture
def both():
    conf = cfg.ConfigOpts()
    log.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    given = {"datefmt": conf.log_date_format, "config": conf}
    return log._Formatter(**given), formatters.ContextFormatter(**given)


@pytest.mark.parametrize("who", CONTEXTS)
@pytest.mark.parametrize("instance", [None, "8e6e7835-63f0-6d22-aaff-a4573292f91e"])
@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR])
@pytest.mark.parametrize(
    ("text", "args"), [("hello", ()), ("x %s %d", ("a", 3)), ("%s", ({"a": 1},))]
)
def test_the_lines_are_the_same(both, who, instance, level, text, args):
    words = {"context": CONTEXTS[who], "instance": instance}
    message, kwargs = log.get("novalite.x").process(text, words)
    lines = []
    for formatter in both:
        record = logging.getLogger("novalite.x").makeRecord(
            "novalite.x", level, "file", 1, message, args, None, extra=kwargs["extra"]
        )
        record.created, record.msecs = 1700000000.25, 250.0
        lines.append(formatter.format(record))
    assert lines[0] == lines[1]
