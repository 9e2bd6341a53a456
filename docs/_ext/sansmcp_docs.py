"""Sphinx extension: directives that put what the code says on a page, and links on public names."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import attrs
import docs_data
import docs_drawing
from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import sansmcp

RULE = (
    "After every input or verb: carry out the ops until there is none, take the events until there is none, "
    "then set the timer for `next_timeout()`."
)
"""The one invariant. Written here only; pages get it by the directive `rule`."""


class Generated(SphinxDirective):
    """``generated NAME``: a table of `docs_data.GENERATED`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(docs_data.GENERATED[self.arguments[0]]())


class StateMachine(SphinxDirective):
    """``state-machine NAME``: drawing and tables of one transition table."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        table = docs_data.table_named(self.arguments[0])
        inputs = docs_data.inputs_table(table)
        text = docs_data.transitions_table(table) + (f"\n\n{inputs}" if inputs else "")
        return [_drawing(docs_drawing.state_diagram(table)), *self.parse_text_to_nodes(text)]


class Flow(SphinxDirective):
    """``flow``: the picture of the borders."""

    def run(self) -> list[nodes.Node]:
        return [_drawing(docs_drawing.flow_diagram())]


class Rule(SphinxDirective):
    """``rule``: the invariant, wherever it applies."""

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(f":::{{admonition}} The rule\n:class: important\n{RULE}\n:::")


def _drawing(svg: str) -> nodes.Node:
    return nodes.raw("", f'<div class="drawing">{svg}</div>', format="html")


# links on the names of the package ---------------------------------------------------------------

_NAME = re.compile(r"([A-Za-z_]\w*)((?:\.[A-Za-z_]\w*)*)(\(\))?\Z")


def _public(text: str) -> str | None:
    """The object that a literal names, when it is public."""
    match = _NAME.match(text.removeprefix("sansmcp."))
    if match is None or match.group(1) not in sansmcp.__all__:
        return None
    thing: Any = sansmcp
    for name in (match.group(1) + match.group(2)).split("."):
        thing = getattr(thing, name, None)
    return None if thing is None else f"sansmcp.{match.group(1)}{match.group(2)}"


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Make a link of each literal that names something public."""
    for literal in list(doctree.findall(nodes.literal)):
        parent = literal.parent
        if isinstance(parent, (nodes.title, nodes.reference, pending_xref)):
            continue
        target = _public(literal.astext())
        if target is None:
            continue
        xref = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=False
        )
        xref["refdoc"] = app.env.docname
        parent.replace(literal, xref)
        xref.append(literal)


def resolve_inner(app: Sphinx, env: Any, node: pending_xref, content: nodes.Element) -> nodes.Node | None:
    """Find a name where it is documented: under the package, whatever module defines it."""
    if node.get("refdomain") != "py":
        return None
    name = node["reftarget"].rpartition(".")[2]
    if name not in sansmcp.__all__ or node["reftarget"] == f"sansmcp.{name}":
        return None
    domain = env.get_domain("py")
    made: nodes.Node | None = domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", f"sansmcp.{name}", node, content
    )
    return made


def tidy_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Show defaults of attrs classes by their values, and aliases by their names."""
    if signature is None:
        return signature, returns
    if isinstance(thing, type) and attrs.has(thing):
        for field in attrs.fields(thing):
            shown = "…" if isinstance(field.default, attrs.Factory) else repr(field.default)  # type: ignore[arg-type]
            signature = signature.replace(f"attr_dict[{field.name!r}].default", shown)
    return _ALIAS.sub(r"\1", signature), returns


_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")


class OutputLexer(TextLexer):
    """What a block before it prints: text, checked by the tests."""

    name: ClassVar[str] = "Output"
    aliases: ClassVar[list[str]] = ["output"]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("generated", Generated)
    app.add_directive("state-machine", StateMachine)
    app.add_directive("flow", Flow)
    app.add_directive("rule", Rule)
    app.add_lexer("output", OutputLexer)
    app.connect("doctree-read", link_names)
    app.connect("missing-reference", resolve_inner)
    app.connect("autodoc-process-signature", tidy_signature)
    return {"version": sansmcp.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
