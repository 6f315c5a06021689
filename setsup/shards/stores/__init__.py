"""Where shards lie, on a disk or in a store, and how ranges of them are read."""
