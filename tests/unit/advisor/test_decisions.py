# SPDX-License-Identifier: Apache-2.0
"""A decision in tables: every number of the decision is in them, columns stand under each other."""

from novalite.advisor import columns, decisions
from novalite.api.views import explain
from novalite.objects.capacity import Need
from novalite.objects.decision import Decision, FilterCount, Miss, Weighed
from novalite.objects.reason import Reason

SHORT = Reason("not_enough_memory", 2048, 1536.0, 24576.0, 16384, 1.5, 23040, 512)
SUCCESS = Decision(
    hosts=3,
    survivors=2,
    need=Need(2048, 1, 1),
    host="h1",
    node="n1",
    filters=[
        FilterCount("ComputeFilter", 3, 3, {}),
        FilterCount("RamFilter", 3, 2, {"not_enough_memory": 1}),
    ],
    misses=[Miss("h3", "h3", [("RamFilter", SHORT)], "2.7")],
    weighers=[("RAMWeigher", 1.0), ("DiskWeigher", -2.0), ("IoOpsWeigher", -1.0)],
    weights=[
        Weighed("h1", "n1", 1.0, [900, 20, 3], [1.0, 0.0, 0.0], "1.4"),
        Weighed("h2", "h2", -2.0, [100, 40.5, 3], [0.0, 1.0, 0.0], "1.5"),
    ],
    room=[Reason("enough_memory", 2048, 7168.0, 15360.0, 10240, 1.5, 10752, 512)],
    picture_age=0.25,
    took=0.0015,
)

TABLES = """\
    Decision: wanted 2048 MB memory, 1 GB disk, 1 vcpus; of 3 hosts 2 were left
      filter         came  left  removed
      ComputeFilter     3     3
      RamFilter         3     2  not_enough_memory 1

      nearest that were not taken  filter     reason             need  have  limit  total  ratio   used  reserved
      h3                           RamFilter  not_enough_memory  2048  1536  24576  16384    1.5  23040       512
      h3: free memory is -6656 MB, which is no error: 23040 MB are promised and there are 16384 MB; ram_allocation_ratio 1.5 allows to promise 24576 MB, so 1536 MB can still be taken
      h3: the server would be let in after: raise ram_allocation_ratio from 1.5 to 1.54, or free 512 MB

      best hosts   x   h1 (node n1)      h2
      RAMWeigher   1   900 -> 1.000 = 1  100 -> 0.000 = 0
      DiskWeigher  -2  20 -> 0.000 = 0   40.5 -> 1.000 = -2
      weight           1                 -2
      (raw -> normalised = weighted, times x)
      The same for all hosts: IoOpsWeigher

      Chosen: h1 (node n1)
      resource   need  total  x ratio  = limit   used  reserved  free  usable
      memory MB  2048  10240      1.5    15360  10752       512  -512    4608
      free memory is -512 MB, which is no error: 10752 MB are promised and there are 10240 MB; ram_allocation_ratio 1.5 allows to promise 15360 MB, so 4608 MB can still be taken
      The pictures of the hosts (h1 (node n1) 1.4, h2 1.5, h3 2.7) were 0.25 s old; deciding took 1.5 ms
"""  # noqa: E501


def printed(decision):
    body = explain._decision(decision, True)
    return "".join(f"{line.text}\n" for line in decisions.lines(body))


def squeezed(text):
    return [" ".join(line.split()) for line in text.splitlines()]


def test_all_of_it_is_in_the_tables():
    assert squeezed(printed(SUCCESS)) == squeezed(TABLES)


def test_a_host_that_was_alone_has_no_numbers_and_a_forced_one_no_room():
    made = Decision(
        hosts=1,
        survivors=1,
        host="h1",
        node="h1",
        forced=True,
        violated=[("RamFilter", SHORT)],
        filters=[FilterCount("force_hosts", 1, 1, {})],
        weighers=[("RAMWeigher", 1.0)],
        weights=[Weighed("h1", "h1", 0.0, [], [])],
    )
    text = printed(made)
    assert "filters were skipped, no limits set" in text
    assert "      Chosen: h1\n      RamFilter would have refused it: not enough memory: " in text
    assert "      h1 was the only one left: there was nothing to weigh\n" in text
    assert "resource" not in text and " -> " not in text


def test_columns_of_numbers_stand_to_the_right():
    lines = [line.text for line in columns.rows(("a", "n"), [("x", 5), ("long", None)], "> ")]
    assert lines == ["> a     n", "> x     5", "> long  -"]
    assert [line.text for line in columns.rows(("a", "n"), [])] == ["a  n"]
