"""sbom.cdx.json: what went into an artifact, as a bill of materials (CycloneDX 1.6, ECMA-424).

It follows from the record and from the bytes of all other files, so that verification derives it again.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping

from texpr.artifact.place import BOM, SIGNATURE, SUMS
from texpr.artifact.record import Recorded

SPECIFICATION = "1.6"

_ITSELF = "artifact"
"""How the artifact is referred to within its bill."""


def print_bom(record: Recorded, files: Mapping[str, bytes]) -> str:
    """The bill: the tools that made the artifact, the libraries that it needs, and the hash of each of `files`, itself and the
    list of hashes excepted."""
    hashes = {path: hashlib.sha256(data).hexdigest() for path, data in files.items() if path not in (BOM, SUMS, SIGNATURE)}
    libraries = [_component("library", each) for each in record.libraries]
    return serial({
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": [_tool("texpr", record.version), *(_tool(*each) for each in sorted(record.tools.items()))]},
            "component": _component("library", f"texpr_{record.name}", _ITSELF) | {"version": record.version},
        },
        "components": [*libraries, *(_file(path, digest) for path, digest in sorted(hashes.items()))],
        "dependencies": [{"ref": _ITSELF, "dependsOn": [each["bom-ref"] for each in libraries]}],
    })  # fmt: skip


def serial(bill: Mapping[str, object]) -> str:
    """The text of a bill, with a serial number that is another one for other contents, and the same for the same."""
    rest = {key: value for key, value in bill.items() if key != "serialNumber"}
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(rest, sort_keys=True))
    return json.dumps({"serialNumber": number.urn, **rest}, indent=1, ensure_ascii=False) + "\n"


def _tool(name: str, version: str) -> dict[str, object]:
    """A compiler by the name that the record has for it, and the first line that it says of its version."""
    return {"type": "application", "name": name, "version": version.partition("\n")[0]}


def _component(kind: str, name: str, ref: str = "") -> dict[str, object]:
    return {"type": kind, "bom-ref": ref or f"{kind}:{name}", "name": name}


def _file(path: str, digest: str) -> dict[str, object]:
    return {**_component("file", path), "hashes": [{"alg": "SHA-256", "content": digest}]}
