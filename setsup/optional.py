"""Optional libraries: the extras that install each, and what needs it.

This is the one list of them. The extras of ``pyproject.toml`` are tested against it, and ``setsup doctor``, the
documentation and the errors of :func:`setsup.errors.require_modules` use it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

__all__ = ["LIBRARIES", "Library", "command", "extra_command", "installed"]


@dataclass(frozen=True, slots=True)
class Library:
    """An optional library.

    Attributes
    ----------
    module : str
        Name to import.
    package : str
        Name for pip.
    extras : tuple of str
        Extras of setsup that install it, the one to name first; empty where no extra does.
    use : str
        What needs it.

    """

    module: str
    package: str
    extras: tuple[str, ...]
    use: str


LIBRARIES = {
    library.module: library
    for library in (
        Library("torch", "torch", ("torch",), "batches as tensors, transforms, losses, networks, train, embed, eval"),
        Library("kornia", "kornia", ("torch",), "transforms"),
        Library("lightning", "lightning", ("train",), "methods, train, embed, eval; batches for Lightning's Trainer"),
        Library("transformers", "transformers", ("train",), "pretrained networks; batches for Hugging Face's Trainer"),
        Library("accelerate", "accelerate", ("train",), "Hugging Face's Trainer itself"),
        Library("matplotlib", "matplotlib", ("train",), "charts of eval and report"),
        Library("skimage", "scikit-image", ("train",), "measures of digits; backdrops of abc-pose-procedural"),
        Library("sklearn", "scikit-learn", ("train",), "linear probes; t-SNE maps; the scores DCI and SAP"),
        Library("umap", "umap-learn", ("umap",), "UMAP maps"),
        Library("datasets", "datasets", ("hf",), "datasets and tables from and to Hugging Face"),
        Library("trimesh", "trimesh", ("meshes", "render"), "meshes in any format; previews of mesh datasets"),
        Library("embreex", "embreex", ("render",), "the renderer embree; exact correspondences of two views"),
        Library("rtree", "rtree", ("render",), "ray casting where embreex has no wheel: Linux on ARM"),
        Library("moderngl", "moderngl", ("render",), "the renderer gl"),
        Library("pyrender", "pyrender2", ("render",), "the renderer pyrender"),
        Library("OpenGL", "PyOpenGL", ("render",), "the renderer pyrender"),
        Library("av", "av", ("video",), "videos: ucf101, hmdb51, video-orbits"),
        Library(
            "cv2",
            "opencv-python-headless",
            ("opencv", "video"),
            "transforms on a CPU; SIFT; RANSAC; faces in videos",
        ),
        Library("scenedetect", "scenedetect-headless", ("video",), "scene cuts of videos"),
        Library("fsspec", "fsspec", ("shards",), "shards in stores, over s3://, gs://, hf:// and https://"),
        Library("aiohttp", "aiohttp", ("shards",), "shards over https://"),
        Library("gcsfs", "gcsfs", ("shards",), "shards over gs://"),
        Library("huggingface_hub", "huggingface_hub", ("shards",), "shards over hf://; weights from the Hub"),
        Library("s3fs", "s3fs", ("shards",), "shards over s3://"),
        Library("ray", "ray", ("ray",), "--on ray"),
        Library("starlette", "starlette", ("explore",), "explore without --export"),
        Library("uvicorn", "uvicorn", ("explore",), "explore without --export"),
        Library("pandas", "pandas", ("pandas",), "tables from and to pandas"),
        Library("pillow_heif", "pillow-heif", (), "images that end in .heic, .heif or .hif"),
        Library("pillow_avif", "pillow-avif-plugin", (), "images that end in .avif, with a Pillow before 11.3"),
        Library("timm", "timm", (), "encoders of timm: --encoder timm:NAME"),
        Library("tensorboard", "tensorboard", (), "train --log tensorboard"),
        Library("wandb", "wandb", (), "train --log wandb"),
        Library("mlflow", "mlflow", (), "train --log mlflow"),
    )
}
"""All optional libraries, by their modules."""


def installed(module: str) -> bool:
    """Whether a library is installed; it is not imported."""
    try:
        return find_spec(module.partition(".")[0]) is not None
    except ValueError:  # a module that was put in its place has no spec
        return True


def extra_command(*extras: str) -> str:
    """Command that installs extras of setsup; what is installed already, such as a torch with CUDA, is kept."""
    return f"pip install '.[{','.join(extras)}]' in setsup's folder"


def command(modules: Iterable[str]) -> str:
    """Command that installs libraries: by the extras of setsup, and by name what no extra brings."""
    named = [LIBRARIES.get(module) or Library(module, module, (), "") for module in modules]
    extras = list(dict.fromkeys(one.extras[0] for one in named if one.extras))
    plain = [one.package for one in named if not one.extras]
    parts = [extra_command(*extras)] if extras else []
    return " and ".join([*parts, *([f"pip install {' '.join(plain)}"] if plain else [])])
