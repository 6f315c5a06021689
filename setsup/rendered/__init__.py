"""Rendered datasets: images of scenes, rendered on demand or to a folder."""
