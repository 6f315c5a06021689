"""Tars that others wrote: walked, taken for samples, and given an index."""
