"""Signatures of an artifact's list of hashes: Ed25519, by the package `cryptography`, which only this file imports.

Hashes show integrity, not authorship: whoever edits a file can also edit its hash.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from texpr.support.diagnostic import TexprError, error
from texpr.support.lazy import resolve

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

LARGEST_KEY = 1 << 16
"""The limit of bytes of a key file."""

_HEAD = b"ed25519 "


def signer(path: Path) -> Callable[[bytes], bytes]:
    """The signing function for the private key in the PEM file `path`; it gives the text of a signature. Raises TexprError
    E0823, E0824."""
    key = _private(_key_bytes(path), path)
    return lambda data: _HEAD + b64encode(key.sign(data)) + b"\n"


def signs(path: Path) -> Callable[[bytes, bytes], bool]:
    """The verifying function for the public key in the PEM file `path`. Raises TexprError E0823, E0824."""
    key = _public(_key_bytes(path), path)

    def holds(signature: bytes, data: bytes) -> bool:
        try:
            raw = b64decode(signature.removeprefix(_HEAD).strip(), validate=True)
            if signature != _HEAD + b64encode(raw) + b"\n":
                return False
            key.verify(raw, data)
        except (ValueError, _found("cryptography.exceptions:InvalidSignature")):
            return False
        return True

    return holds


def _private(data: bytes, path: Path) -> Ed25519PrivateKey:
    load, kind = _found("cryptography.hazmat.primitives.serialization:load_pem_private_key"), f"{_ED}:Ed25519PrivateKey"
    return _loaded(lambda: load(data, None), kind, path, "private")


def _public(data: bytes, path: Path) -> Ed25519PublicKey:
    load, kind = _found("cryptography.hazmat.primitives.serialization:load_pem_public_key"), f"{_ED}:Ed25519PublicKey"
    return _loaded(lambda: load(data), kind, path, "public")


_ED = "cryptography.hazmat.primitives.asymmetric.ed25519"


def _loaded(load: Callable[[], Any], kind: str, path: Path, what: str) -> Any:
    try:
        key = load()
    except (ValueError, TypeError, _found("cryptography.exceptions:UnsupportedAlgorithm")) as reason:
        raise _no_key(path, what, str(reason)) from reason
    if not isinstance(key, _found(kind)):
        raise _no_key(path, what, "it is a key of another kind")
    return key


def _no_key(path: Path, what: str, why: str) -> TexprError:
    help = "openssl genpkey -algorithm ed25519 -out KEY; openssl pkey -in KEY -pubout -out PUB"
    return error("E0823", None, f"{path} has no {what} key of Ed25519, as PEM and without a password: {why}", help=help)


def _key_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_KEY + 1)
    except (OSError, ValueError) as reason:
        raise error("E0823", None, f"the key {path} cannot be read: {reason}") from reason
    if len(data) > LARGEST_KEY:
        raise error("E0823", None, f"{path} is too large for a key")
    return data


def _found(reference: str) -> Any:
    try:
        return resolve(reference)
    except ImportError as reason:
        help = "pip install 'texpr-compiler[sign]'"
        raise error("E0824", None, "signatures need the package `cryptography`, which is not installed", help=help) from reason
