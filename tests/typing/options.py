"""Options in a user's code.  Each comment stands for a complaint that there has to be: one without is an error, too."""

from datetime import timedelta
from typing import Any

import dataproxy
from dataproxy.hub import Hub


def settings() -> dict[str, Any]:
    """Return options that come from elsewhere."""
    return {"linger": 1}


def fine() -> None:
    """Give values in each form that is taken."""
    dataproxy.Producer("tcp://h", group_id="g", linger=timedelta(milliseconds=5), buffer_bytes="64MiB", nagle=True)
    dataproxy.Producer(["h1:46801", "h2:46801"], group_id="g", delivery_timeout="30s", batch_bytes=1 << 16, linger=None)
    dataproxy.AsyncProducer("tcp://h", group_id="g", compression="snappy", message_type=7)
    dataproxy.Producer("tcp://h", **settings())
    Hub("store", port=0, dedupe="ids").close(timedelta(seconds=1))


def wrong() -> None:
    """Give what is refused at run time, too."""
    dataproxy.Producer("tcp://h", group_id="g", lingr=1)  # type: ignore[call-arg]
    dataproxy.Producer("tcp://h", group_id="g", linger_ms=5)  # type: ignore[call-arg]
    dataproxy.Producer("tcp://h", group_id="g", linger=[5])  # type: ignore[arg-type]
    dataproxy.Producer("tcp://h", group_id="g", compression="gzip")  # type: ignore[arg-type]
    dataproxy.AsyncProducer("tcp://h", group_id="g", batch_size=5)  # type: ignore[call-arg]
    Hub("store", prot=0)  # type: ignore[call-arg]
