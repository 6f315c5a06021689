"""Manifests: what a benchmark consists of, where it comes from, and its licence."""
