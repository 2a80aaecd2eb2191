from dataproxy.outcomes import DeliveryResult, ResultFields, Watch

__all__ = ["results"]

def results(watch: Watch, fields: ResultFields, first: int, count: int) -> list[DeliveryResult]: ...
