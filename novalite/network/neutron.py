# SPDX-License-Identifier: Apache-2.0
"""The few calls of network v2.0 that novalite makes, with the answers turned into errors.

Used inside this package only.
"""

from typing import Any

from oslo_config import cfg

from novalite import context, service_auth

Record = dict[str, Any]


class Neutron:
    """Records of network v2.0 by kind: ``network``, ``subnet``, ``port``, ``security-group``."""

    def __init__(self, conf: cfg.ConfigOpts):
        self._neighbor = service_auth.Neighbor(conf, "network", "neutron", "/v2.0")

    @property
    def absent(self) -> bool:
        """Whether there is no network service at all."""
        return self._neighbor.absent

    def list(self, ctxt: context.RequestContext, kind: str, **params: Any) -> list[Record]:
        """Return the records that match; a list as a value means any of its items.

        :raises exception.NeighborUnavailable: the service cannot be used now
        :raises exception.NeighborError: it refuses
        """
        answer = self._neighbor.request(ctxt, "GET", f"/{kind}s", params=params)
        if answer.status != 200:
            raise self._neighbor.refused(answer)
        found: list[Record] = answer.body.get(f"{kind.replace('-', '_')}s", [])
        return found

    def show(self, ctxt: context.RequestContext, kind: str, record_id: str) -> Record | None:
        """Return one record, None if there is none; raises as :meth:`list`."""
        path = f"/{kind}s/{service_auth.quote(record_id)}"
        answer = self._neighbor.request(ctxt, "GET", path)
        if answer.status in (400, 404):
            return None
        if answer.status != 200:
            raise self._neighbor.refused(answer)
        return _inner(answer, kind)

    def create_port(self, ctxt: context.RequestContext, values: Record) -> Record:
        """Make a port; raises as :meth:`list`."""
        answer = self._neighbor.request(ctxt, "POST", "/ports", json={"port": values})
        if answer.status != 201:
            raise self._neighbor.refused(answer)
        return _inner(answer, "port")

    def update_port(
        self, ctxt: context.RequestContext, port_id: str, values: Record
    ) -> Record | None:
        """Change a port and return it, None if there is none; raises as :meth:`list`."""
        path = f"/ports/{service_auth.quote(port_id)}"
        answer = self._neighbor.request(ctxt, "PUT", path, json={"port": values})
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self._neighbor.refused(answer)
        return _inner(answer, "port")

    def delete_port(self, ctxt: context.RequestContext, port_id: str) -> None:
        """Delete a port; one that is gone already is fine; raises as :meth:`list`."""
        path = f"/ports/{service_auth.quote(port_id)}"
        answer = self._neighbor.request(ctxt, "DELETE", path)
        if answer.status not in (204, 404):
            raise self._neighbor.refused(answer)


def _inner(answer: service_auth.Answer, kind: str) -> Record:
    found: Record = answer.body.get(kind.replace("-", "_"), {})
    return found
