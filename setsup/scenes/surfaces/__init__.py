"""Surfaces of whole scenes: triangles in the same place, sheets in one plane, and holes."""
