"""A user's own captures: images with cameras by COLMAP, or in ``transforms.json``."""
