"""Datasets that only the experiments on poses use."""
