"""Readers of the file formats that benchmarks are published in, one module a format.

A reader checks what a header says against the file before it believes it. Whatever the bytes, it gives the right
arrays or raises :class:`~setsup.errors.DataError` with one sentence, and it allocates no more than the file can hold.
"""
