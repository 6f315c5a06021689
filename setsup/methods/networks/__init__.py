"""Networks of the methods as plain modules, their initialisation, and pretrained backbones."""

from setsup.methods.networks.abc import mnist_encoder, pose_encoder, shapes3d_encoder
from setsup.methods.networks.caffenet import caffenet_view
from setsup.methods.networks.cc_vae import CycleDecoder, CycleEncoder
from setsup.methods.networks.convolutional import convolutional
from setsup.methods.networks.dense_views import ViewDecoder, nyu_view
from setsup.methods.networks.domain_encoders import ResNetEncoder, contrast_head, small_encoder
from setsup.methods.networks.generator import AdaINGenerator, class_embedding
from setsup.methods.networks.images import OverImages, unit_range
from setsup.methods.networks.initialisation import glorot_
from setsup.methods.networks.mutual_information import MapEncoder, StatisticsNetworks
from setsup.methods.networks.orbits import OrbitDecoder, OrbitEncoder, SpatialTransformer
from setsup.methods.networks.perceptual import PerceptualDistance, PyramidDistance, vgg16_features
from setsup.methods.networks.pixels import PixelClassifier, PixelUNet
from setsup.methods.networks.pretrained import pretrained_resnet, read_weights, transformers_name
from setsup.methods.networks.published import weights_file
from setsup.methods.networks.resnet_v2 import Bottleneck, ResNet50V2, resnet50v2
from setsup.methods.networks.views import RESNETS, ViewEncoder, alexnet_view, resnet_view, small_view, stl10_view

__all__ = [
    "RESNETS",
    "AdaINGenerator",
    "Bottleneck",
    "CycleDecoder",
    "CycleEncoder",
    "MapEncoder",
    "OrbitDecoder",
    "OrbitEncoder",
    "OverImages",
    "PerceptualDistance",
    "PixelClassifier",
    "PixelUNet",
    "PyramidDistance",
    "ResNet50V2",
    "ResNetEncoder",
    "SpatialTransformer",
    "StatisticsNetworks",
    "ViewDecoder",
    "ViewEncoder",
    "alexnet_view",
    "caffenet_view",
    "class_embedding",
    "contrast_head",
    "convolutional",
    "glorot_",
    "mnist_encoder",
    "nyu_view",
    "pose_encoder",
    "pretrained_resnet",
    "read_weights",
    "resnet50v2",
    "resnet_view",
    "shapes3d_encoder",
    "small_encoder",
    "small_view",
    "stl10_view",
    "transformers_name",
    "unit_range",
    "vgg16_features",
    "weights_file",
]
