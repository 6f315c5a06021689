"""Affine MNIST: digits under random affine maps on a larger canvas."""
