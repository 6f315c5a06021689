"""Sheets of datasets that display themselves, and their files."""
