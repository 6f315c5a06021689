"""Shared code of several adapters: images of a release, boxes, clips, meshes, splits."""
