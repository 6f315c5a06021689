"""Pairs of views of one scene, drawn by factors alone: what pixel correspondences are then found for."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from setsup.datasets.dataset import Dataset
from setsup.errors import SamplerError, spell_name
from setsup.samplers import Report, SetSampler

__all__ = ["PixelPairSampler", "explain_small"]


@contextmanager
def explain_small(name: str, agree: Sequence[str], on_small_group: str = "drop") -> Iterator[None]:
    """Say of views what a SetSampler says of groups: that a scene, or each of them, has a single one."""
    try:
        yield
    except SamplerError as error:
        if " have fewer than the " not in str(error):
            raise
        which = "none of the scenes" if on_small_group == "drop" else "not every scene"
        raise SamplerError(
            f"{which} of {name} has two views that agree in {', '.join(agree)} and differ in another factor; draw from "
            "more rows, or choose fewer factors"
        ) from error


class PixelPairSampler(SetSampler):
    """Draws pairs of different views of one scene: sets of two rows that agree in the factors of the scene.

    Every combination of those factors that has two views is drawn equally often, and in it every ordered pair of
    different rows; pairs of a step are independent. It is ``SetSampler(inactive=scene, size=2, choose="groups")`` with
    a stream of its own, and draws rows only: views and partners come from
    :func:`setsup.correspondence.view_pairs`, or in a loader from
    :class:`setsup.loading.views.SpatialPairs`.

    Parameters
    ----------
    dataset : Dataset
        A rendered one, or recorded frames.
    scene : str or list of str, optional
        Factors in which the two views agree; those of the recipe by default (``dataset.pair_factors``), such as
        ``["room", "pair"]``.
    pairs : int
        Pairs per step.
    tolerance : mapping of str to float, optional
        Continuous factors among ``scene``, in which the views differ by no more than that: ``{"azimuth": 30.0}``.
    on_small_group : str
        What to do with scenes of a single view: ``drop`` leaves them out, ``error`` refuses them.
    where : str, optional
        Expression that drawn rows satisfy.
    seed : int
        0 ≤ seed < 2⁶⁴.
    stream : str
        Two with one seed draw alike unless this differs.

    Raises
    ------
    SamplerError, FactorError
        When nothing says what a scene is, or the arguments do not fit the table.

    Examples
    --------
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(32, 32)))
    >>> draw = PixelPairSampler(shapes, pairs=4)[0]
    >>> draw.indices.shape, sorted(draw.inactive)
    ((4, 2), ['floor_hue', 'object_hue', 'scale', 'shape', 'wall_hue'])

    """

    def __init__(
        self,
        dataset: Dataset,
        scene: str | Sequence[str] | None = None,
        *,
        pairs: int = 8,
        tolerance: Mapping[str, float] | None = None,
        on_small_group: Literal["error", "drop", "short", "replace"] = "drop",
        where: str | None = None,
        seed: int = 0,
        stream: str = "PairSampler",
    ) -> None:
        if scene is None:
            scene = getattr(dataset, "pair_factors", None)
        if not scene:
            name = getattr(dataset, "name", type(dataset).__name__)
            raise SamplerError(
                f"scene= is required for {name}; pass the factors in which the two views of a pair agree, such as the "
                "number of the scene"
            )
        if on_small_group not in ("drop", "error"):
            raise SamplerError(
                f"{spell_name('on_small_group')} must be 'drop' or 'error' for pairs, not {on_small_group!r}"
            )
        agree = [scene] if isinstance(scene, str) else list(scene)
        with explain_small(dataset.name, agree, on_small_group):
            super().__init__(
                dataset.factors,
                agree,
                size=2,
                sets=pairs,
                choose="groups",
                on_small_group=on_small_group,
                tolerance=tolerance,
                where=where,
                seed=seed,
                stream=stream,
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the SetSampler that draws the same, from which :func:`setsup.samplers.from_dict` makes it."""
        return {**super().to_dict(), "sampler": "SetSampler"}

    def report(self) -> Report:
        """Report what will be drawn, and what cannot be drawn."""
        report = super().report()
        return Report(f"PixelPairSampler: {self.sets} pairs of views", report.entries, report.notes)
