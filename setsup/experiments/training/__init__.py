"""Training a preset into a run folder, with Lightning."""
