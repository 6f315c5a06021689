"""CompCars: photographs of cars by make, model and year, with viewpoint, box and attributes of the model."""

from setsup.datasets.benchmarks.compcars.dataset import CompCars, open

__all__ = ["CompCars", "open"]
