"""Help for tests of programs that use this package: hubs, faults, a TCP proxy with faults, a pytest plugin.

What lives here.  `plugin`: the fixtures.  `proxy`, `proxyfault`, `tunnel`: the TCP proxy, its faults, and one
connection through it.  `blackhole`: a socket whose packets are lost.

Names are loaded on first use, so that pytest can load the plugin without the compiled core.
"""

from importlib import import_module as _import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataproxy.hub import ArmedFault, Fault, Hub
    from dataproxy.testing.proxy import FaultProxy
    from dataproxy.testing.proxyfault import ArmedProxyFault, ProxyFault

__all__ = ["ArmedFault", "ArmedProxyFault", "Fault", "FaultProxy", "Hub", "ProxyFault"]

_HOMES = {
    "ArmedFault": "dataproxy.hub",
    "ArmedProxyFault": "dataproxy.testing.proxyfault",
    "Fault": "dataproxy.hub",
    "FaultProxy": "dataproxy.testing.proxy",
    "Hub": "dataproxy.hub",
    "ProxyFault": "dataproxy.testing.proxyfault",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dataproxy.testing' has no attribute {name!r}")
    value: object = getattr(_import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
