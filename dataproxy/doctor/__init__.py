"""What is wrong between this machine and a cluster: names, Manager, proxies, clocks, limits, versions.

``dataproxy doctor`` prints what ``examine`` finds (docs/doctor.md).  Heartbeats are all that is sent, unless
``send=True`` asks for one marked message to each proxy.

What lives here.  `examination`: the order of the checks, and ``examine``.  `findings`: what they return.  `names`,
`managers`, `proxies`: name service, Managers, and the steps for one address.  `frames`, `requests`: these steps over
TCP and over HTTP.  `connecting`, `conversation`, `secure`: a connection, its calls, which have an end, and TLS.
`advice`: what results mean and what to do.  `clocks`, `limits`, `installation`: clocks compared, what this machine
allows, and what is installed.

Threads.  The caller's, and daemon threads (32 at most at a time) that end with the time limit.  Calls may be made from
any thread.

What it may use.  The discovery of the producer, so that targets are read and Managers are asked as it does it;
``dataproxy.wire`` writes requests and reads answers.  No producer is made.
"""

from dataproxy.doctor.examination import examine
from dataproxy.doctor.findings import (
    Finding,
    Findings,
    Level,
    ManagerReport,
    MessageReport,
    NameReport,
    ProxyReport,
    TlsReport,
)

__all__ = [
    "Finding",
    "Findings",
    "Level",
    "ManagerReport",
    "MessageReport",
    "NameReport",
    "ProxyReport",
    "TlsReport",
    "examine",
]
