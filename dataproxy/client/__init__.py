"""Client side of the Python API."""

from dataproxy._core.client.delivery import BatchDelivery, Delivery
from dataproxy._core.client.sending import Stream
from dataproxy.client.producer import Producer

__all__ = ["BatchDelivery", "Delivery", "Producer", "Stream"]
