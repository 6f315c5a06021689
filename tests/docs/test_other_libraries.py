"""Code of other libraries on the pages: ``py`` blocks run, after the page's own, where their library is installed.

The libraries are none of setsup's dependencies, so in most environments these tests are skipped; one with all that
installs beside setsup is made by ``benchmarks/install_peers.py``.
"""

import ast
import runpy
import sys
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import setsup

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHAPES = setsup.load("shapes3d-procedural")
SETS = setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, seed=3)


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Language and code of the fenced blocks of a page."""
    found, opened = [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        if opened is None and line.startswith("```") and line != "```":
            opened, lines = line[3:], []
        elif opened is not None and line == "```":
            found.append((opened, "\n".join(lines)))
            opened = None
        elif opened is not None:
            lines.append(line)
    return [block for block in found if block[0] in languages]


def library_of(code: str) -> str | None:
    """The first library imported by a block that setsup does not install."""
    for node in ast.walk(ast.parse(code)):
        named = [node.module] if isinstance(node, ast.ImportFrom) else []
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else named
        for name in named:
            top = str(name).partition(".")[0]
            if top not in sys.stdlib_module_names | {"numpy", "setsup", "torch"}:
                return top
    return None


def foreign(page: Path) -> list[str]:
    """Libraries of the ``py`` blocks of a page, in order."""
    return list(dict.fromkeys(filter(None, (library_of(code) for _, code in blocks(page, "py")))))


PAGES = sorted(page for page in DOCS.rglob("*.md") if blocks(page, "py"))
CASES = [(page, library) for page in PAGES for library in foreign(page)]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the pages speak of: a folder of images, and a WILDS benchmark of a few of them in place of a download."""
    monkeypatch.chdir(tmp_path)
    for folder, red in (("cats", 40), ("dogs", 200)):
        (tmp_path / "pets" / folder).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (72, 64), (red, 20 * number, 90)).save(tmp_path / "pets" / folder / f"{number}.jpg")
    if find_spec("wilds"):
        import wilds

        monkeypatch.setattr(wilds, "get_dataset", lambda dataset, **_: small_benchmark(tmp_path))
    return tmp_path


def import_without_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let disent be imported: of torchvision it uses nothing on the page."""
    pytest.importorskip("lightning", reason="lightning is not installed")  # looks for the real one
    for name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.transforms.functional"):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        above, _, last = name.rpartition(".")
        if above:
            setattr(sys.modules[above], last, module)
    sys.modules["torchvision.datasets"].ImageFolder = object


def small_benchmark(folder: Path) -> Any:
    """A dataset of WILDS with the metadata of Camelyon17: hospitals, slides and labels."""
    from wilds.datasets.wilds_dataset import WILDSDataset

    class Camelyon(WILDSDataset):
        _dataset_name, _data_dir, _split_scheme, _y_size, _n_classes = "camelyon17", str(folder), "official", 1, 2

        def __init__(self) -> None:
            rows = np.arange(600)
            self._split_dict = self.DEFAULT_SPLITS
            self._split_names = self.DEFAULT_SPLIT_NAMES
            self._split_array = rows % 3
            self._y_array = torch.from_numpy(rows // 3 % 2)
            self._metadata_fields = ["hospital", "slide", "y"]
            self._metadata_array = torch.stack(
                (torch.from_numpy(rows % 5), torch.from_numpy(rows % 50), self._y_array), 1
            )
            super().__init__(folder, False, "official")

        def get_input(self, idx: int) -> Any:
            return Image.new("RGB", (96, 96), (int(idx) % 256, 0, 0))

    return Camelyon()


@pytest.mark.long("documented pages and examples")
@pytest.mark.filterwarnings("ignore")  # those of other libraries, about others still
@pytest.mark.parametrize(("page", "library"), CASES, ids=[f"{page.stem}-{name}" for page, name in CASES])
@pytest.mark.usefixtures("site")
def test_code_of_another_library_runs(
    page: Path, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    if library == "disent" and find_spec("torchvision") is None:
        import_without_torchvision(monkeypatch)
    namespace(page, library, tmp_path)


def namespace(page: Path, library: str, folder: Path) -> dict[str, Any]:
    """Names that a page defines: its own blocks, and those of one library."""
    chosen = [code for kind, code in blocks(page, "python", "py") if kind == "python" or library_of(code) == library]
    path = folder / f"{page.stem}_{library}.py"
    path.write_text("\n".join(chosen), encoding="utf-8")
    return runpy.run_path(str(path), run_name="__main__")  # whose functions go to workers by value


TRANSFORMS = {
    "torchvision": lambda found: found["seeded"](found["crops"]),
    "kornia": lambda found: found["with_kornia"],
    "kornia, one image at a time": lambda found: found["seeded"](lambda image: found["rotated"](image[None] / 255)[0]),
    "albumentations": lambda found: found["with_albumentations"],
}


def parts_of_the_page(library: str, folder: Path) -> dict[str, Any]:
    """Names that the section defines."""
    text = (DOCS / "transforms.md").read_text(encoding="utf-8")
    section = text.partition("## Transforms of other libraries")[2].partition("\n## ")[0]
    first = "import setsup\nimport torch\nfrom itertools import islice\n"
    first += "shapes = setsup.load('shapes3d-procedural')\n"
    first += "sets = setsup.SetSampler(shapes.factors, inactive=['wall_hue'], size=16, sets=2)\n"
    (folder / "section.md").write_text(f"```python\n{first}```\n{section}", encoding="utf-8")
    return namespace(folder / "section.md", library, folder)


@pytest.mark.long("documented pages and examples")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_other_libraries_do_not_depend_on_workers_ranks_or_a_resume(name: str, tmp_path: Path) -> None:
    library = name.partition(",")[0]
    pytest.importorskip(library, reason=f"{library} is not installed")
    transform = TRANSFORMS[name](parts_of_the_page(library, tmp_path))
    to = "numpy" if library == "albumentations" else "torch"

    def images(count: int, **options: Any) -> list[Any]:
        batches = setsup.loader(SHAPES, SETS, transform=transform, to=to, **options)
        return [np.asarray(batch["image"]) for batch in islice(batches, count)]

    before = torch.get_rng_state()
    whole = images(6, workers=0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)  # another state of the global generators changes nothing
    np.random.seed(1)  # noqa: NPY002
    assert len({one.tobytes() for step in whole for one in step.reshape(8, -1)}) > 40
    for found, places in (
        (images(6, workers=2), range(6)),
        (images(2, workers=0, start=4), (4, 5)),
        (images(3, workers=0, rank=0, world=2), (0, 2, 4)),
        (images(3, workers=2, rank=1, world=2), (1, 3, 5)),
    ):
        for one, place in zip(found, places, strict=True):
            np.testing.assert_array_equal(one, whole[place])


@pytest.mark.long("documented pages and examples")
@pytest.mark.parametrize("name", ["kornia, one image at a time", "albumentations"])
def test_an_image_does_not_depend_on_the_number_of_sets(name: str, tmp_path: Path) -> None:
    library = name.partition(",")[0]
    pytest.importorskip(library, reason=f"{library} is not installed")
    transform = TRANSFORMS[name](parts_of_the_page(library, tmp_path))
    image = np.asarray(SHAPES.fetch(np.arange(8).reshape(2, 4))["image"])
    of = (
        np.asarray if library == "albumentations" else lambda found: torch.from_numpy(np.moveaxis(found, -1, -3).copy())
    )
    both = transform({"image": of(image), "indices": np.zeros((2, 4)), "step": 5})["image"]
    one = transform({"image": of(image[:1]), "indices": np.zeros((1, 4)), "step": 5})["image"]
    np.testing.assert_array_equal(np.asarray(both[:1]), np.asarray(one))


@pytest.mark.long("documented pages and examples")
@pytest.mark.filterwarnings("ignore")  # those of other libraries, about others still
def test_sentence_transformers_trains_on_batches_of_a_factory_and_resumes(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    from sentence_transformers import losses, models
    from sentence_transformers.models.tokenizer import WhitespaceTokenizer

    labels, words = [number % 7 for number in range(61)], [f"w{number}" for number in range(20)]
    texts = [f"w{number % 20} w{number * 3 % 20}" for number in range(61)]
    data = datasets.Dataset.from_dict({"sentence": texts, "label": labels})
    seen: list[list[int]] = []

    class Loss(losses.BatchAllTripletLoss):
        def forward(self, features: Any, of: Any) -> Any:
            seen.append(of.tolist())
            return super().forward(features, of)

    def train(checkpoint: str | None = None) -> list[list[int]]:
        seen.clear()
        tokens = WhitespaceTokenizer(vocab=words, stop_words=[])
        embedded = models.WordEmbeddings(tokens, np.ones((20, 8), np.float32), update_embeddings=True)
        model = library.SentenceTransformer(modules=[embedded, models.Pooling(8)], device="cpu")
        arguments = library.SentenceTransformerTrainingArguments(
            str(tmp_path),
            batch_sampler=setsup.batch_sampler.factory(classes=3, per_class=2),
            per_device_train_batch_size=6,
            num_train_epochs=2,
            save_steps=4,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            seed=5,
        )
        trainer = library.SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=Loss(model))
        trainer.train(resume_from_checkpoint=checkpoint)
        return list(seen)

    batches = setsup.batch_sampler(labels, classes=3, per_class=2, seed=5)
    wanted = [[labels[row] for row in rows] for _ in range(2) for rows in batches]
    assert train() == wanted
    assert train(str(tmp_path / "checkpoint-16")) == wanted[16:]
