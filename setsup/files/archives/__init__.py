"""Files of a folder, a zip or a tar: listed once, read in place."""
