"""Benchmarks in the form of WILDS: a folder of images and a table of metadata with a row for each."""
