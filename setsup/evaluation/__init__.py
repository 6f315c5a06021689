"""Evaluation of embeddings: mutual information with factors, disentanglement scores, retrieval, probes, projections.

Embeddings and factors are numpy arrays. Only the estimators of information that train networks need torch; names are
imported on first use.
"""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.evaluation.accuracy_by_group import GroupAccuracy, group_accuracy
    from setsup.evaluation.agreement import Retrieved, accuracy, matches, mean_average_precision, precision, vote
    from setsup.evaluation.batched.sgd_probes import NetworkProbes, network_probes
    from setsup.evaluation.dense import (
        DenseMatches,
        edge_separations,
        instance_separation,
        mutual_matches,
        ratio_matches,
        recall_within,
        visible_matches,
    )
    from setsup.evaluation.dense_views import DenseView
    from setsup.evaluation.feature_neighbours import NearestFeatures, mutual_neighbours, nearest_features
    from setsup.evaluation.feature_tracks import FeatureTracks, track_features
    from setsup.evaluation.information import Information, noise_scale
    from setsup.evaluation.invariance import DeepProbes, deep_probes, landmark_error
    from setsup.evaluation.keypoint_transfer import TransferredKeypoints, transfer_keypoints
    from setsup.evaluation.keypoints import KeypointAccuracy, keypoint_accuracy, keypoint_extent
    from setsup.evaluation.linear import LinearProbe, linear_classifier, linear_regression
    from setsup.evaluation.maps import tsne_map, umap_map
    from setsup.evaluation.neighbours import neighbour_information
    from setsup.evaluation.one_shot import one_shot_accuracy
    from setsup.evaluation.orbits import (
        CanonicalRetrieval,
        Distances,
        OrbitDistances,
        canonical_retrieval,
        orbit_distances,
        peak_signal_to_noise,
    )
    from setsup.evaluation.pair_statistics import ViewInformation, donsker_varadhan, view_information
    from setsup.evaluation.paired import PairedTest, paired_tests
    from setsup.evaluation.pixels import NearestPixels, edge_pixels, mutual_pixels, nearest_pixels, separation
    from setsup.evaluation.planes import corner_error, error_auc, estimate_homography, matching_accuracy
    from setsup.evaluation.point_tracks import TrackQueries, TrackScores, track_queries, track_scores
    from setsup.evaluation.probe_bound import ProbeInformation, probe_information
    from setsup.evaluation.probes import Classified, Regressed, logistic_probe, ridge_probe
    from setsup.evaluation.projection import Components, principal_components
    from setsup.evaluation.resplits import check_disjoint, draw_labelled, draw_parts
    from setsup.evaluation.retrieval import nearest, shared_keys
    from setsup.evaluation.sample_complexity import Resample, accuracy_over_labels, draw_resamples
    from setsup.evaluation.scores import (
        DCI,
        Explicitness,
        InfoMEC,
        Score,
        curve_explicitness,
        dci,
        explicitness,
        factor_vae,
        infomec,
        mig,
        modularity,
        sap,
    )
    from setsup.evaluation.segmentation import SegmentationScores, confusion_matrix, segmentation_scores
    from setsup.evaluation.statistics_networks import mine, noise_sweep
    from setsup.evaluation.verification import Verified, identity_retrieval, verification_auc
    from setsup.evaluation.within_sets import within_set_variance

__all__ = [
    "DCI",
    "CanonicalRetrieval",
    "Classified",
    "Components",
    "DeepProbes",
    "DenseMatches",
    "DenseView",
    "Distances",
    "Explicitness",
    "FeatureTracks",
    "GroupAccuracy",
    "InfoMEC",
    "Information",
    "KeypointAccuracy",
    "LinearProbe",
    "NearestFeatures",
    "NearestPixels",
    "NetworkProbes",
    "OrbitDistances",
    "PairedTest",
    "ProbeInformation",
    "Regressed",
    "Resample",
    "Retrieved",
    "Score",
    "SegmentationScores",
    "TrackQueries",
    "TrackScores",
    "TransferredKeypoints",
    "Verified",
    "ViewInformation",
    "accuracy",
    "accuracy_over_labels",
    "canonical_retrieval",
    "check_disjoint",
    "confusion_matrix",
    "corner_error",
    "curve_explicitness",
    "dci",
    "deep_probes",
    "donsker_varadhan",
    "draw_labelled",
    "draw_parts",
    "draw_resamples",
    "edge_pixels",
    "edge_separations",
    "error_auc",
    "estimate_homography",
    "explicitness",
    "factor_vae",
    "group_accuracy",
    "identity_retrieval",
    "infomec",
    "instance_separation",
    "keypoint_accuracy",
    "keypoint_extent",
    "landmark_error",
    "linear_classifier",
    "linear_regression",
    "logistic_probe",
    "matches",
    "matching_accuracy",
    "mean_average_precision",
    "mig",
    "mine",
    "modularity",
    "mutual_matches",
    "mutual_neighbours",
    "mutual_pixels",
    "nearest",
    "nearest_features",
    "nearest_pixels",
    "neighbour_information",
    "network_probes",
    "noise_scale",
    "noise_sweep",
    "one_shot_accuracy",
    "orbit_distances",
    "paired_tests",
    "peak_signal_to_noise",
    "precision",
    "principal_components",
    "probe_information",
    "ratio_matches",
    "recall_within",
    "ridge_probe",
    "sap",
    "segmentation_scores",
    "separation",
    "shared_keys",
    "track_features",
    "track_queries",
    "track_scores",
    "transfer_keypoints",
    "tsne_map",
    "umap_map",
    "verification_auc",
    "view_information",
    "visible_matches",
    "vote",
    "within_set_variance",
]

if not TYPE_CHECKING:
    _HOMES = {
        "agreement": ("Retrieved", "accuracy", "matches", "mean_average_precision", "precision", "vote"),
        "accuracy_by_group": ("GroupAccuracy", "group_accuracy"),
        "dense": (
            "DenseMatches",
            "edge_separations",
            "instance_separation",
            "mutual_matches",
            "ratio_matches",
            "recall_within",
            "visible_matches",
        ),
        "dense_views": ("DenseView",),
        "feature_neighbours": ("NearestFeatures", "mutual_neighbours", "nearest_features"),
        "feature_tracks": ("FeatureTracks", "track_features"),
        "information": ("Information", "noise_scale"),
        "keypoint_transfer": ("TransferredKeypoints", "transfer_keypoints"),
        "keypoints": ("KeypointAccuracy", "keypoint_accuracy", "keypoint_extent"),
        "linear": ("LinearProbe", "linear_classifier", "linear_regression"),
        "maps": ("tsne_map", "umap_map"),
        "neighbours": ("neighbour_information",),
        "one_shot": ("one_shot_accuracy",),
        "pair_statistics": ("ViewInformation", "donsker_varadhan", "view_information"),
        "paired": ("PairedTest", "paired_tests"),
        "pixels": ("NearestPixels", "edge_pixels", "mutual_pixels", "nearest_pixels", "separation"),
        "orbits": (
            "CanonicalRetrieval",
            "Distances",
            "OrbitDistances",
            "canonical_retrieval",
            "orbit_distances",
            "peak_signal_to_noise",
        ),
        "planes": ("corner_error", "error_auc", "estimate_homography", "matching_accuracy"),
        "point_tracks": ("TrackQueries", "TrackScores", "track_queries", "track_scores"),
        "probe_bound": ("ProbeInformation", "probe_information"),
        "probes": ("Classified", "Regressed", "logistic_probe", "ridge_probe"),
        "projection": ("Components", "principal_components"),
        "resplits": ("check_disjoint", "draw_labelled", "draw_parts"),
        "invariance": ("DeepProbes", "deep_probes", "landmark_error"),
        "retrieval": ("nearest", "shared_keys"),
        "sample_complexity": ("Resample", "accuracy_over_labels", "draw_resamples"),
        "scores": (
            "DCI",
            "Explicitness",
            "InfoMEC",
            "Score",
            "curve_explicitness",
            "dci",
            "explicitness",
            "factor_vae",
            "infomec",
            "mig",
            "modularity",
            "sap",
        ),
        "segmentation": ("SegmentationScores", "confusion_matrix", "segmentation_scores"),
        "batched.sgd_probes": ("NetworkProbes", "network_probes"),
        "statistics_networks": ("mine", "noise_sweep"),
        "verification": ("Verified", "identity_retrieval", "verification_auc"),
        "within_sets": ("within_set_variance",),
    }

    _NETWORKS = (
        "information",
        "invariance",
        "neighbours",
        "pair_statistics",
        "probe_bound",
        "batched.sgd_probes",
        "statistics_networks",
    )

    __getattr__ = lazy_names(__name__, _HOMES, {"torch": _NETWORKS})

    def __dir__() -> list[str]:
        return sorted(__all__)
