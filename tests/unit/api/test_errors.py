# SPDX-License-Identifier: Apache-2.0
import inspect
from typing import Any

import falcon
import pytest

from novalite import exception
from novalite.api import auth, errors, microversion, middleware, pattern, validation


def _all() -> list[type[Exception]]:
    found: list[type[Exception]] = []
    for module in (exception, auth, microversion, middleware, pattern, validation):
        for _name, cls in inspect.getmembers(module, inspect.isclass):
            if issubclass(cls, exception.NovaliteException) and cls not in found:
                found.append(cls)
    return found


@pytest.mark.parametrize("cls", _all(), ids=lambda cls: cls.__name__)
def test_each_exception_has_a_row_of_its_own_branch(cls: type[Exception]) -> None:
    rows = [base for base in cls.__mro__ if base in errors.STATUS]
    assert rows, "no row by MRO"
    if cls is not exception.NovaliteException:
        assert rows[0] is not exception.NovaliteException, "only the catch-all row of 500 is left"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (exception.FlavorInBodyNotFound(flavor_id="x"), 400),
        (exception.InstanceNotFound(instance_id="x"), 404),
        (exception.InstanceActionOpen(action="a", instance_id="x", task_state=None), 409),
        (exception.MetadataLimitExceeded(allowed=128), 403),
        (exception.PolicyNotAuthorized(action="x"), 403),
        (exception.DatabaseUnavailable(), 503),
        (exception.NoValidHost(reason="x"), 500),
        (microversion.VersionNotAcceptable(version="2.99"), 406),
        (validation.RequestTooLarge(limit=1), 413),
        (auth.Unauthenticated(), 401),
        (KeyError("x"), 500),
    ],
)
def test_status(error: Exception, status: int) -> None:
    assert errors.status_of(error) == status


def test_remote_twin_of_an_exception_has_its_status() -> None:
    remote = type("InstanceNotReady_Remote", (exception.InstanceNotReady,), {})
    assert errors.status_of(remote(instance_id="x")) == 409


@pytest.mark.parametrize("status", sorted(set(errors.STATUS.values())))
def test_each_status_has_a_key(status: int) -> None:
    assert status in errors.KEYS


class _Broken:
    def on_get(self, req: Any, resp: Any) -> None:
        raise RuntimeError("a secret of the inside")

    def on_post(self, req: Any, resp: Any) -> None:
        raise exception.HypervisorError(reason="a secret of the inside")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_500_tells_the_request_id_and_nothing_else(cloud: Any, method: str) -> None:
    cloud.client.app.add_route("/v2.1/os-broken", _Broken())
    result = cloud.call(method, "/os-broken")
    request_id = result.headers["x-openstack-request-id"]
    assert result.status_code == 500
    assert result.json == {
        "computeFault": {
            "code": 500,
            "message": f"Unexpected API Error. The request id is {request_id}.",
        }
    }


class _Refusing:
    def on_get(self, req: Any, resp: Any) -> None:
        raise falcon.HTTPBadRequest(title="Bad", description="not so")


def test_falcons_own_refusals_have_novas_form(cloud: Any) -> None:
    cloud.client.app.add_route("/v2.1/os-refusing", _Refusing())
    result = cloud.call("GET", "/os-refusing")
    assert result.json == {"badRequest": {"code": 400, "message": "not so"}}
