"""Rows of tables as messages: what the Spark sink and ``Producer.send_rows`` share; needs neither Spark nor pyarrow."""

__all__: list[str] = []
