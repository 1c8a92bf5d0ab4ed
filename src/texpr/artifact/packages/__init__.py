"""What an artifact is for each backend, one file each: parts in; sources, compiled files, and what headers say out."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.artifact.packages.cpu import PACKAGE as CPU
from texpr.artifact.packages.cuda import PACKAGE as CUDA
from texpr.artifact.packages.package import Package
from texpr.artifact.texts.sources import Part, backend_of

PACKAGES = {package.platform.name: package for package in (CPU, CUDA)}
"""The packages by the name of their backend, `Target.backend`."""


def package_for(targets: Sequence[str]) -> Package:
    """The package for some targets. Raises `TexprError` E0805 for a mixture, E0806 for none."""
    return PACKAGES[backend_of(targets)]


def package_of(parts: Sequence[Part]) -> Package:
    """The package of `parts`. Raises `TexprError` E0806 where there is nothing to build, otherwise as `package_for`."""
    return package_for([part.target for part in parts] if parts and parts[0].plans else [])
