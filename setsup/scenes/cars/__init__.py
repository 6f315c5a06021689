"""Procedural cars: what varies between them, and their meshes."""
