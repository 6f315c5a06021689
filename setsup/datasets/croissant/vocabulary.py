"""Terms of Croissant 1.1, and those that setsup adds."""

from typing import Any

__all__ = [
    "ARROW",
    "BYTES",
    "CONFORMS",
    "CONTEXT",
    "CSV",
    "DESCRIBED",
    "FILE",
    "FORMATS",
    "MOST_LEVELS",
    "NPY",
    "PARQUET",
    "RAI",
    "TAR",
    "TERMS",
    "URN",
]

FILE = "croissant.json"
"""Name of the file beside the data that it describes."""

DESCRIBED = (
    f"`{FILE}` describes the files in Croissant 1.1; they have no public address that setsup knows, so that their "
    "addresses in it are relative to it."
)
"""Sentence of a card beside the file."""

URN = "urn:setsup:"
"""What the prefix ``setsup`` stands for: terms for what Croissant, schema.org and PROV-O have none for."""

CONFORMS = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")

_OWN = """
    annotation arrayShape citeAs column containedIn equivalentProperty excludes extract field fileObject fileProperty
    fileSet format includes isArray isLiveDataset jsonPath key md5 parentField path readLines recordSet references regex
    repeated replace samplingRate sdVersion separator source subField transform unArchive value
""".split()

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
    "setsup": URN,
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: f"cr:{name}" for name in _OWN},
}
"""The context of each document: that of the specification, with the keys that ``mlcroissant`` looks for."""

TERMS = {"kind": "setsup:kind", "unit": "sc:unitText", "period": "setsup:period"}
TERMS |= {"within": "setsup:within", "role": "setsup:role"}
"""Properties of a factor, and what their annotations are equivalent to."""

MOST_LEVELS = 10_000
"""Levels above which a factor has no enumeration."""

TAR, PARQUET, CSV = "application/x-tar", "application/x-parquet", "text/csv"
ARROW, BYTES = "application/vnd.apache.arrow.stream", "application/octet-stream"
NPY = "https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html"

FORMATS = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "npy": NPY, "json": "application/json"}
"""Encoding formats of the members of shards."""

RAI = {
    "dataCollection": False,
    "dataCollectionType": True,
    "dataCollectionMissingData": False,
    "dataCollectionRawData": False,
    "dataCollectionTimeframe": True,
    "dataImputationProtocol": False,
    "dataManipulationProtocol": False,
    "dataPreprocessingProtocol": True,
    "dataAnnotationProtocol": False,
    "dataAnnotationPlatform": True,
    "dataAnnotationAnalysis": True,
    "dataReleaseMaintenancePlan": True,
    "personalSensitiveInformation": True,
    "dataSocialImpact": False,
    "dataBiases": True,
    "dataLimitations": True,
    "dataUseCases": True,
    "annotationsPerItem": False,
    "annotatorDemographics": True,
    "machineAnnotationTools": True,
}
"""Properties of the RAI vocabulary, and whether each may have several values."""
