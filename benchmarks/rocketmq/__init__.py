"""Clients of RocketMQ at its own servers and at the hub (`brokers`)."""

__all__: list[str] = []
