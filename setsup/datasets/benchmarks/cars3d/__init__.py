"""Cars3D: 183 car models from 24 azimuths and 4 elevations."""

from setsup.datasets.benchmarks.cars3d.dataset import Cars3D, open, prepare

__all__ = ["Cars3D", "open", "prepare"]
