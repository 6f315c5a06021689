"""The tests marked gpu, a row for each file: what a GPU computes, against the processor, within stated tolerances."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.devices import device
from benchmarks.measure import Spread, sized
from benchmarks.rows import Row, at_most

__all__ = ["rows"]

TOPIC = "gpu_tests"
CHECKOUT = Path(__file__).resolve().parents[1]
FILES = sized(("tests/gpu",), ("tests/gpu/test_losses.py",))
_LINE = re.compile(r"(tests/gpu/\S+?\.py)::(\S.*?) (PASSED|FAILED|ERROR|SKIPPED)\b")


def rows(full: bool) -> Iterator[Row]:
    device()
    command = [sys.executable, "-m", "pytest", "-v", "-m", "gpu", "-p", "no:cacheprovider", "--tb=short", *FILES]
    found: dict[str, Counter[str]] = {}
    said: list[str] = []
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as tests:
        try:
            for line in tests.stdout or ():
                said.append(line)
                if (match := _LINE.match(line)) is None:
                    continue
                file, outcome = match[1], match[3]
                if file not in found and found:  # the file before is at its end
                    yield _row(*list(found.items())[-1])
                found.setdefault(file, Counter())[outcome] += 1
        except BaseException:
            tests.kill()  # on SIGTERM a training in a test would end its step, and the tests go on
            raise
    if not found:
        raise RuntimeError(f"pytest ran no test marked gpu: {''.join(said)[-600:]}")
    yield _row(*list(found.items())[-1])
    if failed := sum(counts["FAILED"] + counts["ERROR"] for counts in found.values()):
        raise RuntimeError(f"{failed} tests failed: {''.join(said)[-2000:]}")
    if tests.returncode:  # a driver may crash it
        raise RuntimeError(f"pytest ended with exit code {tests.returncode}: {''.join(said)[-2000:]}")


def _row(file: str, counts: Counter[str]) -> Row:
    """How many tests of a file passed and failed; on the processor all are skipped, since they need a GPU."""
    failed = counts["FAILED"] + counts["ERROR"]
    passed = f"{counts['PASSED']} passed"
    skipped = f"{counts['SKIPPED']} skipped" if counts["SKIPPED"] else "none skipped"
    return Row(TOPIC, file, passed, "the same on the processor", skipped, Spread.of([failed]), "failed", at_most(0))
