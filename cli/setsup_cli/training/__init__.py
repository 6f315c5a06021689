"""What ``setsup train`` trains: read from options and files, trained in sequence or side by side, and described."""
