"""Ranges of files in S3 by signed addresses.

Most of the cost of a request to S3 is botocore's: 1.1 ms of a core to build, sign and parse one, where the request
itself takes 0.15 ms. A *presigned* address of a file is valid for any of its ranges, since the ``Range`` header
need not be signed; so a file is signed now and then, and its ranges are read like those of a web server, whose
answers include the size of the file.

A refused request is repeated through the library, which handles other regions, redirections and keys, and has S3's own
error messages.

Source: Amazon S3, API Reference, "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)".
"""

import time
from typing import Any

from setsup.shards.stores.errors import is_temporary
from setsup.shards.stores.store import Range
from setsup.shards.stores.web import web_range

__all__ = ["SignedReads"]

_VALID, _RENEWED = 3600, 900.0  # seconds for which an address is valid, and after which it is signed again
_MANY = 4096  # addresses kept
_MISSES = 4  # reads that only the library could do, after which it is used at once


class SignedReads:
    """Reads ranges of files in S3."""

    def __init__(self, system: Any, web: Any) -> None:
        self._system, self._web = system, web
        self._addresses: dict[str, tuple[float, str]] = {}
        # customer keys are sent with each request; express buckets have sessions; `verify` is an option of botocore
        plain = not system.s3_additional_kwargs and "verify" not in system.client_kwargs and not system.version_aware
        self._misses = 0 if plain else _MISSES

    async def read(self, path: str, wanted: Range, label: str) -> bytes:
        """Bytes of a file; `label` is its name in messages."""
        if self._misses < _MISSES:
            try:
                return await web_range(self._web, await self._address(path), wanted, label)
            except Exception as error:
                if is_temporary(error):
                    raise
            self._addresses.pop(path, None)
        content: bytes = await self._system._cat_file(path, start=wanted.start, end=wanted.stop)
        self._misses += 1
        return content

    async def _address(self, path: str) -> str:
        address: str
        signed, address = self._addresses.get(path, (-_RENEWED, ""))
        now = time.monotonic()
        if now - signed < _RENEWED:
            return address
        bucket, key, _ = self._system.split_path(path)
        await self._system.set_session()
        client = await self._system.get_s3(bucket)
        what = {"Bucket": bucket, "Key": key, **self._system.req_kw}
        address = await client.generate_presigned_url("get_object", Params=what, ExpiresIn=_VALID)
        if len(self._addresses) >= _MANY:
            self._addresses.clear()
        self._addresses[path] = now, address
        return address
