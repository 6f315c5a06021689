"""``setsup export``: writes a trained method, or a folder of renders, to files that need no setsup."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from setsup.errors import DataError, require_modules
from setsup.files.expand_user import expanded
from setsup_cli import renders
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Checkpoint, Common, OwnPreset, Root
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.source import check_root
from setsup_cli.parsing.values import write_literal
from setsup_cli.runs import describe_run, opened
from setsup_cli.suggestions import advise, python_command

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
FILE.pt2 contains a torch.export program: torch.export.load("FILE.pt2").module() computes embeddings of a batch of any
size n on a CPU, without setsup. The command prints its inputs, in most cases float32 images (n, C, H, W), to which the
transform for evaluations has been applied. FILE.pt and FILE.safetensors contain the weights by name.

`setsup export RENDERS FOLDER --layout coco` writes a folder of `setsup render` in the files of COCO; other layouts are
bop, transforms (nerfstudio, instant-ngp), tap-vid, sintel (.flo) and kitti. `setsup export --layout --help` lists the
options."""


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    run: Annotated[Path, declared("RUN", "Folder of a run of `setsup train`.")] = field(kw_only=False)
    file: Annotated[Path, declared("FILE", "File to write: encoder.pt2, weights.pt or weights.safetensors.")] = field(
        kw_only=False
    )
    checkpoint: Checkpoint = "last"
    root: Root = None
    preset: OwnPreset = None


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Options of a run, or of a folder of renders."""
    sources = [word for word in words if not word.startswith("-")][:1]
    layout = any(word.partition("=")[0] == "--layout" for word in words)
    return renders.SUBCOMMAND if layout or any(map(renders.is_source, sources)) else subcommand


def run(options: Any) -> int:
    """Export and print."""
    if isinstance(options, renders.Options):
        return renders.run(options)
    require_modules("export needs", "torch", "lightning")
    from setsup.experiments import export

    check_root(options.root)
    opened_run = opened(options.run, options.preset, options.checkpoint)
    path = expanded(options.file)
    if not path.parent.is_dir():
        raise DataError(f"folder {path.parent} does not exist; create it, or choose another FILE", file=path.parent)
    about = export(opened_run, path, root=options.root)
    if options.json:
        show_json({"run": str(opened_run.folder), "file": str(path), **about})
        return 0
    for line in (*describe_run(opened_run), *_lines(about), str(path)):
        say(line)
    loads = {
        ".pt2": ("import torch", f"encoder = torch.export.load({write_literal(str(path))}).module()"),
        ".pt": ("import torch", f"weights = torch.load({write_literal(str(path))})"),
        ".safetensors": (
            "from safetensors.torch import load_file",
            f"weights = load_file({write_literal(str(path))})",
        ),
    }
    if path.suffix in loads:
        advise(options, python_command(*loads[path.suffix]))
    return 0


def _lines(about: Mapping[str, Any]) -> Iterator[str]:
    """Inputs and outputs of a program."""
    for what in ("inputs", "outputs"):
        for tensor in about.get(what, ()):
            name = f"{tensor['name']} " if tensor["name"] else ""
            yield f"{what.removesuffix('s')}: {name}({', '.join(map(str, tensor['shape']))}) {tensor['dtype']}"
