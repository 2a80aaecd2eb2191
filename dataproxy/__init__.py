"""Native producer, Spark sink and embedded hub for Apache InLong DataProxy."""
