"""A user's own data: files that a Croissant description describes."""
