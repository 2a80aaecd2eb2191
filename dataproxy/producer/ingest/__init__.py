"""What the application gives a producer, checked and made ready for the compiled core.

What lives here.  `names`: group and stream ids and attributes.  `reserved`: names of attributes that a caller may not
give.  `times`: data times.  `tables`: tables as messages.

Threads.  The thread that calls.

What it may use.  ``dataproxy._core.producer.ingest`` and ``dataproxy.rows``.
"""

__all__: list[str] = []
