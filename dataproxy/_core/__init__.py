"""Compiled core. Private: its modules may change in any release."""

__all__: list[str] = []
