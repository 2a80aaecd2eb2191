from _typeshed import ReadableBuffer as Buffer

__all__ = ["bucket_of"]

def bucket_of(key: str | Buffer, buckets: int) -> int: ...
