from dataproxy.outcomes import DeliveryResult, Facts, Watch

__all__ = ["results"]

def results(
    watch: Watch, facts: Facts, first: int, count: int, spare: list[DeliveryResult] | None = None
) -> list[DeliveryResult]: ...
