# SPDX-License-Identifier: Apache-2.0
"""Plain objects in the place of what a conductor calls."""

from novalite import exception


class FakeCompute:
    """Remembers what was cast; ``down`` is how many casts the bus refuses next."""

    def __init__(self):
        self.builds, self.destroys = [], []
        self.down = 0

    def _check(self):
        if self.down:
            self.down -= 1
            raise exception.BusUnavailable()

    def build_and_run_instances(self, context, *, host, builds):
        self._check()
        self.builds += [(host, request) for request in builds]

    def destroy_instances(self, context, *, host, requests):
        self._check()
        self.destroys += [(host, request) for request in requests]


class FakeNetwork:
    """Remembers whose ports were given back; ``error`` is raised instead."""

    def __init__(self):
        self.freed = []
        self.error = None

    def deallocate(self, context, instance_uuid, brought):
        if self.error is not None:
            raise self.error
        self.freed.append((instance_uuid, set(brought)))


class FakeVolumes:
    """Remembers whose volumes were given back; ``error`` is raised instead."""

    def __init__(self):
        self.freed = []
        self.error = None

    def release(self, context, instance_uuid, devices, *, built):
        if self.error is not None:
            raise self.error
        self.freed.append((instance_uuid, built))


class FakeScheduler:
    """Answers each call with the next of ``answers``: a function from requests to answers, or an
    error; ``calls`` are the requests."""

    def __init__(self):
        self.calls, self.answers = [], []

    def select_destinations(self, context, *, requests):
        self.calls.append(requests)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer(requests)
