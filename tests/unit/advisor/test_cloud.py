# SPDX-License-Identifier: Apache-2.0
"""Finding a server by its name or id through the API."""

from types import SimpleNamespace

import pytest
from keystoneauth1 import exceptions

from novalite.advisor import cloud

UUID = "11111111-2222-4333-8444-555555555555"
CLOUDS = """\
clouds:
  novalite:
    auth: {auth_url: "http://127.0.0.1:1/v3", username: u, password: p, project_name: p,
           user_domain_name: Default, project_domain_name: Default}
"""


class Session:
    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def get(self, path, **kwargs):
        assert kwargs == {"microversion": "2.53", "raise_exc": False}
        return self.answer(path)

    def post(self, path, *, json, **kwargs):
        assert kwargs == {"microversion": "2.53", "raise_exc": False}
        self.sent = json
        return self.answer(path)

    def answer(self, path):
        self.asked.append(path)
        status, body = self.answers.get(path, (404, {"itemNotFound": {"message": "not there"}}))
        if isinstance(status, Exception):
            raise status
        return SimpleNamespace(status_code=status, json=lambda: body, text=str(body))


def compute(answers):
    made = cloud.Compute.__new__(cloud.Compute)
    made._session = Session(answers)
    return made


def servers(*ids):
    return 200, {"servers": [{"id": uuid} for uuid in ids]}


WEB = "/servers?name=%5Eweb%5C.1%24"


def test_an_id_is_asked_for_at_once():
    made = compute({f"/servers/{UUID}/explain": (200, {"explanation": {}})})
    assert made.explain(UUID) == {"explanation": {}}
    assert len(made._session.asked) == 1


def test_a_name_is_looked_for_exactly_and_then_in_all_projects_and_among_the_deleted():
    answers = {WEB: servers("a"), "/servers/a/explain": (200, {"explanation": 1})}
    assert compute(answers).explain("web.1") == {"explanation": 1}
    answers = {WEB: servers(), f"{WEB}&all_tenants=1": servers("b")}
    assert compute(answers).find("web.1") == "b"
    answers[f"{WEB}&all_tenants=1"] = servers()
    answers[f"{WEB}&all_tenants=1&deleted=1"] = servers("latest", "older")
    assert compute(answers).find("web.1") == "latest"


def test_a_user_who_may_not_look_further_is_told_that_there_is_none():
    forbidden = (403, {"forbidden": {"message": "no"}})
    answers = {WEB: servers()}
    for more in ("&all_tenants=1", "&all_tenants=1&deleted=1"):
        answers[WEB + more] = forbidden
    with pytest.raises(cloud.CloudError, match=r"No server with a name or id of 'web\.1' exists"):
        compute(answers).find("web.1")


def test_two_of_a_name_are_named():
    with pytest.raises(cloud.CloudError, match=r"2 servers are named web\.1: a, b"):
        compute({WEB: servers("a", "b")}).find("web.1")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((500, {"computeFault": {"message": "oh"}}), "answered 500: oh"),
        ((503, "<html>"), "answered 503: <html>"),
        ((exceptions.ConnectFailure("refused"), None), "cannot be asked: refused"),
    ],
)
def test_trouble_is_told(answer, text):
    for path, work in ((WEB, "web.1"), (f"/servers/{UUID}/explain", UUID)):
        with pytest.raises(cloud.CloudError, match=text):
            compute({path: answer}).explain(work)


def test_why_not_finds_the_server_and_asks_for_one_host_or_all():
    answers = {
        WEB: servers("a"),
        "/servers/a/why-not?host=h%261": (200, {"why_not": 1}),
        f"/servers/{UUID}/why-not": (200, {"why_not": 2}),
    }
    assert compute(answers).why_not("web.1", "h&1") == {"why_not": 1}
    assert compute(answers).why_not(UUID, None) == {"why_not": 2}
    with pytest.raises(cloud.CloudError, match="answered 404: not there"):
        compute(answers).why_not(UUID, "h9")


def test_capacity_takes_a_flavor_by_id_or_name():
    path = "/novalite/capacity"
    answers = {"/flavors/7": (200, {}), path: (200, {"capacity": {}})}
    made = compute(answers)
    assert made.capacity("7", {"hosts": ["h1"]}) == {"capacity": {}}
    assert made._session.sent == {"capacity": {"flavorRef": "7", "hosts": ["h1"]}}
    listed = {"flavors": [{"id": "1", "name": "a"}, {"id": "2", "name": "b c"}]}
    answers = {"/flavors": (200, listed), path: (400, {"badRequest": {"message": "no h1"}})}
    with pytest.raises(cloud.CloudError, match="POST /novalite/capacity answered 400: no h1"):
        compute(answers).capacity("b c", {})
    with pytest.raises(cloud.CloudError, match="No flavor with a name or id of 'd' exists"):
        compute(answers).capacity("d", {})


def test_credentials_of_a_state_directory(tmp_path, monkeypatch):
    with pytest.raises(cloud.CloudError, match="there is no .*clouds.yaml"):
        cloud.Compute(tmp_path)
    (tmp_path / "clouds.yaml").write_text(CLOUDS)
    # The environment must not mix in.
    monkeypatch.setenv("OS_CLOUD", "elsewhere")
    made = cloud.Compute(tmp_path)
    assert made._session.service_type == "compute"
    with pytest.raises(cloud.CloudError, match="no credentials for a cloud: "):
        cloud.Compute(None)


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    (tmp_path / "clouds.yaml").write_text(CLOUDS)
    monkeypatch.setattr(cloud.importlib, "import_module", missing)
    with pytest.raises(cloud.CloudError, match=r"pip install 'novalite\[client\]'"):
        cloud.Compute(tmp_path)


def test_the_environment_names_a_cloud_or_not(monkeypatch):
    for name in ("OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE"):
        monkeypatch.delenv(name, raising=False)
    assert not cloud.has_credentials()
    monkeypatch.setenv("OS_AUTH_URL", "x")
    assert cloud.has_credentials()
