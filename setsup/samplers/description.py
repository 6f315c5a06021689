"""Samplers from plain data, as :meth:`Sampler.to_dict` describes them."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from setsup.errors import SamplerError, advice, did_you_mean
from setsup.factors.table import FactorTable
from setsup.samplers.arguments import check_nesting, check_table
from setsup.samplers.sampler import Sampler
from setsup.samplers.spelling import python_arguments

__all__ = ["from_dict"]


def from_dict(data: Mapping[str, Any], table: FactorTable) -> Sampler:
    """Make a sampler from the plain data of :meth:`Sampler.to_dict`, on the same table.

    Raises
    ------
    SamplerError
        If the table is another one, the sampler is unknown, or an argument is missing.

    Examples
    --------
    >>> import setsup
    >>> from setsup.samplers import from_dict
    >>> table = setsup.load("shapes3d-procedural").factors
    >>> sets = setsup.SetSampler(table, inactive=["shape"], size=8, seed=5)
    >>> again = from_dict(sets.to_dict(), table)
    >>> bool((again[3].indices == sets[3].indices).all())
    True

    """
    kinds = Sampler.kinds()
    try:
        name, fingerprint, arguments = data["sampler"], data["fingerprint"], dict(data["arguments"])
    except (LookupError, TypeError, ValueError):
        raise SamplerError(
            "the description of a sampler must have the keys sampler, fingerprint and arguments; create it with "
            "Sampler.to_dict()"
        ) from None
    check_nesting(data)
    if not isinstance(name, str) or name not in kinds:
        raise SamplerError(
            f"unknown sampler {name!r}{did_you_mean(name, kinds)}; for a sampler of your own, "
            f"{advice('import its module first', 'pass --sampler FILE.py:CLASS')}"
        )
    if not check_table(table).has_fingerprint(fingerprint):
        raise SamplerError(
            f"the {name} was created for a table with the fingerprint {fingerprint}, not {table.fingerprint}; load "
            "the same dataset with the same split and where"
        )
    try:
        kind = kinds[name]
        return kind._from_arguments(python_arguments(arguments, signature(kind).parameters), table)
    except TypeError as error:
        words = str(error).removeprefix(f"{name}.__init__() ").removeprefix(f"{name} ")
        words = words.replace("required positional ", "")
        raise SamplerError(f"invalid arguments of {name}: {words}") from None
