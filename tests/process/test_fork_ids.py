"""Ids and keys of a producer that came through ``fork``."""

from dataproxy.hub import Hub
from tests.process.programs import finish, start

CODE = """
    import os, sys, warnings, dataproxy
    warnings.simplefilter("ignore")     # Python warns of forks with threads
    p = dataproxy.Producer(sys.argv[1], group_id="g", ordering="key")
    s = p.stream("s", attrs={"k": "v"})
    s.send(b"p0", key="k").result()
    children = []
    for name in "abc":
        child = os.fork()
        if child == 0:
            for i in range(20):
                s.send_nowait(b"%s%d" % (name.encode(), i), key="k")
            assert p.close().ok
            os._exit(0)
        children.append(child)
    for i in range(1, 20):
        s.send_nowait(b"p%d" % i, key="k")
    assert p.close().ok
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_each_process_has_its_own_ids_and_its_own_order():
    with Hub() as hub:
        assert finish(start(CODE, hub.target)) == (0, "", "")
        stored = list(hub.records("g"))
    assert len({record.message_id for record in stored}) == len(stored) == 80
    instances = {}
    for name in "pabc":
        mine = [record for record in stored if record.body.startswith(name.encode())]
        assert [record.body for record in mine] == [b"%s%d" % (name.encode(), i) for i in range(20)]
        (instances[name],) = {record.message_id[:13] for record in mine}
    assert len(set(instances.values())) == 4
