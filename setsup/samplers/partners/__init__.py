"""Partners of rows: what pairs that differ in given factors are drawn from."""
