"""Layouts: trees of sizes with trees of strides, basis strides included, and their algebra."""

from texpr.layout.basis import Basis, E
from texpr.layout.error import LayoutError
from texpr.layout.layout import Layout
from texpr.layout.slices import ALL
from texpr.layout.swizzle import ComposedLayout, Swizzle
from texpr.layout.table import table

__all__ = ["ALL", "Basis", "ComposedLayout", "E", "Layout", "LayoutError", "Swizzle", "table"]
