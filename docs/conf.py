"""Sphinx configuration: MyST pages, furo, nothing fetched, every warning an error (``make docs``)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import sansmcp

project = "sansmcp"
author = "the sansmcp authors"
copyright = "the sansmcp authors"
release = version = sansmcp.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sansmcp_docs"]
exclude_patterns = ["_build", "_ext"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
# Shown by their names instead of what they stand for.
autodoc_type_aliases = {
    name: name for name in ("JsonValue", "Timeout", "Mode", "Handler", "OnEvent", "OnWire")
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 130
toc_object_entries = False
add_module_names = False

html_theme = "furo"
html_title = f"sansmcp {release}"
html_static_path = ["_static"]
html_css_files = ["sansmcp.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
