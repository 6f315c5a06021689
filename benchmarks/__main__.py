"""Run the benchmarks and print one table: ``python -m benchmarks [sets fetch …] [--full] [--json FILE] [--shrink]``.

Every row is printed and kept as soon as it is measured. What fails, a topic or a peer that is missing, is named at the
end; the others are measured all the same. With ``--resume``, topics of which FILE has all rows are left out, and those
that failed come last.

``python -m benchmarks gpu`` stands for the topics that need a GPU: each ends within eight minutes, the most valuable
first.
"""

import argparse
import importlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rich.console import Console

from benchmarks.limit import limited
from benchmarks.machine import accelerator, machine, versions
from benchmarks.measure import SHRINK, on_one_core
from benchmarks.peers import missing, report
from benchmarks.rows import Row, show
from benchmarks.run import Run, Unfinished

__all__ = ["GPU", "TOPICS", "main"]

TOPICS = {
    "sets": 40,
    "pairs": 40,
    "domains": 10,
    "episodes": 30,
    "triplets": 10,
    "neighbours": 10,
    "explore": 30,
    "groups": 60,
    "fetch": 10,
    "archives": 60,
    "decoding": 160,
    "resizing": 120,
    "video": 70,
    "loading": 260,
    "augment": 60,
    "procedural": 10,
    "derived": 10,
    "rendering": 80,
    "correspondence": 40,
    "overlap": 40,
    "shards": 230,
    "remote": 170,
    "convert": 60,
    "prepared": 20,
    "nyu": 20,
    "records": 20,
    "losses": 60,
    "mine": 60,
    "probes": 90,
    "deep_probes": 60,
    "one_shot": 120,
    "orbits": 60,
    "pixels": 60,
    "pose_lookup": 60,
    "contrast": 20,
    "cmc": 60,
    "training": 20,
}
"""Topics in their order, and about how many seconds each takes on two cores."""
GPU = {
    "gpu_tests": 180,
    "gpu_feeding": 120,
    "gpu_training": 240,
    "gpu_pixels": 240,
    "gpu_rendering": 90,
    "gpu_runs": 420,
}
"""Topics that need a GPU, which ``gpu`` stands for, and about how many seconds each takes; the most valuable first."""
STEP = 480
"""Seconds after which a topic of a GPU is stopped: often there is one for minutes only."""
ANY_CORE = {"augment", "convert", "decoding", "loading", "resizing", "mine", "one_shot", "probes", "deep_probes"}
"""Topics that may use every core they like; all others keep to one."""


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    if options.shrink:
        os.environ[SHRINK] = "1"  # before any topic is imported

    progress, out = Console(stderr=True), Console(width=None if Console().is_terminal else 200)
    _say(progress, _announced(options))
    needs_peers = not set(options.topics) <= set(GPU)
    about = [machine(), versions(), *(report() if needs_peers else [accelerator()])]
    try:
        run = Run(options.json, about, full=options.full, shrunk=options.shrink, resume=options.resume)
    except ValueError as error:
        _say(progress, f"{error}")
        return 2
    topics = sorted(options.topics, key=run.failed.__contains__)  # one that always fails keeps no other from its turn
    stopped = False
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        os.environ["SETSUP_CACHE"] = folder  # an index from an earlier run would spare what is to be measured
        try:
            for topic in topics:
                if options.resume and run.done(topic):
                    _say(progress, f"{topic}: was measured before")
                    continue
                _measure(topic, run, lambda text: _say(progress, text))
        except KeyboardInterrupt:
            stopped = True
    if not options.shrink:
        show(run.rows, out)
        for line in run.about:
            out.print(line, highlight=False, markup=False)
    troubles = [f"{topic} failed: {why}" for topic, why in run.failed.items()]
    troubles += [f"{topic} is not finished: {why}" for topic, why in run.unfinished.items()]
    if needs_peers:
        troubles += [f"{peer} was not measured: {why}" for peer, why in missing().items()]
    if stopped:
        troubles.append("stopped before the end")
    for line in troubles:
        _say(progress, line)
    if options.json:
        _say(progress, f"{len(run.rows)} rows are in {options.json}")
    # a peer that does not install today is no fault of the benchmarks, which is what a shrunk run is about
    return 130 if stopped else int(bool(run.failed if options.shrink else troubles))


def _measure(topic: str, run: Run, say: Callable[[str], None]) -> None:
    """Measure a topic, row by row; what goes wrong in it is kept, and the next one goes on."""
    start, count = time.monotonic(), 0
    run.begin(topic)
    try:
        module = importlib.import_module(f"benchmarks.{topic}")
        with _conditions(topic):
            for row in module.rows(run.full):
                run.keep(row)
                say(_words(row))
                count += 1
        if not count:
            raise RuntimeError("it measured nothing: what it measures against is not installed")
    except Unfinished as error:
        run.interrupt(topic, str(error))
    except Exception as error:  # whatever goes wrong in one topic is no reason to lose the others
        traceback.print_exc()
        run.fail(topic, f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - start
    run.took(topic, seconds)
    say(f"{topic}: {count} rows in {seconds:.0f} s")


def _conditions(topic: str) -> AbstractContextManager[object]:
    """The cores that a topic may use, and how long it may take."""
    if topic in GPU:
        return limited(STEP)
    return nullcontext() if topic in ANY_CORE else on_one_core()


def _words(row: Row) -> str:
    return f"{row.topic}: {row.what}: {row.figure.median:.3g} {row.unit} {row.verdict}"


def _announced(options: argparse.Namespace) -> str:
    many = f"{len(options.topics)} topic{'s' * (len(options.topics) > 1)}"
    if options.shrink:
        return f"{many}, shrunk to seconds each, to see that they run: what is measured means nothing"
    seconds = {**TOPICS, **GPU}
    minutes = max(1, round(sum(seconds[topic] for topic in options.topics) / 60))
    longer = "; --full takes many minutes more" if options.full else ""
    kept = f"; rows are kept in {options.json}" if options.json else ""
    where = "a GPU" if set(options.topics) <= set(GPU) else "two cores"
    return f"{many}, about {minutes} minute{'s' * (minutes > 1)} on {where} with nothing else to do{longer}{kept}"


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory, side by side.")
    named = f"all by default: {', '.join(TOPICS)}; gpu, which needs one, stands for {', '.join(GPU)}"
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=named)
    parser.add_argument("--full", action="store_true", help="also 100 M rows and the full-size conversion (minutes)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every row there as soon as it is measured")
    parser.add_argument("--resume", action="store_true", help="leave out topics of which FILE of --json has all rows")
    parser.add_argument("--shrink", action="store_true", help="each topic in seconds, to see that it runs")
    options = parser.parse_args(argv)
    if unknown := set(options.topics) - {*TOPICS, *GPU, "gpu"}:
        parser.error(f"unknown topic {', '.join(sorted(unknown))}; there are {', '.join((*TOPICS, 'gpu', *GPU))}")
    if options.resume and options.json is None:
        parser.error("--resume needs --json FILE")
    named = [name for topic in options.topics for name in (GPU if topic == "gpu" else [topic])]
    options.topics = list(dict.fromkeys(named)) or list(TOPICS)
    return options


if __name__ == "__main__":
    sys.exit(main())
