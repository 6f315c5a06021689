"""Datasets in the BOP format: images of objects with known poses."""
