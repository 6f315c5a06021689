"""Files of pairs of views in the layouts that other projects read."""
