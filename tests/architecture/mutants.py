"""What tests would notice: one-line mutants of six packages, drawn with a fixed seed, and which tests fail for each.

    python tests/architecture/mutants.py draw COMMIT mutants.json
    python tests/architecture/mutants.py trace TREE traced.json     # which tests run which lines: coverage.py
    python tests/architecture/mutants.py run TREE mutants.json traced.json results.jsonl [mutants.jsonl]

TREE is a checkout that nobody else uses, not even a second ``run``: mutants are written into it, one at a time, and
taken out again. ``run`` resumes where its results end. A mutant is one line of code changed; where TREE is of another
commit, it is looked for by that line, else by a line that differs in names alone, and "gone" where neither is there
once. The tests of a mutant are those that run its line (for a line that is run at import, those that run any line of
its module): of the module's own name first, then of its package, then others, each the fastest first; the test that
noticed a mutant in earlier results comes before all. A mutant that passes 60 seconds of CPU time of them survives, as
does one whose line no test runs.

``mutants.jsonl`` has what became of 300 mutants drawn at 77003472. There, with the tests of the short tier and 30
seconds, 234 failed a test, 2 ended in an error and 2 hung; 62 survived, of which no test ran the line of 12. Now, with
the long tests, all 238 are caught again (``now`` names the test where it is another; ``line`` is the line where it was
written anew), and so are 31 of the 62, by tests written for them and by long ones. The other 31 are equivalent, or
differ in what no user would notice, such as a limit that moves by one; ``why`` says so of each, by reading the code.
"""

import ast
import json
import keyword
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

PACKAGES = ("factors", "samplers", "loading", "shards", "correspondence", "datasets/formats")
POOL = [f"{root}/{package}" for package in PACKAGES for root in ("tests", "setsup")]
POOL += ["tests/test_arguments.py", "tests/test_html.py", "tests/test_opening.py", "tests/datasets/own"]
_PAIRS = ("< <=", "> >=", "== !=", "in not_in", "is is_not", "+ -", "& |", "<< >>", "and or")
SWAPS = {one.replace("_", " "): other.replace("_", " ") for pair in _PAIRS for one, other in (pair.split(),)}
SWAPS |= {other: one for one, other in SWAPS.items()} | {"*": "+", "/": "*", "//": "/", "%": "//", "**": "*"}
_OPERATOR = re.compile(r"not\s+in|is\s+not|and|or|in|is|<<|>>|<=|>=|==|!=|\*\*|//|[-+*/%&|<>]")
OPTIONS = [*"-x -q --no-header -p no:cacheprovider -p no:xdist --doctest-modules -m".split(), "not smoke"]
_NAME = re.compile(rf"(?<![\w\"'])(?!(?:{'|'.join(keyword.kwlist)})\b)[A-Za-z_]\w*(?![\w\"'])")
_WITHIN = ast.Call | ast.BinOp | ast.BoolOp | ast.Compare  # what is changed in one line of several
LIMIT, HUNG = 60.0, 300.0  # seconds of CPU time; of wall time


def changes(node: ast.AST, code: str) -> Iterator[tuple[ast.AST, int, int, str]]:
    """Each change of a node by itself: the node, from which column to which, and what stands there then."""

    def operator(left: ast.expr, right: ast.expr) -> Iterator[tuple[ast.AST, int, int, str]]:
        if left.end_lineno == right.lineno and (match := _OPERATOR.search(code, left.end_col_offset, right.col_offset)):
            if new := SWAPS.get(" ".join(match[0].split())):
                yield node, match.start(), match.end(), new

    start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
    match node:
        case ast.Compare(left, _, rights):
            for a, b in zip([left, *rights], rights, strict=False):
                yield from operator(a, b)
        case ast.BinOp(left, _, right):
            yield from operator(left, right)
        case ast.BoolOp(_, values):
            for a, b in pairwise(values):
                yield from operator(a, b)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, start, operand.col_offset, ""
        case ast.Constant(bool(value)):
            yield node, start, end, str(not value)
        case ast.Constant(int(value) | float(value)):
            for new in (value - 1, value + 1):
                yield node, start, end, f"({new})" if new < 0 else str(new)
        case ast.Call(_, [first, second, *_]) if not {ast.Starred} & {type(first), type(second)}:
            a, b = (code[part.col_offset : part.end_col_offset] for part in (first, second))
            if a != b and first.end_lineno == second.lineno == node.lineno:
                between = code[first.end_col_offset : second.col_offset]
                yield node, first.col_offset, second.end_col_offset or 0, b + between + a
        case ast.Raise() | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Expr(ast.Call()):
            yield node, start, end, "pass"
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield node, start, end, "return None"
        case ast.If(test) | ast.IfExp(test) | ast.While(test) if test.lineno == test.end_lineno:
            yield test, test.col_offset, test.end_col_offset or 0, "False"


def code_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of code: no annotations, and nothing within strings, whose columns Python 3.11 does not know."""
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "type_comment") and not isinstance(node, ast.JoinedStr):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from code_nodes(child)


def draw(commit: str, count: int = 300, seed: int = 44) -> list[dict[str, Any]]:
    """As many mutants of different lines, each with its line before and after, and which of such lines it is."""
    by_line: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    names = [f"setsup/{package}" for package in PACKAGES]
    for path in subprocess.check_output(["git", "ls-tree", "-r", "--name-only", commit, *names], text=True).split():
        lines = subprocess.check_output(["git", "show", f"{commit}:{path}"], text=True).splitlines()
        for node in code_nodes(ast.parse("\n".join(lines))) if path.endswith(".py") else ():
            code = lines[getattr(node, "lineno", 1) - 1]
            for changed, start, end, new in changes(node, code) if code.isascii() else ():
                if changed.lineno == changed.end_lineno or isinstance(node, _WITHIN):
                    number, code = changed.lineno, lines[changed.lineno - 1]
                    nth = [index for index, line in enumerate(lines) if line == code].index(number - 1)
                    mutant = {"path": path, "line": number, "before": code, "after": code[:start] + new + code[end:]}
                    by_line[path, number].append({**mutant, "nth": nth})
    chooser = random.Random(seed)
    drawn = [chooser.choice(by_line[key]) for key in sorted(by_line)]
    return sorted(chooser.sample(drawn, count), key=lambda mutant: chooser.random())


def find(tree: Path, mutant: dict[str, Any]) -> tuple[Path, int, str] | None:
    """File, line (from 0) and changed line of a mutant: in its file, or else in the one file of its package with it.

    Where no file has the line, the one line that differs from it in names alone counts, with the same change.
    """
    package = next(name for name in PACKAGES if mutant["path"].startswith(f"setsup/{name}/"))
    texts = {path: path.read_text().splitlines() for path in sorted((tree / "setsup" / package).rglob("*.py"))}
    before, after = mutant["before"].strip(), mutant["after"].strip()
    places = {
        path: [index for index, line in enumerate(lines) if line.strip() == before] for path, lines in texts.items()
    }
    same = places.get(tree / mutant["path"], [])
    if len(same) > mutant["nth"]:
        path, index = tree / mutant["path"], same[mutant["nth"]]
    else:
        shape = _shape(before)
        alike = [(path, index) for path, indices in places.items() for index in indices] or [
            (path, index) for path, lines in texts.items() for index, line in enumerate(lines) if _shape(line) == shape
        ]
        if len(alike) > 1:
            alike = [(path, index) for path, index in alike if path == tree / mutant["path"]]
        if len(alike) != 1:
            return None
        path, index = alike[0]
    line = texts[path][index].strip()
    names = dict(zip(_NAME.findall(before), _NAME.findall(line), strict=True))
    return path, index, after if line == before else _NAME.sub(lambda name: names.get(name[0], name[0]), after)


def _shape(line: str) -> str:
    """A line without its names, but for words of the language, numbers and strings."""
    return _NAME.sub("_", line.strip())


def forked(tree: Path, tests: list[str], log: Path) -> tuple[str, str]:
    """Runs tests in a process of their own to the first failure: what became of them, and the last test."""
    log.write_text("")
    if not (child := os.fork()):
        os.setsid()
        os.chdir(tree)
        out = os.open(log.with_suffix(".out"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1), os.dup2(out, 2)
        import pytest

        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        os._exit(pytest.main([*OPTIONS, f"--basetemp={log.with_suffix('.tmp')}", *files], plugins=[Chosen(tests, log)]))
    began = time.monotonic()
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        time.sleep(0.2)
        if session_cpu(child) > LIMIT or time.monotonic() - began > HUNG:
            break
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    last = json.loads((log.read_text().splitlines() or ['["", 0]'])[-1])
    if ended == (0, 0):
        os.waitpid(child, 0)
        return ("hung" if time.time() - last[1] > LIMIT / 2 else "slow"), last[0]
    outcomes = {0: "passed", 3: "error", 4: "error", 5: "error"}
    return outcomes.get(os.waitstatus_to_exitcode(ended[1]), "failed"), last[0]


def session_cpu(session: int) -> float:
    """Seconds of CPU time of all processes of a session."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


class Chosen:
    """Runs some tests in the order given, and writes down each as it begins."""

    def __init__(self, tests: list[str], log: Path) -> None:
        self.order, self.log = {test: place for place, test in enumerate(tests)}, log

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = (item for item in items if item.nodeid in self.order)
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps([nodeid, time.time()]) + "\n")


class Tracer:
    """Notes the lines that each test runs, how long it takes, and which fail."""

    def __init__(self, coverage: Any) -> None:
        self.coverage, self.seconds, self.failed = coverage, {}, []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self.failed.append(report.nodeid)


def trace(tree: Path) -> dict[str, Any]:
    """Tests by file and line, with the seconds of each."""
    import coverage
    import pytest

    os.chdir(tree)
    measured = coverage.Coverage(data_file=None, source=["setsup"], config_file=False)
    tracer = Tracer(measured)
    measured.start()
    options = [*"-q --doctest-modules -p no:cacheprovider -p no:xdist -m".split(), "not smoke"]
    pytest.main([*options, *POOL], plugins=[tracer])
    measured.stop()
    data, lines = measured.get_data(), {}
    for name in data.measured_files():
        lines[str(Path(name).relative_to(tree))] = {
            number: [test for test in tests if test and test not in tracer.failed]
            for number, tests in data.contexts_by_lineno(name).items()
        }
    return {"seconds": tracer.seconds, "lines": lines, "failed": tracer.failed}


def run(
    tree: Path, mutants: list[dict[str, Any]], traced: dict[str, Any], results: Path, earlier: dict[int, str]
) -> None:
    """Appends what becomes of each mutant that has no result yet; of earlier results, the tests by mutant."""
    import numpy, pandas, scipy.stats, torch  # noqa

    done = {json.loads(line)["number"] for line in results.read_text().splitlines()} if results.exists() else set()
    for number, mutant in enumerate(mutants):
        if number not in done:
            began, first = time.monotonic(), earlier.get(number, "")
            record = {"number": number, **mutant, **outcome(tree, mutant, traced, results.with_suffix(".log"), first)}
            with results.open("a") as file:
                file.write(json.dumps({**record, "seconds": round(time.monotonic() - began, 1)}) + "\n")


def outcome(tree: Path, mutant: dict[str, Any], traced: dict[str, Any], log: Path, first: str = "") -> dict[str, str]:
    """What becomes of one mutant: which test noticed it and why, or how it survived; one test is tried first."""
    if not (place := find(tree, mutant)):
        return {"outcome": "gone"}
    path, index, changed = place
    name = str(path.relative_to(tree))
    of_lines = traced["lines"].get(name, {})
    tests = set(of_lines.get(str(index + 1), ()))
    if not tests and str(index + 1) in of_lines:  # run at import
        tests = {test for line in of_lines.values() for test in line}
    package = next(package for package in PACKAGES if name.startswith(f"setsup/{package}/"))

    def rank(test: str) -> tuple[int, float]:
        file = test.partition("::")[0]
        return 0 if path.stem in file else 1 if f"/{package}/" in file else 2, traced["seconds"][test]

    ordered = sorted(tests, key=rank)
    before = path.read_text()
    lines = before.splitlines()
    lines[index] = lines[index].replace(lines[index].strip(), changed)
    found = {"outcome": "untested"}
    try:
        write(path, "\n".join(lines) + "\n")
        for chunk in ([first] * (first in traced["seconds"]), ordered[:40], ordered[40:]):
            if chunk and found["outcome"] in ("untested", "passed"):
                result, test = forked(tree, chunk, log)
                because = [line for line in log.with_suffix(".out").read_text().splitlines() if line[:2] == "E "]
                found = {"outcome": result, "test": test, "because": "".join(because[:1])}
    finally:
        write(path, before)
    return found


def write(path: Path, text: str) -> None:
    """Writes a module, and forgets what was compiled of it, which may have the same size and second."""
    path.write_text(text)
    for cached in path.parent.glob(f"__pycache__/{path.stem}.*"):
        cached.unlink()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["draw", commit, mutants]:
            Path(mutants).write_text(json.dumps(draw(commit), indent=1))
        case ["trace", tree, traced]:
            sys.path.insert(0, tree)
            Path(traced).write_text(json.dumps(trace(Path(tree).resolve())))
        case ["run", tree, mutants, traced, results, *former]:
            sys.path.insert(0, tree)
            arguments = json.loads(Path(mutants).read_text()), json.loads(Path(traced).read_text())
            rows = [json.loads(line) for name in former for line in Path(name).read_text().splitlines()]
            earlier = {row["number"]: row.get("now", row["test"]) for row in rows}
            run(Path(tree).resolve(), *arguments, Path(results), earlier)
