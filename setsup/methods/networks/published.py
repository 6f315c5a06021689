"""Files of published pretrained weights: their paths on this machine, after fetching missing ones.

A name is that of a repository of the Hugging Face hub, or one of these, which come from where their authors put them:

======================= =================================================== =========================================
name                    weights                                             digest that is checked
======================= =================================================== =========================================
``resnet50-imagenet``   torchvision's ``ResNet50_Weights.IMAGENET1K_V1``    first 8 digits of the sha256 [1]_
``vgg16-imagenet``      torchvision's ``VGG16_Weights.IMAGENET1K_V1``       first 8 digits of the sha256 [1]_
``resnet50-mocov2-800`` MoCo-v2, 800 epochs on ImageNet without its labels  first 8 digits of the md5 [2]_; CC BY-NC
``resnet50v2-imagenet`` Keras' ``ResNet50V2``, without its top              md5 [3]_
======================= =================================================== =========================================

References
----------
.. [1] torchvision, ``torchvision.models.resnet`` and ``vgg``; the names of the files have the digits.
.. [2] "Improved Baselines with Momentum Contrastive Learning", arXiv 2003.04297, and the table of models in the README
   of github.com/facebookresearch/moco.
.. [3] Keras, ``keras.applications.resnet``, which has the digests of its files.

"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from setsup.errors import DataError, SetsupError, did_you_mean, require_modules
from setsup.files import ManifestFile, cache_folder, content_digest, locked
from setsup.files.downloads.download import download

__all__ = ["is_published", "is_repository", "published_place", "weights_file"]


class _Published(NamedTuple):
    """A file of weights, and how the digest of its bytes begins, of which no more may be published."""

    url: str
    algorithm: str
    digits: str


_PUBLISHED = {
    "resnet50-imagenet": _Published("https://download.pytorch.org/models/resnet50-0676ba61.pth", "sha256", "0676ba61"),
    "vgg16-imagenet": _Published("https://download.pytorch.org/models/vgg16-397923af.pth", "sha256", "397923af"),
    "resnet50-mocov2-800": _Published(
        "https://dl.fbaipublicfiles.com/moco/moco_checkpoints/moco_v2_800ep/moco_v2_800ep_pretrain.pth.tar",
        "md5",
        "a04e12f8",
    ),
    "resnet50v2-imagenet": _Published(
        "https://storage.googleapis.com/tensorflow/keras-applications/resnet/"
        "resnet50v2_weights_tf_dim_ordering_tf_kernels_notop.h5",
        "md5",
        "fac2f116257151a9d068a22e544a4917",
    ),
}
_SUFFIXES = (".pth", ".pt", ".tar", ".bin", ".ckpt", ".safetensors", ".h5")
_HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def weights_file(source: str | Path) -> Path:
    """Return the path of weights on this machine; published weights are fetched if they are missing.

    Parameters
    ----------
    source : str or Path
        A path; a name of the table above, whose file is kept in ``pretrained`` in the cache folder of setsup and may
        be put there by hand; or a repository of the Hugging Face hub such as ``"microsoft/resnet-50"``, which stays in
        the cache of huggingface_hub (``HF_HOME``) and is read only from there with ``HF_HUB_OFFLINE=1``. What
        exists as a path is one, and so is a name that ends as a checkpoint does (``runs/last.pth``).

    Returns
    -------
    Path
        A path as it was given; otherwise the file.

    Raises
    ------
    DataError
        When a file cannot be fetched, or is not the published one.
    SetsupError
        When the name is none of these, or huggingface_hub is needed and not installed.

    Examples
    --------
    >>> weights_file("runs/last.pth").as_posix()
    'runs/last.pth'

    """
    if not isinstance(source, str) or os.path.exists(source):
        return Path(source)
    if source in _PUBLISHED:
        return _fetch(source)
    if is_repository(source):
        return _from_hub(source)
    if Path(source).name == source and not source.endswith(_SUFFIXES):
        raise SetsupError(
            f"{source!r} is neither a file nor the name of published weights{did_you_mean(source, _PUBLISHED)}"
        )
    return Path(source)


def is_published(source: str | Path) -> bool:
    """Return whether a source is a name of the table above.

    Examples
    --------
    >>> is_published("vgg16-imagenet"), is_published("vgg16.pth")
    (True, False)

    """
    return isinstance(source, str) and source in _PUBLISHED and not os.path.exists(source)


def is_repository(source: str | Path) -> bool:
    """Return whether a source is the name of a repository of the Hugging Face hub, not a path.

    Examples
    --------
    >>> is_repository("microsoft/resnet-50"), is_repository("runs/last.pth"), is_repository(Path("runs/last"))
    (True, False, False)

    """
    if not isinstance(source, str) or source.endswith(_SUFFIXES):
        return False
    return re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", source) is not None and not os.path.exists(source)


def published_place(name: str) -> Path:
    """Return the path of a published file, whether or not it was fetched.

    Examples
    --------
    >>> published_place("vgg16-imagenet").name
    'vgg16-397923af.pth'

    """
    return cache_folder() / "pretrained" / _PUBLISHED[name].url.rpartition("/")[2]


def _fetch(name: str) -> Path:
    """The file of a published name in the cache folder, whose digest begins as it should."""
    url, algorithm, digits = _PUBLISHED[name]
    target = published_place(name)
    with locked(target):
        if not target.is_file():
            try:
                download(ManifestFile(target.name, urls=(url,)), target)
            except DataError as error:
                raise DataError(
                    f"{name}: {error}; try again to resume, or download {url} elsewhere and move it to {target} "
                    "or pass its path instead of the name"
                ) from error
    digest = content_digest(target, algorithm)
    if not digest.startswith(digits):
        raise DataError(
            f"the {algorithm} of {target} must start with {digits}, but is {digest}; remove the file to download it "
            "again"
        )
    return target


def _from_hub(name: str) -> Path:
    """The weights of a repository, with ``config.json``, in the cache of huggingface_hub."""
    require_modules(f"{name} needs", "huggingface_hub")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError

    try:
        hf_hub_download(name, "config.json")
        try:
            return Path(hf_hub_download(name, _HUB_FILES[0]))
        except EntryNotFoundError:
            return Path(hf_hub_download(name, _HUB_FILES[1]))
    except (OSError, EntryNotFoundError, HFValidationError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise DataError(
            f"{name} is not a local file, and could not be downloaded from the Hugging Face hub "
            f"({type(error).__name__}: {reason}); download it to the cache in HF_HOME with `hf download {name}`, "
            "or pass the path of a checkpoint file"
        ) from error
