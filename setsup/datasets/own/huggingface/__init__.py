"""Hugging Face ``datasets``: read as a dataset, and written with a card."""
