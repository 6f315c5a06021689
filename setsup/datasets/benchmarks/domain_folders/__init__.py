"""Benchmarks of domain generalisation whose releases are one tree, ``<domain>/<category>/<image>``, with one reader."""
