"""The module of InLong's own Python SDK, on the core of ``dataproxy``: programs written for that SDK run unchanged.

What lives here.  `api`: the class ``InLongApi``.  `configuration`: its JSON file.  `groups`: a producer for each group.
`codes`: what its calls return.  docs/migration.md says what is better here, and how to go on from here.
"""

from __future__ import annotations

from inlong_dataproxy.api import InLongApi, UserCallBack
from inlong_dataproxy.codes import SdkCode
from inlong_dataproxy.groups import Counts

__all__ = ["Counts", "InLongApi", "SdkCode", "UserCallBack"]
