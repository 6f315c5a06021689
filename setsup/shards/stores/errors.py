"""Exceptions of the libraries of stores, each as one sentence.

Every library has its own exceptions (botocore, aiohttp, gcsfs, huggingface_hub …), which fsspec passes on or converts
to kinds of OSError. They are classified by their HTTP status, or else by their names, without importing the libraries.
"""

import errno
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from setsup.errors import DataError, SetsupError

__all__ = ["CutShort", "Failure", "NoRanges", "NotThere", "ShortRead", "classify", "format_error", "is_temporary"]

_PASSING = (408, 409, 425, 429, 500, 502, 503, 504)  # temporary failures
_LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EMFILE, errno.ENFILE)
_SILENT = ("TimeoutError", "Timeout", "TimeoutException")
_UNREACHED = ("ConnectionError", "ClientConnectionError", "HTTPClientError", "TransportError", "NetworkError")
_ABSENT = (  # no server at that name and port
    "ClientConnectorError",
    "EndpointConnectionError",
    "ConnectionRefusedError",
    "NameResolutionError",
    "gaierror",
)
_DROPPED = (
    "ServerDisconnectedError",
    "ConnectionResetError",
    "IncompleteRead",
    "IncompleteReadError",
    "ClientPayloadError",
    "ProtocolError",
    "ResponseParserError",
)
_LOST_WAY = (  # redirects in a loop, or to other protocols
    "TooManyRedirects",
    "InvalidUrlRedirectClientError",
    "NonHttpUrlRedirectClientError",
)
_UNKNOWN_USER = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "DefaultCredentialsError",
    "RefreshError",
    "LocalTokenNotFoundError",
    "ProfileNotFound",
    "TokenRetrievalError",
    "SSOTokenLoadError",
    "UnauthorizedSSOTokenError",
)
_NO_ANSWER = "cannot be accessed: the store did not respond in time; check the network, or try again later"
_SECRETS = re.compile(r"(://)[^\s/@'\"]*@|\?[^\s'\"]*=[^\s'\"]*")  # a user's name and password, a signed query
_CREDENTIALS = {
    "s3": "set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (FSSPEC_S3_ANON=true for a public bucket)",
    "gs": "log in with `gcloud auth application-default login` (FSSPEC_GS_TOKEN=anon for a public bucket)",
    "hf": "log in with `hf auth login`, or set HF_TOKEN",
}
_CREDENTIALS["s3a"], _CREDENTIALS["gcs"] = _CREDENTIALS["s3"], _CREDENTIALS["gs"]


class CutShort(DataError):
    """A file ends before the requested bytes, or differs in size."""


class NoRanges(DataError):
    """A server cannot send ranges."""


class NotThere(DataError):
    """A file does not exist."""


class ShortRead(Exception):
    """Fewer bytes arrived than requested."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Kind of a failure, and its sentence."""

    text: str
    retry: bool = False
    retry_once: bool = False
    missing: bool = False
    truncated: bool = False
    exists: bool = False
    timeout: bool = False
    unknown: bool = False


def classify(error: Exception, scheme: str) -> Failure:
    """Classify an exception of a store's library."""
    if isinstance(error, SetsupError) or (isinstance(error, OSError) and error.errno in _LOCAL):
        raise error
    if isinstance(error, ShortRead):
        return Failure("ends before the requested bytes", retry=True, retry_once=True, truncated=True)
    remedy = _CREDENTIALS.get(scheme, "check the credentials in the address or in the options")
    names = _names(error)
    if "TooManyRedirects" in names:
        return Failure("cannot be accessed: its server redirects in a loop; check the address")
    if names.intersection(_LOST_WAY):
        return Failure(
            f"cannot be accessed: its server redirects to an invalid address ({_first(error)}); check the address"
        )
    status = _status(error)
    if names.intersection(_UNKNOWN_USER):
        return Failure(f"cannot be reached without credentials ({_first(error)}); {remedy}")
    if _kinds(error).intersection(_SILENT):
        return Failure(_NO_ANSWER, True, timeout=True)
    if status == 416:
        return Failure("ends before the requested bytes", truncated=True)
    forbidden = "PermissionError" in names or str(error).startswith("Forbidden: ")  # the latter is gcsfs's
    if status in (401, 403, 407) or forbidden:
        code = f" (HTTP {status})" if status else ""
        return Failure(
            f"cannot be accessed: the store denied access{code}: {_first(error)}; {remedy}, and check their permissions"
        )
    if status == 412 or "FileExistsError" in names:
        return Failure("already exists", exists=True)
    if "NoSuchBucket" in _code(error) or "bucket does not exist" in str(error):
        return Failure("does not exist, because the bucket does not exist; check the address")
    if status in (404, 410) or "FileNotFoundError" in names:
        return Failure("does not exist; check the address, or write it again", missing=True)
    if status in _PASSING:
        return Failure(f"cannot be accessed: the store returned HTTP {status} ({_first(error)}); try again later", True)
    if names.intersection(_SILENT):
        return Failure(_NO_ANSWER, True, timeout=True)
    if names.intersection(_DROPPED):
        return Failure("cannot be accessed: the connection dropped; try again later", True)
    if names.intersection(_UNREACHED):
        retry_once = bool(names.intersection(_ABSENT))
        return Failure(f"cannot be reached ({_first(error)}); check the address and the network", True, retry_once)
    text = f"HTTP {status}, {_first(error)}" if status else _first(error)
    text = f"cannot be accessed: the store reports {text}; check the address and the options"
    return Failure(text, status is None, unknown=True)


def is_temporary(error: Exception) -> bool:
    """Whether another way of requesting the file would fail alike, or the error is temporary."""
    names, status = _names(error), _status(error)
    if names.intersection(("ClientSSLError", "NoRanges", *_LOST_WAY)):
        return False
    if isinstance(error, ShortRead | SetsupError):
        return True
    if status is not None:
        return status in _PASSING or status == 416
    return bool(names.intersection((*_SILENT, *_UNREACHED, *_DROPPED)))


def format_error(error: BaseException) -> str:
    """Traceback of an exception and its causes, without passwords and signatures."""
    return _SECRETS.sub(r"\1", "".join(traceback.format_exception(error)))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _kinds(error: BaseException) -> set[str]:
    """Names of the classes of an exception."""
    return {kind.__name__ for kind in type(error).__mro__}


def _names(error: Exception) -> set[str]:
    """Names of the classes of an exception and its causes."""
    return set().union(*(_kinds(cause) for cause in _chain(error)))


def _status(error: Exception) -> int | None:
    """HTTP status, in the place that the library uses."""
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # botocore
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:  # httpx, requests; aiohttp; gcsfs
            status = (
                getattr(response, "status_code", None) or getattr(cause, "status", None) or getattr(cause, "code", None)
            )
        if isinstance(status, int | str) and str(status).isdecimal() and 400 <= int(status) < 600:
            return int(status)
    return None


def _code(error: Exception) -> str:
    """Error code of S3."""
    for cause in _chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""


def _first(error: Exception) -> str:
    """First line of an exception's message, shortened to fit a sentence."""
    message = getattr(error, "message", None)  # aiohttp's text includes the whole address
    words = " ".join((message if isinstance(message, str) and message else str(error)).split()).rstrip(".;,: ")
    words = _SECRETS.sub(r"\1", words).partition(" for url ")[0]  # the sentence names it already
    return (words if len(words) <= 160 else words[:159] + "…") or type(error).__name__
