"""Clients of TubeMQ before a broker in plain C (`floor`), and at TubeMQ's own servers (`broker`)."""

__all__: list[str] = []
