"""Experiments of the orbit paper: settings, presets, and what is measured."""
