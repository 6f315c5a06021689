"""What DCoDR's paper publishes in its tables 1 to 12, by row and column."""

from collections.abc import Mapping, Sequence

__all__ = [
    "APPENDIX_DATASETS",
    "ATTRIBUTES",
    "AUTOENCODERS",
    "BLUR_AGAINST_FLIP",
    "HOURS",
    "INVARIANCE",
    "OPTIMAL",
    "RETRIEVAL",
    "RETRIEVED",
    "VARIANTS",
    "Numbers",
]

Numbers = Mapping[str, Sequence[float]]
"""By the labels of rows."""

BLUR_AGAINST_FLIP: Numbers = {"Gaussian blur": (0.002, 0.960), "horizontal flip": (0.003, 0.725)}
"""Table 1: domain and attributes, DCoDR-norec with one augmentation on Cars3D."""

INVARIANCE: Mapping[str, Numbers] = {
    "Cars3D": {
        "LORD": (0.009, 0.940),
        "DRNET": (0.504, 0.909),
        "ML-VAE": (0.697, 0.930),
        "DCoDR-norec": (0.005, 0.970),
        "DCoDR": (0.005, 0.980),
    },
    "SmallNORB": {
        "LORD": (0.393, 0.670),
        "DRNET": (0.953, 0.899),
        "ML-VAE": (0.968, 0.944),
        "DCoDR-norec": (0.071, 0.730),
        "DCoDR": (0.143, 0.785),
    },
    "Shapes3D": {
        "LORD": (0.703, 0.995),
        "DRNET": (0.892, 1.0),
        "ML-VAE": (0.999, 1.0),
        "DCoDR-norec": (0.246, 0.997),
        "DCoDR": (0.245, 0.999),
    },
    "CelebA": {
        "LORD": (0.019, 0.862),
        "DRNET": (0.084, 0.795),
        "ML-VAE": (0.136, 0.723),
        "DCoDR-norec": (0.015, 1.127),
        "DCoDR": (0.017, 0.858),
    },
}
"""Table 2: accuracy of the domain, and of the attributes; of CelebA the L1 error of landmarks."""

OPTIMAL: Numbers = {
    "Cars3D": (0.005, 1.0),
    "SmallNORB": (0.021, 1.0),
    "Shapes3D": (0.251, 1.0),
    "CelebA": (0.002, 0.0),
}
"""Table 2, last row."""

VARIANTS: Mapping[str, Numbers] = {
    "DCoDR": {
        "no domain negatives": (0.863, 0.829),
        "no positives": (0.057, 0.555),
        "no pre-training": (0.253, 0.701),
        "SimSiam augmentations": (0.244, 0.643),
        "complete": (0.143, 0.785),
    },
    "DCoDR-norec": {
        "no domain negatives": (0.879, 0.754),
        "no positives": (0.021, 0.166),
        "no pre-training": (0.298, 0.716),
        "SimSiam augmentations": (0.246, 0.658),
        "complete": (0.071, 0.730),
    },
}
"""Table 3: domain and attributes on SmallNORB."""

RETRIEVAL: Mapping[str, Numbers] = {
    "Cars3D": {
        "LORD": (0.92,),
        "DRNET": (0.87,),
        "ML-VAE": (0.71,),
        "DCoDR-norec": (0.97,),
        "DCoDR": (0.97,),
    },
    "SmallNORB": {
        "LORD": (0.08,),
        "DRNET": (0.04,),
        "ML-VAE": (0.03,),
        "DCoDR-norec": (0.36,),
        "DCoDR": (0.40,),
    },
    "Shapes3D": {
        "LORD": (0.71,),
        "DRNET": (0.94,),
        "ML-VAE": (0.48,),
        "DCoDR-norec": (0.99,),
        "DCoDR": (1.0,),
    },
    "Edges2Shoes": {
        "LORD": (0.75,),
        "DRNET": (0.72,),
        "ML-VAE": (0.78,),
        "DCoDR-norec": (0.53,),
        "DCoDR": (0.90,),
    },
}
"""Table 4: all attributes of the nearest image are those of the query."""

HOURS: Mapping[str, Numbers] = {
    "Cars3D": {"LORD": (7.5,), "DCoDR": (5.5,), "DCoDR-norec": (1.5,)},
    "SmallNORB": {"LORD": (15.5,), "DCoDR": (9.5,), "DCoDR-norec": (3.5,)},
    "Shapes3D": {"LORD": (18.0,), "DCoDR": (11.5,), "DCoDR-norec": (3.5,)},
    "CelebA": {"LORD": (160.0,), "DCoDR": (30.0,), "DCoDR-norec": (9.0,)},
}
"""Table 5: of the training, on one RTX 6000."""

APPENDIX_DATASETS = ("Cars3D", "Edges2Shoes", "CelebA")

AUTOENCODERS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "horizontal-flip": ((0.868, 0.2489), (0.861, 0.1212), (0.868, 0.3387), (0.876, 0.2869)),
    "vertical-flip": ((0.791, 0.3125), (0.853, 0.1991), (0.770, 0.3458), (0.751, 0.3925)),
    "low-contrast": ((1.841, 0.0903), (1.231, 0.0710), (3.537, 0.1442), (0.756, 0.0557)),
    "low-brightness": ((0.759, 0.1666), (0.749, 0.1978), (1.098, 0.2265), (0.429, 0.0755)),
    "hue": ((0.876, 0.1020), (1.118, 0.0725), (1.015, 0.0829), (0.496, 0.1507)),
    "erasing": ((0.796, 0.1967), (0.728, 0.1994), (0.884, 0.1994), (0.776, 0.1968)),
    "affine": ((0.650, 0.382), (0.479, 0.2658), (0.734, 0.4116), (0.736, 0.4675)),
    "grey": ((0.787, 0.0570), (0.957, 0.0479), (0.939, 0.0502), (0.464, 0.0729)),
    "crop": ((0.842, 0.2053), (0.808, 0.1683), (0.830, 0.2096), (0.889, 0.2380)),
    "high-brightness": ((0.806, 0.0759), (0.355, 0.0372), (1.188, 0.0956), (0.875, 0.0950)),
    "high-contrast": ((0.433, 0.0572), (0.312, 0.0356), (0.454, 0.0499), (0.534, 0.0862)),
    "high-saturation": ((0.579, 0.0261), (0.337, 0.0095), (0.768, 0.0243), (0.632, 0.0445)),
    "blur": ((0.315, 0.0378), (0.080, 0.0111), (0.180, 0.0196), (0.055, 0.0071)),
}
"""Tables 6 and 7: normalised and unnormalised distances, on average and of each of the datasets.

The paper's average is not the mean of the three for every transform.
"""

ATTRIBUTES: Mapping[str, tuple[tuple[str, ...], Numbers]] = {
    "SmallNORB": (
        ("domain", "azimuth", "elevation", "lighting"),
        {
            "LORD": (0.393, 0.731, 0.384, 0.895),
            "DRNET": (0.953, 0.973, 0.766, 0.957),
            "ML-VAE": (0.968, 0.982, 0.868, 0.982),
            "DCoDR-norec": (0.071, 0.619, 0.594, 0.977),
            "DCoDR": (0.143, 0.684, 0.695, 0.977),
            "optimal": (0.021, 1.0, 1.0, 1.0),
        },
    ),
    "Shapes3D": (
        ("domain", "floor_hue", "wall_hue", "object_hue", "scale", "orientation"),
        {
            "LORD": (0.703, 0.998, 0.999, 0.990, 0.991, 0.999),
            "DRNET": (0.892, 1.0, 1.0, 1.0, 0.999, 1.0),
            "ML-VAE": (0.999, 1.0, 1.0, 1.0, 1.0, 1.0),
            "DCoDR-norec": (0.246, 1.0, 0.999, 0.998, 0.991, 0.997),
            "DCoDR": (0.245, 0.999, 0.999, 0.999, 1.0, 0.999),
            "optimal": (0.25, 1.0, 1.0, 1.0, 1.0, 1.0),
        },
    ),
}
"""Tables 8 and 9: domain, then each attribute."""

RETRIEVED: Mapping[str, tuple[tuple[str, ...], Numbers]] = {
    "SmallNORB": (
        ("azimuth", "elevation", "lighting", "all"),
        {
            "LORD": (0.90, 0.30, 0.79, 0.08),
            "DRNET": (0.99, 0.35, 0.67, 0.04),
            "ML-VAE": (0.99, 0.56, 0.43, 0.026),
            "DCoDR-norec": (0.65, 0.52, 0.97, 0.36),
            "DCoDR": (0.65, 0.61, 0.97, 0.40),
        },
    ),
    "Shapes3D": (
        ("floor_hue", "wall_hue", "object_hue", "scale", "orientation", "all"),
        {
            "LORD": (0.99, 1.0, 0.94, 0.96, 0.81, 0.71),
            "DRNET": (1.0, 0.99, 1.0, 0.96, 0.99, 0.94),
            "ML-VAE": (0.71, 0.98, 0.79, 0.99, 1.0, 0.48),
            "DCoDR-norec": (1.0, 1.0, 1.0, 1.0, 1.0, 0.99),
            "DCoDR": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
        },
    ),
    "Edges2Shoes": (
        ("shoe_type", "gender", "all"),
        {
            "LORD": (0.94, 0.79, 0.75),
            "DRNET": (0.93, 0.76, 0.72),
            "ML-VAE": (0.96, 0.81, 0.78),
            "DCoDR-norec": (0.79, 0.62, 0.53),
            "DCoDR": (0.98, 0.91, 0.90),
        },
    ),
}
"""Tables 10, 11 and 12: each attribute of the nearest image, and all of them."""
