"""Stores on localhost and sets of shards, for all tests of shards."""

from tests.shards.external_tars import written
from tests.shards.sets import whole
from tests.stores import bucket, memory, s3, short_waits, web

__all__ = ["bucket", "memory", "s3", "short_waits", "web", "whole", "written"]
