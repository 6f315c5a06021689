"""Networks of views of an image."""
