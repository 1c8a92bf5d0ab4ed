"""How `make docs` builds the site of these documents, from `docs`, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from texpr import __version__  # noqa: E402

project = "texpr"
author = "the authors of texpr"
copyright = "the authors of texpr"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "texpr_site"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]

myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"texpr {__version__}"
html_static_path = ["static"]
html_css_files = ["texpr.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_last_updated_fmt = None
autodoc_preserve_defaults = True
default_role = "code"
