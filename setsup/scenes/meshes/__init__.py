"""Meshes: primitives, files, materials and textures."""
