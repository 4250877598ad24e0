# SPDX-License-Identifier: Apache-2.0
"""The access log: one line an answer, in Nova's shape, under Nova's logger name."""

import logging
import time

import falcon

from novalite import log
from novalite.api import http

LOG = logging.getLogger(log.ACCESS)


def write(req: http.Request, resp: falcon.Response) -> None:
    """Log the answer; called when its body is complete.

    The request context is the thread's current one, so the formatter finds it by itself. The
    protocol is a constant because not every server tells the application the real one.
    """
    if not LOG.isEnabledFor(logging.INFO):
        return
    length = len(resp.data) if resp.data else 0
    LOG.info(
        '%s "%s %s HTTP/1.1" status: %s len: %d time: %.7f',
        req.remote_addr,
        req.method,
        req.state.path,
        resp.status_code,
        length,
        time.monotonic() - req.state.started,
    )
