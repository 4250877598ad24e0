# SPDX-License-Identifier: Apache-2.0
"""The WSGI entry point, in a process of its own as a WSGI server would load it."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
from novalite import wsgi
assert "novalite.db.engine" not in sys.modules, "importing must not make anything"
from wsgiref.util import setup_testing_defaults

def get(path, token=None):
    environ = {"PATH_INFO": path, "REQUEST_METHOD": "GET"}
    if token:
        environ["HTTP_X_AUTH_TOKEN"] = token
    setup_testing_defaults(environ)
    seen = []
    def start(status, headers, exc=None):
        seen.extend((status, dict(headers).get("Retry-After")))
    answer = wsgi.application(environ, start)
    return *seen, b"".join(answer)

print(get("/v2.1"))
from novalite.db import engine, migrate
migrate.sync(engine.Database(wsgi._conf))
print(get("/v2.1")[0])
first = wsgi._made
print(get("/v2.1/flavors", "u:p"))
assert wsgi._made is first
sys.stdout.flush()
if os.fork() == 0:
    try:
        get("/v2.1")
        os._exit(wsgi._made is first)
    finally:
        os._exit(2)
assert os.wait()[1] == 0, "a forked process makes its own"
"""


def test_first_request_makes_it_once_for_each_process(tmp_path: Path) -> None:
    file = tmp_path / "novalite.conf"
    file.write_text(
        "[DEFAULT]\n"
        "transport_url = rabbit://u:p@127.0.0.1:1/\n"
        f"state_path = {tmp_path}\n"
        "[database]\n"
        f"connection = sqlite:///{tmp_path}/n.db\n"
        "[api]\nauth_strategy = noauth2\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NOVALITE_CONFIG_FILES": str(file)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    # The log goes to stdout as well.
    answers = [line for line in done.stdout.splitlines() if line.startswith(("200", "("))]
    assert answers == [
        # No tables yet; they are looked for again at the next request.
        '(\'503 Service Unavailable\', \'2\', b\'{"serviceUnavailable": {"code": 503, "message": '
        '"The database is currently unavailable, try again."}}\')',
        "200 OK",
        "('200 OK', None, b'{\"flavors\":[]}')",
    ]
    assert "has no tables; run: novalite-manage db sync" in done.stdout
