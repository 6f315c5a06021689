"""Every public name, with one argument at a time replaced by what it is not: one sentence, or a result.

What a call does with values that it takes is the business of other tests. Here it must not end in a traceback, nor in
a sentence of several lines.
"""

import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import setsup
from setsup import (
    correspondence,
    datasets,
    evaluation,
    experiments,
    factors,
    jobs,
    loading,
    methods,
    pages,
    reports,
    samplers,
    scenes,
    shards,
)
from setsup.errors import SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.scenes.recipes import Shapes3D
from setsup_papers import abc
from setsup_papers.abc import across, pose
from tests.samplers.overlap_distributions import table_of_pairs

Arguments = Mapping[str, Any]


def hostile() -> Iterator[Any]:
    """Values that are wrong almost everywhere; made anew each time, for a generator can be used once."""
    yield from (None, True, -1, 0, 2**70, 1.5, math.nan, -math.inf, 1e308)
    yield from ("", "\ud800", "nothing", b"bytes", object(), [], {}, (), [None], ["\ud800"], {"a": None}, {3: [1]})
    yield from (np.int64(3), np.float32("nan"), np.bool_(True), np.str_("x"), np.zeros((0, 3)), np.array([None, "a"]))
    yield from ((number for number in ()), torch.zeros(2, 3), torch.tensor(1.0, requires_grad=True), [[1], [1, 2]], 1j)


@cache
def shapes() -> Any:
    return setsup.load("shapes3d-procedural").select(np.arange(0, 480_000, 7001))


@cache
def views() -> tuple[Any, Any]:
    """Views of one scene, and their overlaps."""
    shown = RenderedDataset(Shapes3D(size=(16, 16))).select(range(4))
    return shown, correspondence.overlap(shown, pixels=16)


@cache
def table() -> FactorTable:
    kinds = [Factor("a", Kind.NOMINAL, ("x", "y")), Factor("b", Kind.ORDINAL, (1, 2, 3)), Factor("c", Kind.CONTINUOUS)]
    rows = np.arange(24)
    return FactorTable(kinds, {"a": rows % 2, "b": rows % 3, "c": rows / 4})


@cache
def scene() -> Any:
    from setsup.scenes.meshes.primitives import box

    return scenes.Scene((scenes.Placement(box(), translation=(0, 0, 3)),))


@cache
def camera() -> Any:
    return scenes.Camera(8, 8, [[8.0, 0, 3.5], [0, 8, 3.5], [0, 0, 1]], np.eye(3), np.zeros(3))


@cache
def pixel_pairs() -> Any:
    return correspondence.spatial(scene(), camera(), camera())


def color_views() -> Any:
    from setsup.loading.views import ColorViews

    return ColorViews


def sampler(**options: Any) -> Any:
    return samplers.SetSampler(table(), ["a"], size=2, **options)


def batches() -> Any:
    return setsup.batch_sampler([0, 1, 0, 1], classes=2, per_class=2)


POINTS = np.linspace(0, 1, 160).reshape(40, 4) ** [[1, 2, 3, 4]]
LEVELS = np.stack([np.arange(40) % 2, np.arange(40) % 4], axis=1)
U, V = torch.linspace(0, 1, 12).reshape(2, 3, 2), torch.linspace(1, 2, 12).reshape(2, 3, 2)
IMAGES = np.zeros((2, 8, 8, 3), np.uint8)

CASES: dict[str, tuple[Callable[..., Any], Callable[[], Arguments]]] = {
    # tables
    "Factor": (
        Factor,
        lambda: {
            "name": "x",
            "kind": "ordinal",
            "levels": (1, 2),
            "unit": "m",
            "period": 2.0,
            "within": "y",
            "role": "key",
        },
    ),
    "Factor.from_dict": (Factor.from_dict, lambda: {"data": {"name": "x", "kind": "continuous"}}),
    "Factor.code": (Factor("x", "ordinal", (1, 2)).code, lambda: {"level": 2}),
    "FactorTable": (FactorTable, lambda: {"factors": [Factor("a", "nominal", ("x", "y"))], "columns": {"a": [0, 1]}}),
    "from_values": (
        FactorTable.from_values,
        lambda: {"values": {"a": [1, 2]}, "factors": (), "kinds": {"a": "nominal"}},
    ),
    "values of a column": (lambda column: FactorTable.from_values({"a": column}), lambda: {"column": [1, 2]}),
    "column": (
        lambda column: FactorTable([Factor("a", "nominal", ("x", "y"))], {"a": column}),
        lambda: {"column": [0, 1]},
    ),
    "continuous": (
        lambda column: FactorTable([Factor("a", "continuous")], {"a": column}),
        lambda: {"column": [0.5, 1]},
    ),
    "open": (FactorTable.open, lambda: {"path": "no.arrow"}),
    "save": (lambda path: table().save(path), lambda: {}),
    "from_csv": (FactorTable.from_csv, lambda: {"path": "no.csv", "factors": (), "kinds": {}}),
    "from_parquet": (FactorTable.from_parquet, lambda: {"path": "no.parquet", "columns": None}),
    "from_arrow": (FactorTable.from_arrow, lambda: {"table": table().to_arrow(), "factors": (), "kinds": {}}),
    "from_pandas": (FactorTable.from_pandas, lambda: {"frame": table().to_pandas(), "factors": (), "kinds": {}}),
    "table.from_huggingface": (
        FactorTable.from_huggingface,
        lambda: {"dataset": table().to_huggingface(), "factors": (), "kinds": {}},
    ),
    "codes": (table().codes, lambda: {"name": "a", "rows": [1]}),
    "values": (table().values, lambda: {"name": "a", "rows": [1]}),
    "row": (table().row, lambda: {"row": 1}),
    "counts": (table().counts, lambda: {"name": "a"}),
    "joint_counts": (table().joint_counts, lambda: {"names": ["a", "b"]}),
    "where": (table().where, lambda: {"expression": "a == 'x'"}),
    "select": (table().select, lambda: {"rows": [1, 2]}),
    "with_factor": (table().with_factor, lambda: {"factor": Factor("d", "ordinal", (1,)), "column": np.zeros(24, int)}),
    "without": (table().without, lambda: {"names": ["a"]}),
    "rename": (table().rename, lambda: {"names": {"a": "d"}}),
    "binned": (table().binned, lambda: {"name": "c", "width": 2.0}),
    "join": (
        table().join,
        lambda: {"other": FactorTable([Factor("a", "nominal", ("x", "y"))], {"a": [0, 1]}), "on": "a"},
    ),
    "group_by": (table().group_by, lambda: {"names": ["a"], "where": "b == 1"}),
    "has_fingerprint": (table().has_fingerprint, lambda: {"fingerprint": "0"}),
    "groups.members": (table().group_by(["a"]).members, lambda: {"group": 1}),
    "factors.concat": (factors.concat, lambda: {"tables": [table(), table()], "parts": ["p", "q"]}),
    "split": (
        factors.split,
        lambda: {
            "table": table(),
            "fractions": {"p": 0.5, "q": 0.5},
            "seed": 0,
            "name": "s",
            "stratify": "a",
            "disjoint": None,
            "repeats": 1,
        },
    ),
    "check_disjoint": (factors.check_disjoint, lambda: {"table": table(), "split": "a", "by": "a"}),
    # samplers
    "SetSampler": (
        samplers.SetSampler,
        lambda: {
            "table": table(),
            "inactive": ["a"],
            "active": None,
            "size": 2,
            "sets": 2,
            "unconstrained": 0,
            "num_fixed": None,
            "choose": "levels",
            "values": "independent",
            "on_small_group": "error",
            "tolerance": {},
            "weights": None,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "tolerance": (
        lambda tolerance: samplers.SetSampler(table(), ["c"], size=1, tolerance={"c": tolerance}),
        lambda: {"tolerance": 1.0},
    ),
    "DomainSampler": (
        samplers.DomainSampler,
        lambda: {
            "table": table(),
            "domain": "a",
            "sets": 2,
            "size": 2,
            "domains": "balanced",
            "on_small_group": "error",
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "OrbitSampler": (
        samplers.OrbitSampler,
        lambda: {
            "table": table(),
            "orbit": "a",
            "sets": 2,
            "size": 2,
            "members": None,
            "canonical": "first",
            "values": "different",
            "choose": "groups",
            "on_small_group": "error",
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "canonical": (
        lambda level: samplers.OrbitSampler(table(), "a", 2, canonical={"c": level}, on_small_group="drop"),
        lambda: {},
    ),
    "TripletSampler": (
        samplers.TripletSampler,
        lambda: {
            "table": table(),
            "orbit": "a",
            "triplets": 2,
            "choose": "rows",
            "on_small_group": "error",
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "EpisodeSampler": (
        samplers.EpisodeSampler,
        lambda: {
            "table": table(),
            "label": "a",
            "ways": 1,
            "shots": 1,
            "queries": 1,
            "across": None,
            "within": "b",
            "on_small_group": "drop",
            "weights": None,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "FactorPairSampler": (
        samplers.FactorPairSampler,
        lambda: {
            "table": table(),
            "pairs": 2,
            "k": 1,
            "among": None,
            "change": None,
            "share": None,
            "rank": None,
            "must_differ": True,
            "radius": None,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "SequencePairSampler": (
        samplers.SequencePairSampler,
        lambda: {
            "table": table(),
            "sequence": "a",
            "time": "c",
            "window": 1.5,
            "pairs": 2,
            "weights": None,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "NeighbourSampler": (
        samplers.NeighbourSampler,
        lambda: {
            "table": table(),
            "neighbours": np.arange(len(table()))[:, None] - 1,
            "positive": None,
            "negative": None,
            "sets": 2,
            "ranks": (1, 1),
            "every": 10,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "OverlapSampler": (
        samplers.OverlapSampler,
        lambda: {
            "table": table(),
            "overlaps": table_of_pairs(table(), {(0, 1), (1, 2), (2, 3)}, range(4)),
            "overlap": (0.3, 0.8),
            "size": 3,
            "form": "chain",
            "sets": 2,
            "angle": (0, 90),
            "scale": (0.5, 2),
            "direction": "either",
            "choose": "angle",
            "bins": 3,
            "negatives": 0,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "TripletSampler by constraints": (
        samplers.TripletSampler,
        lambda: {
            "table": table(),
            "positive": "a == anchor.a",
            "negative": "a != anchor.a",
            "choose": "rows",
            "where": None,
        },
    ),
    "OrbitSampler of an anchor": (
        samplers.OrbitSampler,
        lambda: {"table": table(), "orbit": "a", "sets": 2, "size": 2, "members": "a == anchor.a"},
    ),
    "EpochSampler": (
        samplers.EpochSampler,
        lambda: {
            "table": table(),
            "size": 4,
            "epochs": 2,
            "shuffle": True,
            "partial": "drop",
            "repeats": 2,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "HierarchicalSampler": (
        samplers.HierarchicalSampler,
        lambda: {
            "table": table(),
            "factors": ["a", "b"],
            "sets": [2, 2],
            "size": 2,
            "on_small_group": "error",
            "weights": None,
            "where": None,
            "seed": 0,
            "stream": "s",
        },
    ),
    "Mixture": (
        samplers.Mixture,
        lambda: {
            "base": samplers.EpochSampler(table(), 2, where="a == 'x'"),
            "pool": "a == 'y'",
            "sets": [0],
            "p": 0.5,
            "seed": 0,
            "stream": "s",
        },
    ),
    "Stepwise": (samplers.Stepwise, lambda: {"end": 0.5, "every": 2, "levels": 3}),
    "Stepwise.at": (samplers.Stepwise(0.5, 2, 3).at, lambda: {"steps": [1]}),
    "sampler[]": (sampler().__getitem__, lambda: {"step": 1}),
    "block": (sampler().block, lambda: {"start": 0, "stop": 2}),
    "iterate": (lambda start: next(sampler().iterate(start)), lambda: {"start": 1}),
    "shard": (lambda **options: sampler().shard(**options)[0], lambda: {"rank": 0, "world": 2, "start": 0}),
    "from_dict": (samplers.from_dict, lambda: {"data": sampler().to_dict(), "table": table()}),
    # datasets
    "load": (
        setsup.load,
        lambda: {"name": "shapes3d-procedural", "root": None, "split": None, "where": "shape == 'cube'"},
    ),
    "setsup.open": (
        setsup.open,
        lambda: {"source": "shapes3d-procedural", "root": None, "split": None, "where": None, "kind": None},
    ),
    "open_images": (
        datasets.open_images,
        lambda: {"folder": "no", "pattern": None, "size": None, "relist": False, "kinds": None},
    ),
    "open_table": (
        setsup.open_table,
        lambda: {"path": "no.csv", "image": None, "factors": (), "kinds": None, "size": None},
    ),
    "datasets.concat": (
        lambda one, two, parts: setsup.concat(one, two, parts=parts),
        lambda: {"one": shapes(), "two": shapes(), "parts": ("p", "q")},
    ),
    "Concat": (datasets.Concat, lambda: {"datasets": [shapes()], "parts": None}),
    "Selection": (datasets.Selection, lambda: {"source": shapes(), "rows": [1, 2], "factors": None}),
    "Modality": (datasets.Modality, lambda: {"shape": (1, 2), "dtype": "uint8", "unit": "", "color": ""}),
    "fetch": (shapes().fetch, lambda: {"indices": [0], "modalities": ["image"]}),
    "fetch_into": (shapes().fetch_into, lambda: {"indices": [0], "out": {"image": np.zeros((1, 64, 64, 3), np.uint8)}}),
    "dataset.where": (shapes().where, lambda: {"expression": "shape == 'cube'"}),
    "dataset.select": (shapes().select, lambda: {"rows": [1, 2]}),
    "dataset.rename": (shapes().rename, lambda: {"names": {"shape": "form"}}),
    "from_huggingface": (
        datasets.from_huggingface,
        lambda: {"dataset": table().to_huggingface(), "image": None, "factors": (), "kinds": None, "size": None},
    ),
    "to_huggingface": (datasets.to_huggingface, lambda: {"dataset": shapes().select([0]), "modalities": ["image"]}),
    # loading
    "loader": (
        lambda **options: setsup.loader(**options),
        lambda: {
            "dataset": shapes(),
            "sampler": samplers.EpochSampler(shapes().factors, 2),
            "modalities": None,
            "transform": None,
            "start": 0,
            "rank": 0,
            "world": 1,
            "workers": 0,
            "prefetch": 2,
            "to": "numpy",
        },
    ),
    "as_torch": (loading.as_torch, lambda: {"dataset": shapes()}),
    "as_torch[]": (loading.as_torch(shapes()).__getitem__, lambda: {"row": 0}),
    "set_batches": (loading.set_batches, lambda: {"sampler": sampler(), "start": 0}),
    "set_epoch": (loading.set_batches(sampler()).set_epoch, lambda: {"epoch": 1}),
    "batch_sampler": (
        setsup.batch_sampler,
        lambda: {
            "labels": [0, 1, 0, 1, 2, 2],
            "classes": 2,
            "per_class": 2,
            "weights": [1.0] * 6,
            "shuffle": True,
            "drop_last": True,
            "on_small_group": "error",
            "epochs": 2,
            "steps": 3,
            "start": 0,
            "rank": 0,
            "world": 2,
            "seed": 0,
        },
    ),
    "batch_sampler, one way": (
        setsup.batch_sampler,
        lambda: {"labels": {"a": [0, 1, 0, 1]}, "episodes": None, "pairs": None, "triplets": None, "domains": None},
    ),
    "batch_sampler, rows": (setsup.batch_sampler, lambda: {"labels": [0, 1, 0], "batch_size": 2, "per_domain": None}),
    "state of batches": (batches().load_state_dict, lambda: {"state": batches().state_dict()}),
    "batches delivered": (batches().state_dict, lambda: {"delivered": None}),
    "pass of batches": (batches().set_epoch, lambda: {"epoch": 1}),
    "rows of batches": (batches().rows, lambda: {"step": 1}),
    "factory of batches": (
        setsup.batch_sampler.factory(batch_size=2),
        lambda: {"dataset": {"label": [0, 1, 0]}, "batch_size": 2, "drop_last": True, "seed": 0},
    ),
    # scenes and correspondences
    "Camera": (
        scenes.Camera,
        lambda: {"height": 8, "width": 8, "k": np.eye(3), "rotation": np.eye(3), "translation": np.zeros(3)},
    ),
    "Mesh": (
        scenes.Mesh,
        lambda: {
            "vertices": np.eye(3),
            "faces": [[0, 1, 2]],
            "normals": None,
            "uv": None,
            "colors": None,
            "materials": (),
            "material": None,
        },
    ),
    "Material": (scenes.Material, lambda: {"color": (1, 2, 3), "texture": None}),
    "Placement": (
        scenes.Placement,
        lambda: {
            "mesh": scene().placements[0].mesh,
            "rotation": np.eye(3),
            "translation": np.zeros(3),
            "scale": 1.0,
            "instance": None,
            "name": "",
        },
    ),
    "Scene": (
        scenes.Scene,
        lambda: {"placements": scene().placements, "lights": (scenes.Ambient(),), "background": (1, 2, 3)},
    ),
    "Ambient": (scenes.Ambient, lambda: {"color": (1.0, 1.0, 1.0)}),
    "Directional": (
        scenes.Directional,
        lambda: {"direction": (0, 0, 1), "color": (1.0, 1.0, 1.0), "of_camera": False, "shadow": False},
    ),
    "Lamp": (
        scenes.Lamp,
        lambda: {
            "position": (0, 0, 1),
            "color": (1.0, 1.0, 1.0),
            "axis": None,
            "exponent": 0.0,
            "reach": None,
            "shadow": False,
        },
    ),
    "Rays": (scenes.Rays, lambda: {"scene": scene()}),
    "load_mesh": (scenes.load_mesh, lambda: {"path": "no.obj", "scale": 1.0, "top": None}),
    "load_scene": (scenes.load_scene, lambda: {"path": "no.scene"}),
    "save_scene": (lambda scene, path="a.scene": scenes.save_scene(scene, path), lambda: {"scene": scene()}),
    "renderer": (scenes.renderer, lambda: {"name": "nothing"}),
    "check_size": (scenes.check_size, lambda: {"thing": scene(), "what": "it", "expected": (0.01, 100.0)}),
    "mesh_from_trimesh": (scenes.mesh_from_trimesh, lambda: {}),
    "spatial": (
        correspondence.spatial,
        lambda: {
            "scene": scene(),
            "camera1": camera(),
            "camera2": camera(),
            "pixels": [[3.0, 3.0]],
            "fraction": None,
            "key": None,
        },
    ),
    "spatial, some": (
        correspondence.spatial,
        lambda: {"scene": scene(), "camera1": camera(), "camera2": camera(), "fraction": 0.5, "key": 3},
    ),
    "write_pairs": (
        correspondence.write_pairs,
        lambda: {
            "dataset": views()[0],
            "table": views()[1],
            "folder": tempfile.mkdtemp(dir="."),
            "layout": "d2-net",
            "overlap": (0.1, 1),
            "angle": None,
            "scale": None,
            "direction": "either",
            "where": None,
        },
    ),
    "from_depth": (
        correspondence.from_depth,
        lambda: {
            "depth1": np.ones((8, 8)),
            "depth2": np.ones((8, 8)),
            "camera1": camera(),
            "camera2": camera(),
            "pixels": None,
            "tolerance": 0.01,
            "absolute": 0.0,
            "instances1": None,
        },
    ),
    "partners": (
        correspondence.partners,
        lambda: {"pairs": pixel_pairs(), "size1": (8, 8), "size2": (8, 8), "key": 3, "shown": None, "shown2": None},
    ),
    "descriptor_pairs": (
        correspondence.descriptor_pairs,
        lambda: {
            "pairs": pixel_pairs(),
            "instances2": np.zeros((8, 8), np.int32),
            "size1": (8, 8),
            "count": 2,
            "key": 3,
            "background": (0,),
        },
    ),
    "planar_pairs": (
        correspondence.planar_pairs,
        lambda: {
            "to_view_1": np.eye(3),
            "to_view_2": np.eye(3),
            "source": (8, 8),
            "size1": (8, 8),
            "size2": (8, 8),
            "pixels": None,
        },
    ),
    "affine_pairs": (
        correspondence.affine_pairs,
        lambda: {
            "keys": np.arange(2, dtype=np.uint64),
            "image": (16, 16),
            "size": (8, 8),
            "shift": None,
            "keep": 0.125,
        },
    ),
    "carried": (correspondence.carried, lambda: {"points": [[1.0, 2.0]], "matrices": np.eye(3)}),
    "inside": (correspondence.inside, lambda: {"points": [[1.0, 2.0]], "height": 8, "width": 8}),
    "recorded_camera": (
        correspondence.recorded_camera,
        lambda: {"pose": np.eye(4), "intrinsics": np.eye(3), "height": 8, "width": 8},
    ),
    # evaluation
    "accuracy": (
        evaluation.accuracy,
        lambda: {
            "queries": POINTS,
            "gallery": POINTS,
            "query_labels": LEVELS[:, 0],
            "gallery_labels": LEVELS[:, 0],
            "k": 1,
            "metric": "l2sq",
            "own": None,
            "never": (),
        },
    ),
    "mean_average_precision": (
        evaluation.mean_average_precision,
        lambda: {
            "queries": POINTS,
            "gallery": POINTS,
            "query_labels": LEVELS[:, 0],
            "gallery_labels": LEVELS[:, 0],
            "metric": "l2sq",
            "own": None,
            "never": (),
        },
    ),
    "rotation_from_euler": (
        pose.rotation_from_euler,
        lambda: {"azimuth": [0.0, 90.0], "elevation": 10.0, "theta": 0.0},
    ),
    "euler_from_rotation": (pose.euler_from_rotation, lambda: {"rotations": np.eye(3)}),
    "geodesic_error": (pose.geodesic_error, lambda: {"one": np.eye(3), "other": np.eye(3)}),
    "pose_errors": (pose.pose_errors, lambda: {"errors": [1.0, 20.0]}),
    "nearest": (
        evaluation.nearest,
        lambda: {"queries": POINTS, "gallery": POINTS, "k": 1, "metric": "l2sq", "own": None, "never": ()},
    ),
    "centred_correlation": (
        across.centred_correlation,
        lambda: {
            "query_values": POINTS[:, 0],
            "neighbour_values": POINTS[:, 1],
            "query_labels": LEVELS[:, 0],
            "labels": LEVELS[:, 0],
        },
    ),
    "nearest_across": (across.nearest_across, lambda: {"embeddings": POINTS, "labels": LEVELS[:, 0], "first": 4}),
    "nearest_of_each": (across.nearest_of_each, lambda: {"embeddings": POINTS, "labels": LEVELS[:, 0], "first": 4}),
    "matches": (
        evaluation.matches,
        lambda: {
            "query_factors": LEVELS,
            "gallery_factors": LEVELS,
            "rows": np.zeros((40, 1), int),
            "tolerance": None,
            "period": None,
        },
    ),
    "precision": (evaluation.precision, lambda: {"right": np.ones((2, 2), bool), "known": None}),
    "shared_keys": (
        evaluation.shared_keys,
        lambda: {"query_factors": LEVELS, "gallery_factors": LEVELS, "columns": [0]},
    ),
    "vote": (evaluation.vote, lambda: {"rows": np.zeros((2, 1), int), "gallery_labels": LEVELS[:, 0]}),
    "mig": (evaluation.mig, lambda: {"codes": POINTS, "factors": LEVELS, "bins": 4}),
    "modularity": (evaluation.modularity, lambda: {"codes": POINTS, "factors": LEVELS, "bins": 4}),
    "sap": (evaluation.sap, lambda: {"codes": POINTS, "factors": LEVELS, "linear": False, "bins": 4}),
    "dci": (evaluation.dci, lambda: {"codes": POINTS, "factors": LEVELS, "bins": 4, "seed": 0}),
    "factor_vae": (
        evaluation.factor_vae,
        lambda: {"codes": POINTS, "factors": LEVELS, "votes": 8, "size": 2, "seed": 0},
    ),
    "logistic_probe": (
        evaluation.logistic_probe,
        lambda: {"embeddings": POINTS, "labels": LEVELS[:, 0], "penalty": 1e-4, "seed": 0},
    ),
    "linear_classifier": (
        evaluation.linear_classifier,
        lambda: {
            "embeddings": POINTS,
            "labels": LEVELS[:, 0],
            "test_embeddings": POINTS,
            "test_labels": LEVELS[:, 0],
            "loss": "logistic",
            "c": (1.0,),
            "copies": (),
            "seed": 0,
        },
    ),
    "linear_regression": (
        evaluation.linear_regression,
        lambda: {
            "embeddings": POINTS,
            "values": LEVELS[:, 0],
            "test_embeddings": POINTS,
            "test_values": LEVELS[:, 0],
            "penalty": 0.1,
            "copies": (),
        },
    ),
    "network_probes": (
        evaluation.network_probes,
        lambda: {
            "embeddings": [POINTS],
            "factors": LEVELS,
            "seeds": (0,),
            "hidden": (2,),
            "steps": 1,
            "batch": 2,
            "rate": 1e-3,
            "held_out": 0.5,
            "device": "cpu",
        },
    ),
    "ridge_probe": (
        evaluation.ridge_probe,
        lambda: {"embeddings": POINTS, "values": LEVELS[:, 0], "penalty": 0.1, "folds": 2, "seed": 0},
    ),
    "neighbour_information": (
        evaluation.neighbour_information,
        lambda: {"embeddings": POINTS, "factors": LEVELS, "neighbours": 3, "sigma": 0.1, "seed": 0},
    ),
    "noise_scale": (evaluation.noise_scale, lambda: {"similarity": "l2", "tau": 1.0}),
    "mine": (
        evaluation.mine,
        lambda: {
            "embeddings": POINTS,
            "factors": LEVELS,
            "sigma": 1.0,
            "steps": 1,
            "batch": 4,
            "last": 1,
            "rate": 1e-3,
            "seed": 0,
            "device": "cpu",
        },
    ),
    "probe_information": (
        evaluation.probe_information,
        lambda: {
            "embeddings": POINTS,
            "factors": LEVELS,
            "sigma": 1.0,
            "steps": 1,
            "batch": 4,
            "held_out": 0.5,
            "rate": 1e-3,
            "seed": 0,
            "device": "cpu",
        },
    ),
    "noise_sweep": (
        evaluation.noise_sweep,
        lambda: {
            "embeddings": POINTS,
            "factors": LEVELS,
            "sigmas": [1.0],
            "similarity": "l2sq",
            "tau": 1.0,
            "steps": 1,
            "batch": 4,
        },
    ),
    "principal_components": (evaluation.principal_components, lambda: {"embeddings": POINTS, "k": 2}),
    # methods
    "similarities": (methods.similarities, lambda: {"x": U, "y": V, "similarity": "l2sq"}),
    "augmentation_loss": (
        abc.augmentation_loss,
        lambda: {"queries": U, "candidates": V, "similarity": "l2sq", "temperature": 1.0, "mask": None},
    ),
    "correspondence_loss": (
        abc.correspondence_loss,
        lambda: {"u": U, "v": V, "similarity": "l2sq", "temperature": 1.0, "u_mask": None, "v_mask": None},
    ),
    "directed_loss": (
        abc.directed_loss,
        lambda: {
            "queries": U,
            "keys": V,
            "similarity": "l2sq",
            "temperature": 1.0,
            "candidates": None,
            "query_mask": None,
            "key_mask": None,
        },
    ),
    "double_augmentation_loss": (
        abc.double_augmentation_loss,
        lambda: {
            "u": U,
            "v": V,
            "similarity": "l2sq",
            "temperature": 1.0,
            "neighbours": "second",
            "u_mask": None,
            "v_mask": None,
        },
    ),
    "soft_nearest_neighbours": (
        abc.soft_nearest_neighbours,
        lambda: {"queries": U, "keys": V, "similarity": "l2sq", "temperature": 1.0, "key_mask": None},
    ),
    # reports
    "bars": (
        reports.bars,
        lambda: {"groups": {"a": {"b": (1.0, 0.1)}}, "unit": "", "ceilings": None, "references": None, "title": ""},
    ),
    "curves": (
        reports.curves,
        lambda: {
            "series": {"a": ([0.0, 1.0], [1.0, 2.0])},
            "log_x": False,
            "x_label": "",
            "y_label": "",
            "bands": None,
            "references": None,
            "title": "",
        },
    ),
    "contact_sheet": (
        reports.contact_sheet,
        lambda: {
            "images": IMAGES[None],
            "captions": [["a"]],
            "title": "",
            "mask": None,
            "canonical": None,
            "sizes": None,
            "limit": 4,
            "width": 200,
            "tile": None,
            "scale": 1,
        },
    ),
    "image_grid": (
        reports.image_grid,
        lambda: {
            "images": IMAGES[None],
            "row_labels": ["a"],
            "column_labels": ["a", "b"],
            "title": "",
            "queries": None,
            "tile": None,
            "scale": 1,
        },
    ),
    "scatter": (
        reports.scatter,
        lambda: {
            "points": POINTS[:, :2],
            "values": LEVELS[:, 0],
            "factor": None,
            "title": "",
            "x_label": "",
            "y_label": "",
        },
    ),
    "image_scatter": (
        reports.image_scatter,
        lambda: {"points": POINTS[:2, :2], "images": IMAGES, "title": "", "x_label": "", "y_label": ""},
    ),
    "triplet_sheet": (
        reports.triplet_sheet,
        lambda: {
            "images": np.zeros((2, 3, 8, 8, 3), np.uint8),
            "title": "",
            "limit": 4,
            "width": 200,
            "tile": None,
            "scale": 1,
        },
    ),
    "describe": (reports.describe, lambda: {"table": table(), "draw": sampler()[0], "most": None}),
    "describe_triplets": (
        reports.describe_triplets,
        lambda: {"table": table(), "draw": samplers.TripletSampler(table(), "a", 2)[0], "orbit": ["a"], "most": None},
    ),
    "describe_pairs": (
        reports.describe_pairs,
        lambda: {"table": table(), "draw": samplers.FactorPairSampler(table(), 2, k=1)[0], "most": None},
    ),
    "value_words": (reports.value_words, lambda: {"factor": table()["b"], "value": 2}),
    # shards, jobs, experiments
    "open_shards": (
        shards.open_shards,
        lambda: {"url": "no-folder", "index": None, "size": None, "cache": 0, "storage_options": None},
    ),
    "index_shards": (
        shards.index_shards,
        lambda: {"url": "no-folder", "out": None, "storage_options": None, "name": None},
    ),
    "Ray": (jobs.Ray, lambda: {"address": None, "gpus": 0.0, "cpus": 1.0}),
    "check_processes": (jobs.check_processes, lambda: {"processes": 1, "on": None}),
    "find_preset": (experiments.find_preset, lambda: {"name": "abc/fig3a"}),
    "find_report": (experiments.find_report, lambda: {"name": "abc"}),
    "open_run": (experiments.open_run, lambda: {"folder": "no-folder", "preset": None}),
    "smoke": (experiments.smoke, lambda: {"preset": experiments.find_preset("abc/fig3a")}),
    "train": (experiments.train, lambda: {"preset": None, "folder": "a"}),
    "evaluate": (experiments.evaluate, lambda: {"run": None, "preset": None}),
    "load_trained": (experiments.load_trained, lambda: {"run": None, "root": None}),
    "embed": (experiments.embed, lambda: {"method": torch.nn.Flatten(), "dataset": None, "rows": [0]}),
    "report_on": (experiments.report_on, lambda: {"report": experiments.find_report("abc/fig3a"), "folders": ()}),
    "draw_report": (experiments.draw_report, lambda: {"filled": None}),
    "measured_reports": (experiments.measured_reports, lambda: {"folders": ()}),
    "report_page": (pages.report_page, lambda: {"filled": (), "title": "results"}),
    "jobs.run": (jobs.run, lambda: {"function": None, "units": [], "processes": 1}),
    "PixelPairs": (
        correspondence.PixelPairs,
        lambda: {name: getattr(pixel_pairs(), name) for name in ("points1", "points2", "xyz", "instance", "status")},
    ),
    "ColorViews": (lambda space: color_views()(space), lambda: {"space": "lab"}),
}
EXTRA = {
    "save": ("path",),
    "canonical": ("level",),
    "save_scene": ("path",),
    "to_huggingface": ("folder",),
    "mesh_from_trimesh": ("found",),
}


@pytest.mark.long("fuzzing")  # half a minute of curves, files and tables
@pytest.mark.parametrize("name", CASES)
def test_one_wrong_argument_is_one_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, arguments = CASES[name]
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for argument in (*arguments(), *EXTRA.get(name, ())):
            for value in hostile():
                try:
                    call(**{**arguments(), argument: value})
                except SetsupError as error:
                    sentence = str(error)
                    if (
                        name not in ("where", "dataset.where")
                        and argument not in ("where", "pool", "members", "positive", "negative")
                        and "\n" in sentence
                    ):
                        wrong.append(f"{argument}={value!r}: {sentence!r}")
                except Exception as error:
                    wrong.append(f"{argument}={value!r}: {type(error).__name__}: {error}"[:200])
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
