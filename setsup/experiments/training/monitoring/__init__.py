"""Watching a training: validation, the first batch as an image, loggers."""
