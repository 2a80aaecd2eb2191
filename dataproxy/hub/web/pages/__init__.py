"""Answers of the hub's HTTP port that are made page by page.

What lives here.  `records`, `answers`: stored records, decoded, and the JSON around them.  `entries`: stored requests
as they are.  `front`: pages for people and for Prometheus.  `slots`: how many are read and written at a time.
`served`: what all of the HTTP port needs of a hub.

Threads.  Pages that read the store are made on the reading threads of the HTTP port, all else on its event loop.

What it may use.  What `dataproxy.hub.web` may, and nothing of that folder.
"""

__all__: list[str] = []
