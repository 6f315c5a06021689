"""Checks of arguments that all packages share: each returns the value as a plain type, or raises one sentence.

``what`` names the argument in the message, which the command writes as its option, and ``error`` is the class that the
caller's package raises.
"""

from setsup.checks.annotations import check_arguments
from setsup.checks.foreign import explains_foreign, refuse_foreign
from setsup.checks.memory import check_memory
from setsup.checks.values import (
    check_array,
    check_boolean,
    check_choice,
    check_image_size,
    check_instance,
    check_integer,
    check_mapping,
    check_number,
    check_path,
    check_rates,
    check_string,
    check_strings,
    is_integer,
    is_number,
)

__all__ = [
    "check_arguments",
    "check_array",
    "check_boolean",
    "check_choice",
    "check_image_size",
    "check_instance",
    "check_integer",
    "check_mapping",
    "check_memory",
    "check_number",
    "check_path",
    "check_rates",
    "check_string",
    "check_strings",
    "explains_foreign",
    "is_integer",
    "is_number",
    "refuse_foreign",
]
