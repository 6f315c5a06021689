"""Readers of mesh formats: what a file holds, checked against its size before memory is taken."""
