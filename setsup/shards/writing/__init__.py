"""Shards written: what they are to be, the tars, the index, and the work that makes them."""
