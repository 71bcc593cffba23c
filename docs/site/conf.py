"""Settings of the documentation site; ``scripts/docs/site.py`` builds it."""

from __future__ import annotations

import importlib.metadata
import re
from typing import Any

project = "openmxu"
author = "The openmxu developers"
copyright = author
version = release = importlib.metadata.version("openmxu")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

smartquotes = False  # they would make one dash of the two of an option

html_theme = "furo"
html_title = f"openmxu {version}"
html_copy_source = False
html_show_sourcelink = False

# Headings get the anchors that GitHub gives them, so that a link within a document works in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Members"]

# Blocks that are text for people rather than of a language that Pygments knows.
highlight_language = "none"

# Docstrings name fields and parameters, whose names several classes have.
suppress_warnings = ["ref.python"]


def _as_text(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Make the stars of shapes, as in (batch, *shape), characters; drop what data without a text has from its type."""
    if what == "data" and getattr(value, "__doc__", None) == type(value).__doc__ and lines:
        inherited = (type(value).__doc__ or "").splitlines()
        if inherited and lines[0].strip() == inherited[0].strip():
            lines.clear()
    lines[:] = [re.sub(r"(?<![`*\\\w])\*(?=\w[^*]*$)", r"\*", line) for line in lines]


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _as_text)
