"""Benchmarks: a module or folder for each, which reads the release as published."""
