"""Folders of runs: what was trained, its checkpoints, its settings as a file."""
