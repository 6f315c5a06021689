"""Procedural substitutes for releases that the paper trains on."""
