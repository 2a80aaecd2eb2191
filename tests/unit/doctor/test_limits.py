"""Limits, read from a folder that stands for the root, and compared with options."""

import pytest

from dataproxy.config import load_producer_config
from dataproxy.doctor import Level
from dataproxy.doctor.limits import limit_findings, read_limits

PLENTY = {
    "open_files_limit": 20000,
    "open_files_hard_limit": 20000,
    "open_files": 6,
    "memory_limit": 8 << 30,
    "memory_available": 8 << 30,
    "cores": 4,
    "core_quota": None,
    "local_ports": 28232,
    "time_wait": 12,
}


def config(**options):
    return load_producer_config("tcp://h:1", env={}, **options)


def place(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_limits_of_this_machine_are_plausible():
    limits = read_limits()
    assert limits["cores"] >= 1
    assert limits["open_files"] > 0
    assert limits["local_ports"] > 1
    assert set(limits) == set(PLENTY)


def test_cgroups_of_version_2(tmp_path):
    place(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pod/one\n",
            "sys/fs/cgroup/pod/one/memory.max": "max\n",
            "sys/fs/cgroup/pod/memory.max": "268435456\n",
            "sys/fs/cgroup/pod/one/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/pod/cpu.max": "max 100000\n",
            "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable:   2048 kB\n",
            "proc/net/sockstat": "sockets: used 9\nTCP: inuse 5 orphan 0 tw 33 alloc 6 mem 1\n",
            "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
        },
    )
    limits = read_limits(tmp_path)
    assert limits["memory_limit"] == 256 << 20
    assert limits["core_quota"] == 1.5
    assert limits["memory_available"] == 2 << 20
    assert (limits["local_ports"], limits["time_wait"]) == (28232, 33)
    assert limits["open_files"] is None


def test_cgroups_of_version_1(tmp_path):
    place(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/x\n",
            "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "536870912\n",
            "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
        },
    )
    limits = read_limits(tmp_path)
    assert (limits["memory_limit"], limits["core_quota"]) == (512 << 20, 0.5)


@pytest.mark.parametrize("text", ["", "garbage", "0::", "x:y", "\x00\n0::/\n"])
def test_what_cannot_be_read_is_no_limit(tmp_path, text):
    place(tmp_path, {"proc/self/cgroup": text, "proc/net/sockstat": text, "proc/meminfo": "MemAvailable: much kB"})
    limits = read_limits(tmp_path)
    assert limits["memory_limit"] is None
    assert limits["core_quota"] is None
    assert limits["local_ports"] is None
    assert {one.level for one in limit_findings(limits, config(), 1)} == {Level.OK}


def test_plenty_is_well():
    assert [one.level for one in limit_findings(PLENTY, config(), 3)] == [Level.OK] * 4


@pytest.mark.parametrize(
    ("change", "options", "of", "level"),
    [
        ({"open_files_limit": 70}, {}, "open files", Level.WARNING),
        ({"open_files_limit": 256}, {"connections": 1000, "executors": 2}, "open files", Level.ERROR),
        ({"open_files_limit": None}, {}, "open files", Level.OK),
        ({"memory_limit": 64 << 20}, {}, "memory", Level.ERROR),
        ({"memory_limit": 128 << 20}, {}, "memory", Level.WARNING),
        ({"memory_limit": 128 << 20}, {"buffer_bytes": "8MiB", "undelivered_bytes": 0}, "memory", Level.OK),
        ({"memory_limit": None, "memory_available": 64 << 20}, {}, "memory", Level.WARNING),
        ({"cores": 2}, {"executors": 3}, "cores", Level.WARNING),
        ({"core_quota": 0.5}, {"executors": 1}, "cores", Level.OK),
        ({"core_quota": 1.5}, {"executors": 2}, "cores", Level.WARNING),
        ({"local_ports": 100}, {}, "local ports", Level.WARNING),
        ({"time_wait": 25000}, {}, "local ports", Level.WARNING),
    ],
)
def test_what_is_short_is_told(change, options, of, level):
    told = {one.subject: one for one in limit_findings({**PLENTY, **change}, config(**options), 3)}
    assert told[of].level is level
    assert bool(told[of].advice) is (level is not Level.OK)
