"""TFRecord files and their examples."""
