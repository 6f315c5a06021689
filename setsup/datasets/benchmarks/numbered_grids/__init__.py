"""Benchmarks that are a full grid of rendered images, whose files are numbered in the order of the grid."""
