"""Text of an expression as Python's syntax tree, and errors that point into it."""

import ast
import json
import keyword
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeGuard

from setsup.errors import FactorError, abbreviate, short
from setsup.factors.factor import Level

__all__ = ["ANCHOR", "Expression", "clip", "is_of_anchor", "literal", "quote", "shallow"]

ANCHOR = "anchor"
"""What the other row of a constraint is called."""


_QUOTED = re.compile(
    r"""'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\#[^\n]*"""
    r"""|`(?P<name>(?:[^`\n]|``)*)`""",
    re.DOTALL,
)
"""Strings and comments, in which a backtick is a character, and names in backticks."""
_FOREIGN = re.compile(
    rf"(?:{_QUOTED.pattern})|(?P<sign>\s*(?:&&|\|\||<>|===|!==|(?<![=!<>])=(?!=)|!(?!=))\s*)", re.DOTALL
)
"""Operators of other languages, outside strings, comments and names in backticks."""
_MEANT = {"&&": " and ", "||": " or ", "<>": " != ", "===": " == ", "!==": " != ", "=": " == ", "!": " not "}
_SHOWN = 120  # characters of an expression in an error


@dataclass(frozen=True, slots=True)
class Expression:
    """Text of an expression and the names of the factors that it may compare."""

    text: str
    names: Collection[str]

    @classmethod
    def of(cls, text: str, names: Collection[str]) -> "Expression":
        """Expression as Python would decode its text, with line ends as Python counts them."""
        if not isinstance(text, str):
            raise FactorError(f'an expression must be a string such as "digit != 9", not {abbreviate(text)}')
        plain = text.strip().encode("utf-8", "backslashreplace").decode()
        return cls(plain.replace("\r\n", "\n").replace("\r", "\n"), names)

    def parse(self) -> ast.expr:
        """Syntax tree, in which a name node has the name of the factor that is meant."""
        plain, quoted = _without_backticks(self.text)
        try:
            parsed = ast.parse(plain, mode="eval").body
        except SyntaxError as error:
            spot = _point(self.text, error.lineno or 1, (error.offset or 1) - 1, 1)
            raise FactorError(f"invalid expression ({error.msg}){self.hint()}{spot}") from None
        except ValueError as error:
            raise FactorError(f"invalid expression ({error}){self.hint()}: {clip(self.text)}") from None
        if any("." in name for name in self.names):
            parsed = _Dotted(self.names).visit(parsed)
        lines = plain.split("\n")
        for node in ast.walk(parsed):
            if isinstance(node, ast.Name):
                # Python has the normal form of an identifier, and a factor may be called as it is written
                written = lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
                exact = written if written in self.names else node.id
                node.id = quoted.get((node.lineno, node.col_offset), exact)
            elif is_of_anchor(node) and "." not in node.attr:
                line, end = node.end_lineno or 1, node.end_col_offset or 0
                written = lines[line - 1].encode()[:end].decode().rpartition(".")[2].strip()
                exact = written if written in self.names else node.attr
                node.attr = quoted.get((line, end - len(written.encode())), exact)
        return parsed

    @property
    def counts(self) -> bool:
        """Whether it counts rows, so that what it says of one depends on the others."""
        return any(isinstance(node, ast.Call) for node in ast.walk(self.parse()))

    def hint(self) -> str:
        """How to correct something that is not an expression."""
        plain, _ = _without_backticks(self.text)
        if "`" in _QUOTED.sub("", plain):
            return "; close the name with a backtick on the same line"
        if meant := self._in_python():
            return f"; did you mean {meant}?"
        for name in self.names:
            odd = not name.isidentifier() or keyword.iskeyword(name)
            if odd and name in plain and any(map(str.isalpha, name)):
                return f"; put the name {name!r} in backticks, {quote(name)}"
        return "; expected a comparison of factors with values, such as \"digit != 9 and split == 'train'\""

    def _in_python(self) -> str | None:
        """The expression with the operators of Python, if it has others and is one then."""
        meant = _FOREIGN.sub(lambda match: _MEANT[match["sign"].strip()] if match["sign"] else match[0], self.text)
        meant = meant.strip()
        if meant == self.text or len(meant) > _SHOWN:
            return None
        try:
            ast.parse(_without_backticks(meant)[0], mode="eval")
        except (SyntaxError, ValueError):
            return None
        return meant

    def refuse(self, node: ast.AST, sentence: str) -> NoReturn:
        """Raise an error that points at a node."""
        lineno, start = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        line = self.text.split("\n")[lineno - 1].encode()
        end = getattr(node, "end_col_offset", start) if getattr(node, "end_lineno", lineno) == lineno else len(line)
        column = len(line[:start].decode(errors="replace"))
        width = len(line[start:end].decode(errors="replace"))
        raise FactorError(sentence + _point(self.text, lineno, column, width))


@contextmanager
def shallow(expression: Expression) -> Iterator[None]:
    """Report an expression that is nested too deeply, or needs too much memory, as an error of its own."""
    try:
        yield
    except (RecursionError, MemoryError) as error:
        # numpy's MemoryError says how much; the parser's does not
        if isinstance(error, RecursionError) or (type(error) is MemoryError and not error.args):
            raise FactorError(
                f"the expression is nested too deeply: {clip(expression.text)}; simplify the expression"
            ) from None
        raise FactorError(
            f"not enough memory to evaluate the expression ({error}): {clip(expression.text)}; reduce the rows or "
            "levels"
        ) from None


def quote(name: str) -> str:
    """A factor's name as an expression has it whatever it is: in backticks."""
    return f"`{name.replace('`', '``')}`"


def literal(value: Level) -> str:
    """A level as an expression has it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def is_of_anchor(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Whether a node is ``anchor.FACTOR``."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == ANCHOR


class _Dotted(ast.NodeTransformer):
    """``a.b`` as one name, where a factor is called that: a field of a struct."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts, inner = [inner.attr, *parts], inner.value
        if not isinstance(inner, ast.Name):
            return node
        rest = ".".join(parts)
        if inner.id == ANCHOR and rest in self._names:
            return ast.copy_location(ast.Attribute(inner, rest, ast.Load()), node)
        name = f"{inner.id}.{rest}"
        return ast.copy_location(ast.Name(name, ast.Load()), node) if name in self._names else node


def _without_backticks(text: str) -> tuple[str, dict[tuple[int, int], str]]:
    """Text with underscores, byte for byte, in place of names in backticks, and those names by line and byte."""
    names: dict[tuple[int, int], str] = {}

    def underscores(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        line, start = text.count("\n", 0, match.start()) + 1, text.rfind("\n", 0, match.start()) + 1
        names[line, len(text[start : match.start()].encode())] = match["name"].replace("``", "`")
        return "_" * len(match[0].encode())

    return _QUOTED.sub(underscores, text), names


def clip(text: str) -> str:
    """Start of an expression."""
    return short(text, _SHOWN)


def _point(text: str, lineno: int, column: int, width: int) -> str:
    """Line of an expression with carets below a word, both cut where the line is long."""
    lines = text.splitlines() or [""]
    line = "".join(letter if letter.isprintable() else " " for letter in lines[min(lineno, len(lines)) - 1])
    start = max(0, column - _SHOWN // 2)
    width = max(1, min(width, len(line) - column, start + _SHOWN - column))
    shown = ("…" if start else "") + clip(line[start:])
    return f"\n  {shown}\n  {' ' * (column - start + bool(start))}{'^' * width} column {column + 1}"
