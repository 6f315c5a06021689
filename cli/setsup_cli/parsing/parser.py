"""From classes of options to cyclopts, and from its errors to one sentence.

A subcommand is a function whose parameters are the fields of its class of options, and which returns them as that
class.
"""

import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial
from inspect import Parameter as Argument
from inspect import Signature
from io import StringIO
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

import cyclopts
from cyclopts import App, CycloptsError, Group, Parameter

from setsup.errors import SetsupError, did_you_mean
from setsup_cli.parsing.values import alternatives

if TYPE_CHECKING:
    from cyclopts.help import ColumnSpec
    from rich.console import Console

__all__ = ["Subcommand", "complete", "option_names", "parse", "parse_known", "print_help"]


class Subcommand(NamedTuple):
    """A subcommand: its name, its class of options, its help, and the name on which its options depend.

    ``more`` ends its help: names and what is said of each.
    """

    name: str
    options: type
    help: str
    depends: str = ""
    more: Sequence[tuple[str, str]] = ()
    summary: str = ""

    @property
    def command(self) -> str:
        """The command whose help lists the options."""
        return f"setsup {self.name} {self.depends}".rstrip()


def _app(subcommands: Sequence[Subcommand]) -> App:
    """Make the parser of some subcommands; the result of a call is an instance of the class of options."""
    app = App(
        name="setsup",
        help_format="plaintext",
        version_flags=(),
        group_arguments=Group("Arguments", sort_key=0),
        group_parameters=Group("Options", sort_key=1),
        default_parameter=Parameter(
            negative=(), consume_multiple=(1, None), allow_repeating=False, show_choices=False,
            json_dict=False, json_list=False,
        ),
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
    )  # fmt: skip
    for name, options, text, *_ in subcommands:
        labels = [_parameter(member).metavar or "" for member in fields(options) if not member.kw_only]
        usage = " ".join(["Usage: setsup", name, *labels, "[OPTIONS]"])
        app.command(_collector(options), name=name, help=_unwrap(text), usage=usage)
    return app


def parse(subcommand: Subcommand, words: Sequence[str]) -> Any:
    """Convert words to options, or say in one sentence what is wrong with them."""
    _check_words(subcommand, words)
    try:
        return _options(subcommand, words)
    except CycloptsError as error:
        raise SetsupError(_sentence(error, subcommand.command, subcommand.options)) from error


def _check_words(subcommand: Subcommand, words: Sequence[str]) -> None:
    """Refuse what cyclopts takes: ``--json=true``, ``--out=``, ``-out`` for ``-o ut``, and a second seed as DATASET."""
    kinds = {_long_name(member): member.type for member in fields(subcommand.options) if member.kw_only}
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if (long := f"-{name}") in kinds:
            raise SetsupError(
                f"unknown option {name!r}; did you mean {long!r}? (`{subcommand.command} --help` lists the options)"
            )
        if name not in kinds:
            continue
        is_flag = get_args(kinds[name])[0] is bool
        if equals and is_flag:
            raise SetsupError(f"{name} takes no value; remove '={value}'")
        if equals and not value:
            metavar = next(note for note in get_args(kinds[name]) if isinstance(note, Parameter)).metavar
            raise SetsupError(f"{name} requires a value: `{name} {metavar}`")
        more = words[at + 1 :] if equals else words[at + 2 :]
        is_one_seed = name == "--seed" and int in alternatives(get_args(kinds[name])[0])
        if is_one_seed and more and re.fullmatch(r"\d+", more[0]):
            raise SetsupError(
                f"--seed takes a single seed, but {more[0]!r} is a second seed; run `{subcommand.command}` once "
                "per seed"
            )


def option_names(options: type) -> dict[str, str]:
    """Names of options by those of the fields of their class, without settings in groups such as ``method.rate``."""
    return {
        member.name: _long_name(member)
        for member in fields(options)
        if member.kw_only and not is_dataclass(get_args(member.type)[0])
    }


def _long_name(member: "Field[Any]") -> str:
    return next(iter(_parameter(member).name or ()), f"--{member.name.replace('_', '-')}")


def _columns(console: "Console", options: object, entries: object) -> tuple["ColumnSpec", ...]:
    """Columns of the help, of which the first is wide enough for choices."""
    from cyclopts.help import ColumnSpec, DescriptionRenderer, NameRenderer
    from rich.text import Text

    width = console.width * 45 // 100
    names = NameRenderer(width)
    # as text: rich takes [png|pdf ...] for markup, and shows nothing
    name = ColumnSpec(renderer=lambda entry: Text(str(names(entry))), style="cyclopts.name", max_width=width)
    return name, ColumnSpec(renderer=DescriptionRenderer(), overflow="fold")


def print_help(subcommand: Subcommand, line: str) -> None:
    """Print the help of a subcommand to standard output, after a line about it."""
    from cyclopts.help import DefaultFormatter

    from setsup_cli.output import console
    from setsup_cli.parsing.narrow import NARROW, NarrowFormatter

    # rendered first: rich exits by itself where standard output is closed
    text = StringIO()
    screen = console(text)
    app = _app([subcommand._replace(help=f"{line}\n\n{subcommand.help}")])
    app.help_formatter = NarrowFormatter() if screen.width < NARROW else DefaultFormatter(column_specs=_columns)
    app.help_print([subcommand.name], console=screen)
    sys.stdout.write(
        text.getvalue() + "".join(_lines(name, about, screen.width, NARROW) for name, about in subcommand.more)
    )


def _lines(name: str, about: str, width: int, narrow: int) -> str:
    """Lines of an entry: beside its name, or below it on a narrow terminal."""
    indent = " " * (14 if width >= narrow else 6) if name else ""
    first = "" if not name else f"  {name:<11} " if width >= narrow else f"  {name}\n{indent}"
    lines = textwrap.wrap(about, max(width - len(indent) - 1, 1), break_long_words=False, break_on_hyphens=False)
    return first + f"\n{indent}".join(lines) + "\n"


def complete(subcommands: Sequence[Subcommand], words: Sequence[str]) -> None:
    """Install shell completion for subcommands, or print what completes words."""
    from cyclopts.completion.detect import ShellDetectionError

    from setsup_cli.parsing.completion import install

    app = _app(subcommands)
    app.command(partial(install, app), name="--install-completion")
    try:
        with redirect_stderr(StringIO()):
            app(words)
    except CycloptsError as error:
        raise SetsupError(_sentence(error, "setsup --install-completion")) from error
    except ShellDetectionError as error:
        raise SetsupError(
            "could not detect the shell; specify it: `setsup --install-completion --shell bash`"
        ) from error


def parse_known(subcommand: Subcommand, words: Sequence[str]) -> Any:
    """Convert the words of a class of options on which further ones depend; unknown options are left out.

    The values of an unknown option are all words up to the next one, but a single word where no argument would be left.
    """
    words = [word for word in words if word not in ("-h", "--help")]
    _check_words(subcommand, words)
    for most in (len(words), 1):
        known = list(words)
        while True:
            try:
                parsed = _options(subcommand, known)
                break
            except cyclopts.UnknownOptionError as error:
                name = _option_name(error)
                start = next(at for at, word in enumerate(known) if word.partition("=")[0] == name)
                end = start + 1
                while (
                    "=" not in known[start] and end < len(known) and end <= start + most and not _is_option(known[end])
                ):
                    end += 1
                del known[start:end]
            except CycloptsError as error:
                raise SetsupError(_sentence(error, subcommand.command, subcommand.options)) from error
        if any(
            getattr(parsed, member.name) != member.default
            for member in fields(subcommand.options)
            if not member.kw_only
        ):
            break
    return parsed


def _options(subcommand: Subcommand, words: Sequence[str]) -> Any:
    return _app([subcommand])([subcommand.name, *words])


def _collector(options: type) -> Any:
    """A function of the fields of a class that returns its instance."""

    def collect(*arguments: Any, **given: Any) -> Any:
        return options(*arguments, **given)

    signature = Signature(
        [
            Argument(
                member.name,
                Argument.KEYWORD_ONLY if member.kw_only else Argument.POSITIONAL_ONLY,
                default=_default(member),
                annotation=member.type,
            )
            for member in sorted(fields(options), key=lambda member: bool(member.kw_only))
        ]
    )
    vars(collect)["__signature__"] = signature
    collect.__annotations__ = {name: member.annotation for name, member in signature.parameters.items()}
    return collect


def _default(member: "Field[Any]") -> Any:
    if member.default_factory is not MISSING:
        return member.default_factory()
    return Argument.empty if member.default is MISSING else member.default


def _parameter(member: "Field[Any]") -> Parameter:
    return next(note for note in get_args(member.type) if isinstance(note, Parameter))


def _unwrap(text: str) -> str:
    """Join the lines of each paragraph, but those of lists."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(part if "\n  " in part else " ".join(part.split("\n")) for part in paragraphs)


# -- errors ------------------------------------------------------------------------------------------------------------


def _sentence(error: CycloptsError, command: str, options: type | None = None) -> str:
    """What is wrong, by the structure of an error, in words for a class of options."""
    argument: Any = error.argument
    parameter = argument.parameter if argument is not None else Parameter()
    match error:
        case cyclopts.UnknownOptionError(argument_collection=known):
            name = _option_name(error)
            names = [
                candidate
                for each in known
                if not each.children
                for candidate in each.names
                if candidate.startswith("--")
            ]
            sought = f"--{name.lstrip('-').replace('_', '-')}"
            meant = next((candidate for candidate in _ELSEWHERE.get(sought, ()) if candidate in names), None)
            if meant is not None:
                close = f"; did you mean {meant!r}?"
            elif sought in _NOT_HERE:
                close = f"; {_NOT_HERE[sought]}"
            else:
                close = did_you_mean(
                    sought, [candidate for candidate in names if candidate.startswith(sought)] or names
                )
            return f"unknown option {name!r}{close} (`{command} --help` lists the options)"
        case cyclopts.UnusedCliTokensError(unused_tokens=[first, *_]):
            return f"unexpected argument {first!r} (`{command} --help` lists arguments and options)"
        case cyclopts.RepeatArgumentError(token=token):
            # the error does not say which option it is of
            declared = {} if options is None else {_long_name(member): _parameter(member) for member in fields(options)}
            repeated = declared.get(token.keyword or "") or parameter
            metavar = (repeated.metavar if repeated is not None else None) or ""
            how = f", with all its values: `{token.keyword} {metavar}`" if metavar.endswith(" ...") else ""
            return f"{token.keyword} is specified twice; specify it once{how}"
        case cyclopts.MissingArgumentError() if not argument.name.startswith("-"):
            return f"`{command}` requires the argument {parameter.metavar}: {_start(parameter.help)}"
        case cyclopts.MissingArgumentError():
            many = "a value" if argument.token_count()[0] == 1 else f"{argument.token_count()[0]} values"
            return f"{argument.name} requires {many}: `{_usage(argument.name, parameter)}`"
        case cyclopts.CoercionError(token=token, target_type=kind) if token is not None:
            option = argument.name if token.keyword else parameter.metavar
            if argument.hint is bool:
                return f"{option} takes no value; remove '={token.value}'"
            choices = _choices(kind)
            meant = did_you_mean(token.value, choices) if choices else ""
            meant = meant if "did you mean" in meant else ""  # the choices are listed before
            return f"{option} must be {_expected(kind, parameter.metavar or '')}, not {token.value!r}{meant}"
    return str(error).rstrip(".")


_ELSEWHERE = {
    "--batch-size": ("--sampler.size", "--size"),
    "--learning-rate": ("--method.optimiser.rate",),
    "--num-workers": ("--workers",),
    "--fixed": ("--inactive", "--sampler.inactive"),
    "--varying": ("--active", "--sampler.active"),
}
"""Options by names that they have in other programs."""

_NOT_HERE = {
    "--shuffle": "draws are random, and --seed changes them",
    "--num-workers": "this subcommand does not load batches in worker processes",
    "--frames": "the recipes room and object have it, as in `setsup pairs room --frames 0 8`",
    "--moving": "things move with --frames, which has this option, as in `setsup render room --frames 24 --moving 5`",
    "--turn": "things move with --frames, which has this option, as in `setsup render object --frames 24 --turn 15`",
}
"""Why there is no such option."""


def _is_option(word: str) -> bool:
    return word.startswith("--") or (word.startswith("-") and word[1:2].isalpha())


def _option_name(error: cyclopts.UnknownOptionError) -> str:
    return (error.token.keyword or error.token.value).partition("=")[0]


def _usage(name: str, parameter: Parameter) -> str:
    return f"{name} {parameter.metavar}" if parameter.metavar else name


_KINDS: Mapping[Any, str] = {int: "an integer", float: "a number", Path: "a path"}


def _expected(kind: Any, metavar: str) -> str:
    kinds = alternatives(kind)
    words = [_KINDS[alternative] for alternative in kinds if alternative in _KINDS]
    choices = _choices(kind)
    words += [f"one of {', '.join(choices)}"] if len(choices) > 1 else choices
    words += ["none"] if NoneType in kinds or "none" in metavar.split("|") else []
    return " or ".join(words) or "valid"


def _choices(kind: Any) -> list[str]:
    literals = (literal for literal in alternatives(kind) if get_origin(literal) is Literal)
    return [str(choice).lower() for literal in literals for choice in get_args(literal)]


def _start(text: str | None) -> str:
    return f"{(text or '')[:1].lower()}{(text or '')[1:].rstrip('.')}"
