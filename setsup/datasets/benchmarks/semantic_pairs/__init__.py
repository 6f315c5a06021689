"""Benchmarks of semantic correspondence: pairs of images of a category with keypoints."""
