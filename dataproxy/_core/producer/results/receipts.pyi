from dataproxy.outcomes import DeliveryResult, Facts, Watch

__all__ = ["results"]

def results(watch: Watch, facts: Facts, first: int, count: int) -> list[DeliveryResult]: ...
