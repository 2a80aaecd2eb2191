"""The hub's HTTP port: the calls of InLong's Manager, by which SDKs find proxies, and the hub's own API and pages.

What lives here.  `manager`: the server and its routes.  `access`, `connections`: who may ask, and limits for peers and
connections.  `pages`: answers that are made page by page.  `faultapi`: faults armed over HTTP.  `settings`,
`settingsapi`: what the Manager answers and how nodes are set, changed while the hub runs.  `tubeapi`: the hub as TubeMQ
seen and changed over HTTP.  `viewapi`, `eventstream`: what an operator sees of all protocols, resets, and events as
they happen.

Threads.  The server's event loop on a thread of its own; pages that read the store are made on its four reading
threads.

What it may use.  `reading`, `faults`, `overview`, the modules beside this folder, and aiohttp, which only the extra
``hub`` installs; `tubemq` inside functions, as it needs the package ``protobuf``.
"""

__all__: list[str] = []
