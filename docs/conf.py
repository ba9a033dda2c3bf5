"""How Sphinx makes the documentation's site; CONTRIBUTING.md has the command."""

from delegraph import __version__

project = "delegraph"
author = "the authors of delegraph"
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}

html_theme = "furo"
html_title = "delegraph"
html_show_sourcelink = False
html_copy_source = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3  # headings that pages link to, as GitHub names them

default_role = "code"  # one backtick in a docstring
nitpicky = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
autodoc_typehints = "none"  # a docstring says what a parameter takes
