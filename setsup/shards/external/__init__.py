"""Tars that others wrote: scanned, taken for samples, and given an index."""
