"""Readers of the file formats that benchmarks are published in, one module per format.

A reader checks a header against the file before it uses it. For any bytes, it returns the correct arrays or raises
:class:`~setsup.errors.DataError` with one sentence, and it allocates no more memory than the file can fill.
"""
