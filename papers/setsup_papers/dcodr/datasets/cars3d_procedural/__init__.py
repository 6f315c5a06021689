"""cars3d-procedural: a substitute for Cars3D, made-up cars on a turntable, in the published file layout.

No image of it shows a car of Cars3D, and nothing measured on it says what Cars3D would give. Each car has exactly one
mirror plane, from its front to its rear: the image of an azimuth, flipped, is that of the opposite azimuth.
``setsup prepare cars3d-procedural`` renders the files.
"""

from setsup_papers.dcodr.datasets.cars3d_procedural.dataset import ProceduralCars3D, open, prepare

__all__ = ["ProceduralCars3D", "open", "prepare"]
