"""COLMAP models, as text, whose images observe random parts of a cloud of points."""

import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation

SIZE = (48, 64)
FOCAL = (70.0, 60.0)


class Model:
    """Cameras that look at a cloud and observe random parts of it, some points twice."""

    def __init__(self, folder, views=9, points=150, seed=0, blind=()):
        rng = np.random.default_rng(seed)
        self.xyz = {int(number): rng.normal(size=3) for number in rng.permutation(10 * points)[:points]}
        self.turns = Rotation.from_rotvec(rng.normal(size=(views, 3)) * 0.15)
        self.shifts = rng.normal(size=(views, 3)) * 0.3 + (0, 0, 6)
        self.pixels = []
        for view in range(views):
            share = rng.uniform(0.1, 0.9)
            numbers = [number for number in self.xyz if abs(number % 7 - view % 7) < 3 and rng.random() < share]
            numbers = numbers[: 10 if view in blind else None]
            numbers = [*numbers, *numbers[:2], -1, -1]  # the first two twice, and keypoints of no point
            self.pixels.append([(*rng.uniform(1, (SIZE[1] - 1, SIZE[0] - 1)).tolist(), number) for number in numbers])
        self.write(folder)

    def write(self, folder):
        (folder / "images").mkdir(parents=True)
        (folder / "sparse" / "0").mkdir(parents=True)
        lines = []
        for view, (turn, shift) in enumerate(zip(self.turns.as_quat(), self.shifts, strict=True)):
            Image.new("RGB", SIZE[::-1]).save(folder / "images" / f"{view:02}.png")
            pose = " ".join(map(repr, [*np.roll(turn, 1).tolist(), *shift.tolist()]))
            lines.append(f"{view + 1} {pose} 1 {view:02}.png")
            lines.append(" ".join(f"{x!r} {y!r} {number}" for x, y, number in self.pixels[view]))
        model = folder / "sparse" / "0"
        (model / "cameras.txt").write_text(f"1 PINHOLE {SIZE[1]} {SIZE[0]} {FOCAL[0]} {FOCAL[1]} 32 24\n")
        (model / "images.txt").write_text("\n".join(lines) + "\n")
        rows = (f"{number} {x!r} {y!r} {z!r} 9 99 9 0.1" for number, (x, y, z) in self.cloud())
        (model / "points3D.txt").write_text("\n".join(rows) + "\n")

    def cloud(self):
        return [(number, xyz.tolist()) for number, xyz in self.xyz.items()]

    def seen(self, view, inside=lambda x, y: True):
        return {number for x, y, number in self.pixels[view] if number >= 0 and inside(x, y)}

    def measures(self, first, second, inside=lambda x, y: True):
        """Overlap, angle and scale of two views by sets, and loops over common points."""
        one, two = self.seen(first, inside), self.seen(second, inside)
        angles, scales = [], []
        for number in one & two:
            point = self.xyz[number]
            ways, depths = [], []
            for view in (first, second):
                turn, shift = self.turns[view].as_matrix(), self.shifts[view]
                ways.append(-turn.T @ shift - point)
                depths.append((turn @ point + shift)[2])
            cosine = ways[0] @ ways[1] / np.linalg.norm(ways[0]) / np.linalg.norm(ways[1])
            angles.append(np.degrees(np.arccos(cosine)))
            scales.append(depths[1] / depths[0])
        share = len(one & two) / len(one) if len(one) >= 16 else np.nan
        return share, *(np.median(values) if values else np.nan for values in (angles, scales)), len(one)
