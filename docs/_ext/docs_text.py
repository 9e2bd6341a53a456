"""Markdown out of Python: tables, and what the docstrings of a class say."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def prose(docstring: str | None) -> str:
    """A docstring on one line; its literals are those of Markdown."""
    text = " ".join((docstring or "").split())
    return re.sub(r"``([^`]+)``", r"`\1`", text)


def first_sentence(docstring: str | None) -> str:
    text = prose(docstring)
    match = re.match(r".*?[.:](?= [A-Z`(]|$)", text)
    return (match.group(0) if match else text).rstrip(":")


def attribute_docs(cls: type[Any]) -> dict[str, str]:
    """The docstring under each attribute of a class, by the attribute's name, in order."""
    docs: dict[str, str] = {}
    name = None
    for node in _class_body(cls):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name is not None:
            if isinstance(node.value.value, str):
                docs[name] = prose(node.value.value)
            name = None
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            docs[name] = ""
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            docs[name] = ""
        else:
            name = None
    return docs


def _class_body(cls: type[Any]) -> list[ast.stmt]:
    module = ast.parse(Path(inspect.getfile(cls)).read_text("utf-8"))
    found = next(n for n in module.body if isinstance(n, ast.ClassDef) and n.name == cls.__name__)
    return found.body


def summary(cls: type[Any]) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return prose((inspect.getdoc(cls) or "").split("\n\n", 1)[0])
