import ast
import operator
import random
import string
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setsup.errors import FactorError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.constraint import read_constraint
from setsup.factors.where import evaluate

SHAPES = ("cube", "ball", "cone")
SIZES = (0.75, 1.0, 1.25)
LIGHTS = ("low", "mid", "high")
FACTORS = [
    Factor("shape", Kind.NOMINAL, SHAPES),
    Factor("scale", Kind.ORDINAL, SIZES),
    Factor("light", Kind.ORDINAL, LIGHTS),
    Factor("digit", Kind.NOMINAL, tuple(range(10))),
    Factor("glasses", Kind.NOMINAL, (False, True)),
    Factor("angle", Kind.CONTINUOUS),
    Factor("other", Kind.NOMINAL, ("cone", "cube")),
    Factor("count", Kind.ORDINAL, (0, 1, 2)),
    Factor("dim", Kind.ORDINAL, LIGHTS),
]


def random_table(rows, seed, unknown=0.2):
    numbers = np.random.default_rng(seed)
    columns = {}
    for factor in FACTORS:
        hidden = numbers.random(rows) < unknown
        if factor.levels is None:
            columns[factor.name] = np.where(hidden, np.nan, numbers.integers(-2, 3, rows) / 10)
        else:
            columns[factor.name] = np.where(hidden, -1, numbers.integers(0, len(factor), rows))
    return FactorTable(FACTORS, columns)


TABLE = random_table(400, 0)
ROWS = [
    {name: None if value is None or value != value else value for name, value in zip(TABLE.names, row, strict=True)}
    for row in zip(*(TABLE.values(name).tolist() for name in TABLE.names), strict=True)
]
EXPRESSIONS = [
    "shape == 'cube'",
    "shape != 'cube'",
    "'ball' == shape",
    "not shape == 'cube'",
    "scale >= 1.0",
    "scale > 1",
    "0.8 < scale <= 1.0",
    "not 0.8 < scale <= 1.0",
    "1.0 > scale",
    "shape in ('cube', 'cone')",
    "shape not in ['cube']",
    "not (shape in {'cube', 'cone'})",
    "digit in (1, 2, 3) and not glasses == True",
    "digit != 9 and (shape == 'cube' or light >= 'mid')",
    "light < 'high' or scale == 0.75",
    "not (light < 'high' or scale == 0.75)",
    "angle > -0.1",
    "not angle > -0.1",
    "angle == 0.1",
    "angle != 0.1",
    "angle in (-0.2, 0.1)",
    "not angle in (-0.2, 0.1)",
    "digit < 4.5",
    "digit < 100",
    "glasses != False",
    "shape == other",
    "shape != other",
    "not shape == other",
    "count < digit",
    "count < digit < 7",
    "light <= dim",
    "angle < count",
    "scale != angle",
    "shape is None",
    "angle is not None",
    "not (shape is None or light is None)",
    "shape in ()",
    "shape not in ()",
    "count(digit) >= 33",
    "not count(digit) >= 33",
    "30 < count(digit) <= 33 and shape == 'cube'",
    "90 > count(scale)",
    "count(light) != 107 or count(glasses) == 0",
    "digit % 2 == 0",
    "not digit % 3 == 1",
    "1 <= digit % 4 < 3",
    "count % 2 == 1 or count(count) > 100",
]


def reference(expression, row, rows):
    """Three-valued truth of a row, found by walking Python's syntax tree over plain values."""
    operators = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
                 ast.Gt: operator.gt, ast.GtE: operator.ge}  # fmt: skip
    by_name = {factor.name: factor for factor in FACTORS}

    def value(node):
        if isinstance(node, ast.Call):
            own = row[node.args[0].id]
            return None if own is None else sum(other[node.args[0].id] == own for other in rows), False
        if isinstance(node, ast.BinOp):
            own = row[node.left.id]
            return None if own is None else own % node.right.value, False
        if isinstance(node, ast.Name):
            return row[node.id], by_name[node.id].continuous
        return ast.literal_eval(node), False

    def compared(left, link, right):
        if isinstance(link, ast.Is | ast.IsNot):
            return (row[left.id] is None) == isinstance(link, ast.Is)
        if isinstance(link, ast.In | ast.NotIn):
            if row[left.id] is None:
                return None
            found = any(compared(left, ast.Eq(), element) for element in right.elts)
            return found == isinstance(link, ast.In)
        (x, single), (y, also_single) = value(left), value(right)
        if x is None or y is None:
            return None
        if isinstance(link, tuple(list(operators)[2:])) and isinstance(x, str):
            x, y = LIGHTS.index(x), LIGHTS.index(y)
        if single or also_single:
            x, y = np.float32(x), np.float32(y)
        return bool(operators[type(link)](x, y))

    def both(truths):
        return False if False in truths else None if None in truths else True

    def truth(node):
        if isinstance(node, ast.BoolOp):
            truths = [truth(part) for part in node.values]
            if isinstance(node.op, ast.And):
                return both(truths)
            turned = both([None if part is None else not part for part in truths])
            return None if turned is None else not turned
        if isinstance(node, ast.UnaryOp):
            inner = truth(node.operand)
            return None if inner is None else not inner
        sides = [node.left, *node.comparators]
        return both([compared(*link) for link in zip(sides, node.ops, sides[1:], strict=False)])

    return truth(ast.parse(expression, mode="eval").body) is True


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rows_are_those_that_python_finds_one_by_one(expression):
    expected = [reference(expression, row, ROWS) for row in ROWS]
    found = evaluate(expression, TABLE)
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("expression", [text for text in EXPRESSIONS if "angle" not in text])
def test_a_grid_gives_what_its_columns_give(expression):
    grid = FactorTable(
        [factor for factor in FACTORS if factor.levels is not None and factor.name != "dim"] + [FACTORS[-1]]
    )
    codes = {name: grid.codes(name) for name in grid.names}
    np.testing.assert_array_equal(evaluate(expression, grid), evaluate(expression, FactorTable(grid.factors, codes)))


@pytest.mark.parametrize("condition", [text for text in EXPRESSIONS if " is " not in text])
def test_unknown_satisfies_neither_a_condition_nor_its_negation(condition):
    hidden = FactorTable(
        FACTORS, {f.name: np.full(3, -1) if f.levels else np.full(3, np.nan, np.float32) for f in FACTORS}
    )
    assert not evaluate(condition, hidden).any()
    assert not evaluate(f"not ({condition})", hidden).any()


def test_nested_levels_count_within_their_outer_ones():
    person, session = (
        Factor("person", Kind.NOMINAL, ("ann", "bob")),
        Factor("session", Kind.ORDINAL, (1, 2), within="person"),
    )
    table = FactorTable([person, session], {"person": [0, 0, 0, 1, 1, -1], "session": [0, 0, 1, 0, 0, 0]})
    assert evaluate("count(session) == 2", table).tolist() == [True, True, False, True, True, False]
    assert evaluate("not count(session) == 2", table).tolist() == [False, False, True, False, False, False]


def test_numbers_given_as_decimals_are_met_though_stored_as_float32():
    table = FactorTable([FACTORS[5]], {"angle": np.array([0.7, 0.1], dtype=np.float32)})
    assert evaluate("angle >= 0.7", table).tolist() == [True, False]
    assert evaluate("angle <= 0.1", table).tolist() == [False, True]
    assert evaluate(f"angle < 1{'0' * 400}", table).all()
    assert evaluate("angle > -1e999", table).all()


PUBLISHED = {
    "hue": np.arange(10) * 0.1,  # 0.30000000000000004 where the level is 0.3
    "scale": np.linspace(0.75, 1.25, 8),
    "orientation": np.linspace(-30, 30, 15),
    "turn": np.linspace(0, 2 * np.pi, 40),
    "place": np.linspace(0, 1, 32),
}
ROUNDED = [Factor(name, Kind.ORDINAL, tuple(np.round(found, 4).tolist())) for name, found in PUBLISHED.items()]


@pytest.mark.parametrize("factor", ROUNDED, ids=list(PUBLISHED))
def test_published_numbers_stand_for_their_rounded_levels(factor):
    table = FactorTable([factor])
    codes = np.arange(len(table))
    for code, exact in enumerate(PUBLISHED[factor.name].tolist()):
        # as computed, as rounded, and as 32 bits hold the one and the other
        for value in {exact, factor.levels[code], float(np.float32(exact)), float(np.float32(factor.levels[code]))}:
            for sign, compare in (("==", np.equal), ("!=", np.not_equal), ("<", np.less), ("<=", np.less_equal)):
                found = evaluate(f"{factor.name} {sign} {value!r}", table)
                assert np.array_equal(found, compare(codes, code)), (sign, value)
                mirrored = evaluate(f"not {value!r} {sign} {factor.name}", table)
                assert np.array_equal(mirrored, ~compare(code, codes)), (sign, value)
            assert evaluate(f"{factor.name} in ({value!r},)", table).nonzero()[0].tolist() == [code]
            assert factor.code(value) == code
    low, high = PUBLISHED[factor.name][[2, -3]].tolist()
    assert evaluate(f"{low!r} <= {factor.name} < {high!r}", table).nonzero()[0].tolist() == list(codes[2:-3])


@pytest.mark.parametrize("near", [0.82144, 0.8215, 0.82, 0.82140001, 0.8214285714285714 + 1e-4, 0.75 + 1e-9])
def test_numbers_that_are_merely_close_to_a_level_stand_for_none(near):
    table = FactorTable([factor for factor in ROUNDED if factor.name == "scale"])
    with pytest.raises(FactorError, match="factor 'scale' has no level"):
        evaluate(f"scale == {near!r}", table)
    with pytest.raises(FactorError, match="factor 'scale' has no level"):
        evaluate(f"scale in (0.75, {near!r})", table)


def test_a_number_between_two_levels_that_it_may_stand_for_stands_for_neither():
    levels = (1.0, float(np.nextafter(1.0, 2)), float(np.nextafter(np.nextafter(np.nextafter(1.0, 2), 2), 2)))
    between = float(np.nextafter(levels[1], 2))
    with pytest.raises(FactorError, match="has no level"):
        evaluate(f"x == {between!r}", FactorTable([Factor("x", Kind.ORDINAL, levels)]))
    # coarse levels are not the roundings of fine numbers
    with pytest.raises(FactorError, match="has no level"):
        evaluate("x == 0.1234567890123", FactorTable([Factor("x", Kind.ORDINAL, (0.12, 0.13))]))


def test_wide_codes_with_unknown_values():
    levels = tuple(range(70_000))
    table = FactorTable([Factor("id", Kind.ORDINAL, levels)], {"id": [0, 69_999, -1]})
    assert evaluate("id >= 69_999", table).tolist() == [False, True, False]
    assert evaluate("id != 0", table).tolist() == [False, True, False]
    assert evaluate("id is None", table).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("expression", "sentence", "caret"),
    [
        ("shap == 'cube'", "unknown factor 'shap'; did you mean 'shape'", "^^^^ column 1"),
        ("shape == 'cub'", "no level 'cub'; did you mean 'cube'", "         ^^^^^ column 10"),
        ("digit == 3 and shape == 'cub'", "no level 'cub'", " " * 24 + "^^^^^ column 25"),
        ("shape == cube", "put it in quotes, 'cube'", "         ^^^^ column 10"),
        ("cube == shape", "put it in quotes, 'cube'", "^^^^ column 1"),
        ("shape in (cube, 'ball')", "put it in quotes, 'cube'", "          ^^^^ column 11"),
        ("shape == cubo", "is not a factor, and a string must be in quotes", "         ^^^^ column 10"),
        ("digit != 12", "no level 12; the nearest is 9", "         ^^ column 10"),
        ("scale == 0.8", "the nearest are 0.75 and 1.0", "         ^^^ column 10"),
        ("digit in (1, 99)", "no level 99", "             ^^ column 14"),
        ("digit == '3'", "write a number without quotes, not '3'", "         ^^^ column 10"),
        ("digit == True", "write a number without quotes, not True", "^"),
        ("glasses == 1", "write True or False, not 1", "^"),
        ("shape == 3", "write a string in quotes, not 3", "^"),
        ("digit < '3'", "write a number without quotes", "^"),
        ("shape < 'cube'", "the levels of factor 'shape' have no order", "^^^^^^ column 9"),
        ("glasses < True", "have no order", "^"),
        ("light < 'bright'", "no level 'bright'", "^"),
        ("angle == 'x'", "compare it with a number", "^"),
        ("shape", "factor 'shape' alone is not a condition", "^^^^^"),
        ("shape == None", 'write "is None"', "^^^^"),
        ("shape is 'cube'", "'is' tests only for unknown values", "^"),
        ("shape in 'cube'", "expected a tuple", "^"),
        ("shape in ('cube')", "write a comma after a single value", "^"),
        ("'cube' in shape", "expected a factor before 'in', without quotes", "^"),
        ("shape in (digit,)", "is a factor; only values are allowed here", "^"),
        ("'shape' == 'cube'", "contains no factor", "^"),
        ("1 == 1", "contains no factor", "^"),
        ("shape == digit", "has strings and 'digit' numbers", "^"),
        ("shape < other", "have no order", "^"),
        ("len(shape) == 3", "a function call is not allowed", "^"),
        ("shape.upper == 'x'", "an attribute is not allowed", "^"),
        ("count(angle) > 3", "'angle' is continuous", "      ^^^^^ column 7"),
        ("count(shap) > 3", "did you mean 'shape'", "      ^^^^ column 7"),
        ("count('shape') > 3", "count expects one factor", "^"),
        ("count(shape, digit) > 3", "count expects one factor", "^"),
        ("count(shape) == 'cube'", "expected a number, not 'cube'", "^"),
        ("count(shape) == count(digit)", "a function call is not allowed", "^"),
        ("count(shape)", "a function call is not allowed", "^"),
        ("count(shape) in (1, 2)", "compared only with one number", "^"),
        ("digit % 3 in (0, 1)", "compared only with one number", "^"),
        ("scale % 2 == 0", "% requires integer levels, which factor 'scale'", "^"),
        ("angle % 2 == 0", "% requires integer levels, which factor 'angle'", "^"),
        ("glasses % 2 == 0", "% requires integer levels, which factor 'glasses'", "^"),
        ("digit % 0 == 0", "an integer above 0", "^"),
        ("digit % digit == 0", "an integer above 0", "^"),
        ("count(digit) % 2 == 0", "an integer above 0", "^"),
        ("digit + 1 == 3", "arithmetic is not allowed", "^"),
        ("digit == 1 + 1", "arithmetic is not allowed", "^"),
        ("shape == f'{digit}'", "an f-string is not allowed", "^"),
        ("(lambda: 1) == digit", "a lambda is not allowed", "^"),
        ("(x := digit) == 1", "an assignment is not allowed", "^"),
        ("digit[0] == 1", "an index is not allowed", "^"),
        ("digit == 1 if glasses else 2", "if … else is not allowed", "^"),
        ("shape == b'cube'", "is not allowed", "^"),
        ("digit == 1j", "is not allowed", "^"),
        ("digit == ...", "is not allowed", "^"),
        ("digit == (1, 2)", "several values are allowed only after 'in'", "^"),
        ("True", "is not allowed", "^"),
        ("digit ==", "invalid expression", "^"),
        ("digit = 3", "invalid expression", "^"),
        ("", "invalid expression", "^"),
        ("digit == 3; digit == 4", "invalid expression", "^"),
        ("digit == 3\ndigit == 4", "invalid expression", "^"),
        ("import os", "invalid expression", "^"),
        ("digit == 'é' and shap == 'é'", "a number without quotes", "^"),
    ],
)
def test_an_error_points_at_the_word(expression, sentence, caret):
    with pytest.raises(FactorError) as caught:
        evaluate(expression, TABLE)
    message = str(caught.value)
    assert sentence in message
    assert caret in message.splitlines()[-1][2:]
    assert message.splitlines()[1].strip() in (expression.splitlines() or [""])[-1] or "\n" in expression


def test_columns_count_letters_not_bytes():
    table = FactorTable([Factor("größe", Kind.NOMINAL, ("ä", "ö"))])
    with pytest.raises(FactorError) as caught:
        evaluate("größe == 'ä' or größe == 'ü'", table)
    assert str(caught.value).splitlines()[-1] == "  " + " " * 25 + "^^^ column 26"


def test_a_long_expression_is_shown_around_the_word():
    with pytest.raises(FactorError) as caught:
        evaluate(" or ".join(["digit == 1"] * 200 + ["shap == 'cube'"] + ["digit == 1"] * 200), TABLE)
    lines = str(caught.value).splitlines()
    place = lines[2].index("^")
    assert lines[1][place : place + 4] == "shap"
    assert max(map(len, lines)) < 200


def test_names_that_python_keeps_for_itself_are_explained():
    table = FactorTable([Factor("class", Kind.NOMINAL, ("a", "b")), Factor("wall hue", Kind.NOMINAL, ("a", "b"))])
    for expression in ("class == 'a'", "wall hue == 'a'"):
        with pytest.raises(FactorError, match=r"put the name .* in backticks, `(class|wall hue)`"):
            evaluate(expression, table)


ODD = ["class", "my col", "age (years)", "a-b", "µ", "it's", 'a "b"', "a`b", "größe in m²", "None", "#", " "]


@pytest.mark.parametrize("name", ODD)
def test_any_name_can_stand_in_backticks(name):
    table = FactorTable([Factor(name, Kind.ORDINAL, (1, 2, 3)), Factor("x", Kind.NOMINAL, ("`", "#", "a-b"))])
    quoted = "`" + name.replace("`", "``") + "`"
    first = [value == 2 for value in table.values(name).tolist()]
    assert evaluate(f"{quoted} == 2", table).tolist() == first
    assert evaluate(f"not {quoted}!=2", table).tolist() == first
    assert evaluate(f"1 < {quoted} < 3", table).tolist() == first
    assert evaluate(f"{quoted} % 3 == 2 and count({quoted}) == 3", table).tolist() == first
    marks = [value in ("`", "#") for value in table.values("x").tolist()]
    expected = [one and two for one, two in zip(first, marks, strict=True)]
    assert evaluate(f"{quoted} in (2,) and x in ('`', '#')  # `x`, it's", table).tolist() == expected


def test_an_error_after_a_name_in_backticks_points_at_its_word():
    table = FactorTable([Factor("größe (m)", Kind.ORDINAL, (1, 2))])
    with pytest.raises(FactorError, match="has no level 7") as caught:
        evaluate("`größe (m)` == 1 or `größe (m)` == 7", table)
    assert str(caught.value).splitlines()[-1] == "  " + " " * 35 + "^ column 36"
    for expression in ("`größe (m) == 1", "größe == '`'` "):
        with pytest.raises(FactorError, match="close the name with a backtick"):
            evaluate(expression, table)
    with pytest.raises(FactorError, match=r"put the name 'größe \(m\)' in backticks, `größe \(m\)`"):
        evaluate("größe (m) == 1", table)


def test_names_are_compared_as_python_compares_identifiers():
    for one, two in (("\u00b5", "\u03bc"), ("\u03bc", "\u00b5"), ("e\u0301", "\u00e9"), ("x\u00b2", "x2")):
        table = FactorTable([Factor(one, Kind.ORDINAL, (1, 2)), Factor("y", Kind.ORDINAL, (1, 2), within=one)])
        for name in (one, two):
            assert name in table
            assert table[name].name == one
            assert evaluate(f"`{name}` == 2", table).tolist() == [False, False, True, True]
            assert table.column(name).tolist() == [0, 0, 1, 1]
            assert table.group_by([name]).names == (one,)
        if two.isidentifier():
            assert evaluate(f"{two} == 2", table).tolist() == [False, False, True, True]
    both = FactorTable([Factor("\u00b5", Kind.ORDINAL, (1, 2)), Factor("\u03bc", Kind.ORDINAL, (3, 4))])
    assert both["\u00b5"].levels == (1, 2)
    assert both["\u03bc"].levels == (3, 4)
    for name in both.names:  # of which Python knows one only
        assert evaluate(f"{name} == {both[name].levels[0]}", both).any()


def test_lines_of_an_expression_end_as_in_any_file():
    table = FactorTable([Factor("my col", Kind.ORDINAL, (1, 2)), Factor("x", Kind.ORDINAL, (1, 2))])
    for end in ("\n", "\r\n", "\r"):
        assert evaluate(f"(x == 2 and{end}`my col` == 1)", table).tolist() == [False, True, False, False]
        with pytest.raises(FactorError, match="has no level 7"):
            evaluate(f"(x == 2 and{end}`my col` == 7)", table)


LARGE = [2**53, 2**53 + 1, -(2**60) - 1, 2**63 + 1, 2**64 + 3, 1]


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_whole_numbers_of_any_size_compare_exactly(sign):
    some = tuple(LARGE)
    factors = [Factor("p", Kind.ORDINAL, some), Factor("q", Kind.ORDINAL, (2**53 + 1, 2**64 + 3, 2**63, 0.5))]
    table = FactorTable(factors)
    compare = {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }[sign]
    pairs = [(row["p"], row["q"]) for row in map(table.row, range(len(table)))]
    assert evaluate(f"p {sign} q", table).tolist() == [compare(*pair) for pair in pairs]
    for value in (2**53, 2**53 + 1, 2**63, 2**64 + 3, 2**53 + 2.0):
        levels = [level for level in some if compare(level, value)]
        if sign in ("==", "!=") and value not in some:
            continue
        assert evaluate(f"p {sign} {value!r}", table).tolist() == [one in levels for one, _ in pairs]


def test_remainders_of_large_numbers_are_exact():
    table = FactorTable([Factor("p", Kind.ORDINAL, tuple(range(2**63 - 3, 2**63 + 5)))])
    for by in (2, 10, 2**63, 2**65):
        for rest in (1, 2**63, 2**63 - 3):
            expected = [level % by == rest for level in table["p"].levels]
            assert evaluate(f"p % {by} == {rest}", table).tolist() == expected


@pytest.mark.parametrize("wrong", [None, 3, b"digit == 1"])
def test_only_text_is_an_expression(wrong):
    with pytest.raises(FactorError, match="must be a string"):
        evaluate(wrong, TABLE)


WORDS = [
    *"shape digit angle glasses light 'cube' ' == != < in not and or ( ) [ ,".split(),
    *"None is True 3 - 0.5 1e999 := lambda:".split(),
    *". \\ # f' é if else * for await yield { } ` 0777 1_0 {** ... 1j b'' @".split(),
    *("9" * 50, "\0", "\n", "\t", "\ud800"),
]


def outcome(expression):
    """Rows, or the sentence of a FactorError; any other error is a bug."""
    try:
        return evaluate(expression, TABLE)
    except FactorError as error:
        return str(error)


def random_condition(choice, depth):
    """A condition on the factors a, b, c, d, by a function that chooses among some things."""
    if depth and choice([True, True, False]):
        form = choice(["({} and {})", "({} or {})", "not ({} or {})", "not ({} and {})"])
        return form.format(random_condition(choice, depth - 1), random_condition(choice, depth - 1))
    sign, number = choice(["<", "<=", ">", ">=", "==", "!="]), choice([0, 1, 2, 3])
    return choice(
        [
            f"{choice('ab')} {sign} {choice('abd')}",
            f"c {choice(['==', '!='])} '{choice('xy')}'",
            f"a {choice(['in', 'not in'])} (0, {choice([1, 2])})",
            f"b % 2 {sign} {number}",
            f"count({choice('abcd')}) {sign} {choice([18, 24, 36, 20])}",
            f"{choice('abcd')} is {choice(['', 'not '])}None",
            f"{choice([0, 1])} {choice(['<', '<='])} a < b",
            f"d {choice(['<', '>='])} {choice([0.5, 1.0, 2.0])}",
        ]
    )


def test_conditions_on_a_grid_are_those_on_its_columns():
    """A grid is looked at factor by factor, columns row by row."""
    factors = [
        Factor("a", Kind.ORDINAL, (0, 1, 2)),
        Factor("b", Kind.ORDINAL, (0, 1, 2, 3)),
        Factor("c", Kind.NOMINAL, ("x", "y")),
        Factor("d", Kind.ORDINAL, (0.5, 1.0, 2.0)),
    ]
    grid = FactorTable(factors)
    columns = FactorTable(factors, {factor.name: grid.codes(factor.name) for factor in factors})
    assert grid.is_grid
    assert not columns.is_grid
    choice = random.Random(4).choice
    masks = []
    for _ in range(300):
        text = random_condition(choice, 3)
        mask = grid.mask(text)
        assert mask.dtype == np.bool_
        assert mask.flags.writeable
        assert np.array_equal(mask, columns.mask(text)), text
        masks.append(mask.sum())
    assert len(set(masks)) > 20
    nested = [Factor("a", Kind.ORDINAL, (0, 1, 2)), Factor("b", Kind.ORDINAL, (0, 1), within="a")]
    assert FactorTable(nested).mask("count(b) == 1").all()


@pytest.mark.long("fuzzing")
@given(st.text(max_size=40) | st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
@example("(" * 300 + "digit" + ")" * 300)
@example("not " * 20_000 + "digit == 1")
@example("digit == " + "-" * 20_000 + "1")
@example("digit == " + "1" * 5000)
@example("digit == 1 and " * 5000 + "digit == 1")
@example("shape == '\\d'")
@example("digit == 1\0")
@example("\ufeffdigit == 1")
@example("digit == -True")
@example("digit in {**shape}")
@example("digit in (*shape,)")
def test_random_text_is_an_expression_or_a_factor_error(text):
    assert len(outcome(text))


@pytest.mark.long("fuzzing")
@given(st.data())
def test_mutated_expressions_are_expressions_or_factor_errors(data):
    text = data.draw(st.sampled_from(EXPRESSIONS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 4)))
        text = text[:start] + data.draw(st.sampled_from(WORDS) | st.text(string.printable, max_size=3)) + text[end:]
    assert len(outcome(text))


@cache
def large_grid(sizes):
    return FactorTable([Factor(name, Kind.ORDINAL, range(size)) for name, size in zip("abc", sizes, strict=False)])


@pytest.mark.parametrize("sizes", [(10**6, 10**6), (10**4, 10**4, 10**4), (2**16, 2**17, 2**17)])
@pytest.mark.parametrize(
    "expression", ["a == 3", "a == b", "a <= b", "a == 3 and b == 2", "a == 3 or not b == 2", "3 < a < b"]
)
def test_grids_of_too_many_rows_are_refused_by_one_sentence(sizes, expression):
    grid = large_grid(sizes)
    with pytest.raises(FactorError) as refused:
        grid.rows(expression)
    found = str(refused.value)
    assert found.startswith(f"a condition on {len(grid):,} rows requires {len(grid):,} bytes of memory, but only ")
    assert found.endswith(" are available; reduce the rows or levels of the grid")


def test_names_with_dots_need_no_backticks():
    names = ["label.digit", "digit", "label.pose.yaw", "anchor.id", "anchor"]
    table = FactorTable.from_values({name: [row + 10 * k for row in range(3)] for k, name in enumerate(names)})
    for expression, rows in [
        ("label.digit == 1", [1]),
        ("digit == 11 or label.digit == 2", [1, 2]),
        ("label . pose.yaw > 20 and label.digit != 2", [1]),
        ("count(label.digit) == 1", [0, 1, 2]),
        ("label.digit % 2 == 1", [1]),
        ("label.digit < digit", [0, 1, 2]),
        ("`label.digit` in (0, 2)", [0, 2]),
        ("`anchor.id` == 30", [0]),
    ]:
        assert np.flatnonzero(evaluate(expression, table)).tolist() == rows
    with pytest.raises(FactorError, match="an attribute"):
        evaluate("label.size == 1", table)


def test_names_with_dots_of_the_anchor():
    table = FactorTable.from_values({"label.digit": [0, 0, 1], "digit": [3, 4, 4]})
    constraint = read_constraint("label.digit == anchor.label.digit and digit != anchor.digit", table)
    assert (constraint.equal, constraint.differ) == (("label.digit",), ("digit",))
    assert constraint.holds(table, [0, 0, 0, 1], [0, 1, 2, 2]).tolist() == [False, True, False, False]
