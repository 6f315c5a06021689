"""What several adapters share: images of a release, boxes, clips, meshes, splits."""
