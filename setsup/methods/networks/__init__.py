"""Networks of the methods as plain modules, their initialisation, and pretrained backbones."""

from setsup.methods.networks.convolutional import convolutional
from setsup.methods.networks.images import OverImages, unit_range
from setsup.methods.networks.initialisation import glorot_
from setsup.methods.networks.pretrained import pretrained_resnet, read_weights, transformers_name
from setsup.methods.networks.published import weights_file

__all__ = [
    "OverImages",
    "convolutional",
    "glorot_",
    "pretrained_resnet",
    "read_weights",
    "transformers_name",
    "unit_range",
    "weights_file",
]
