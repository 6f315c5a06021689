"""Stores on localhost, for all tests of shards."""

from tests.stores import bucket, memory, s3, short_waits, web

__all__ = ["bucket", "memory", "s3", "short_waits", "web"]
