"""Boils the official schemas down to the facts that the tests compare our classes with.

Run it where the schemas are (``../shared/mcp-schema`` beside the checkout, or the directory that the
environment variable SANSMCP_SCHEMA_DIR names)::

    python tests/facts/make.py

It writes ``schema.json`` here: objects by name, inline ones by their path (``Tool.inputSchema``), each
with its members. A member's text is its type, ``!`` in front when it is required. Where revisions
differ, a text per group of revisions takes its place. Definitions that only give a name to a union or a
scalar are written out where they are used. ``methods`` says who sends what.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FACTS = HERE / "schema.json"
REVISIONS = {
    "24": "2024-11-05",
    "03": "2025-03-26",
    "06": "2025-06-18",
    "11": "2025-11-25",
    "26": "2026-07-28",
}
"""What the facts call a revision, and its name. `TASKS` stands beside them: the tasks extension."""

TASKS = "tasks"
NEWEST = "26"

Schema = dict[str, Any]
Objects = dict[str, dict[str, str]]


def schema_dir() -> Path:
    """Where the official schemas would be."""
    named = os.environ.get("SANSMCP_SCHEMA_DIR")
    return Path(named) if named else HERE.parents[2] / "shared" / "mcp-schema"


def load(name: str) -> Schema:
    """Return the definitions of one schema file."""
    whole = json.loads((schema_dir() / f"{name}.schema.json").read_text(encoding="utf-8"))
    found: Schema = whole.get("$defs") or whole["definitions"]
    return found


class Digest:
    """The facts of one schema file."""

    def __init__(self, definitions: Schema) -> None:
        self.definitions = definitions
        self.objects: Objects = {}
        for name, schema in definitions.items():
            self.text(schema, name)

    def text(self, schema: Schema, path: str) -> str:
        """Return the type that `schema` describes; note the members of objects under `path`."""
        if "$ref" in schema:
            return self.reference(schema["$ref"].rsplit("/", 1)[-1])
        if "allOf" in schema:
            schema = self.merged(schema["allOf"])
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return "|".join(sorted(json.dumps(value) for value in schema["enum"]))
        if "anyOf" in schema:
            if all("properties" in part for part in schema["anyOf"]):
                return self.object(self.alternatives(schema["anyOf"]), path)
            parts = {p for part in schema["anyOf"] for p in split(self.text(part, path))}
            return "|".join(sorted(parts))
        kind = schema.get("type")
        if isinstance(kind, list):
            return "|".join(sorted(kind))
        if kind == "array":
            return f"[{self.text(schema['items'], path + '[]')}]"
        if kind == "object":
            return self.object(schema, path)
        return kind or "any"

    def object(self, schema: Schema, path: str) -> str:
        members = schema.get("properties", {})
        if not members:
            values = schema.get("additionalProperties")
            if isinstance(values, dict):
                inner = self.text(values, path + "{}")
                return "object" if inner == "any" else f"map<{inner}>"
            return "object"
        required = schema.get("required", [])
        self.objects[path] = {
            name: ("!" if name in required else "") + self.text(member, f"{path}.{name}")
            for name, member in sorted(members.items())
        }
        return path

    def reference(self, name: str) -> str:
        if name in ("JSONValue", "JSONObject"):
            # They are defined by way of each other.
            return "any" if name == "JSONValue" else "object"
        target = self.definitions[name]
        return name if "properties" in target or "allOf" in target else self.text(target, name)

    def merged(self, parts: list[Schema]) -> Schema:
        """Return one object schema for an intersection; of alternatives inside, all members."""
        members: Schema = {}
        required: list[str] = []
        for part in parts:
            schema = part
            while "$ref" in schema:
                schema = self.definitions[schema["$ref"].rsplit("/", 1)[-1]]
            if "allOf" in schema:
                schema = self.merged(schema["allOf"])
            if "anyOf" in schema:
                schema = self.alternatives(schema["anyOf"])
            members |= schema.get("properties", {})
            required += schema.get("required", [])
        return {"type": "object", "properties": members, "required": required}

    def alternatives(self, parts: list[Schema]) -> Schema:
        members: Schema = {}
        shared: set[str] | None = None
        for part in parts:
            schema = self.merged([part])
            for name, member in schema["properties"].items():
                old = members.get(name, {"anyOf": []})
                members[name] = {"anyOf": [*old["anyOf"], member]}
            required = set(schema["required"])
            shared = required if shared is None else shared & required
        return {"type": "object", "properties": members, "required": sorted(shared or ())}


def split(text: str) -> list[str]:
    """Return the alternatives of a type: what `|` outside of brackets separates."""
    parts = [""]
    depth = 0
    for char in text:
        depth += (char in "[<") - (char in "]>")
        if char == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


SENDERS = {
    "ClientRequest": "client",
    "ClientNotification": "client",
    "ServerRequest": "server",
    "ServerNotification": "server",
    "InputRequest": "embedded",
}


def methods(definitions: Schema, digest: Digest) -> dict[str, dict[str, str]]:
    """Return, per method, by whom it is sent, with which params and answered by what."""
    found: dict[str, dict[str, str]] = {}
    for union, sender in SENDERS.items():
        schema = definitions.get(union)
        if schema is None:
            continue
        for part in schema.get("anyOf", [schema]):
            name = part["$ref"].rsplit("/", 1)[-1] if "$ref" in part else union
            members = digest.objects[name]
            row = found.setdefault(json.loads(members["method"].removeprefix("!")), {})
            row["by"] = " ".join(sorted({*row.get("by", "").split(), sender}))
            row["params"] = members.get("params", "")
            answer = name.removesuffix("Request") + "ResultResponse"
            if answer in digest.objects:
                row["result"] = digest.objects[answer]["result"].removeprefix("!")
    return found


def grouped(per_revision: dict[str, str]) -> str | dict[str, str]:
    """Return one text when all revisions agree, else a text per group of revisions."""
    groups: dict[str, list[str]] = {}
    for revision, text in per_revision.items():
        groups.setdefault(text, []).append(revision)
    if len(groups) == 1:
        return next(iter(groups))
    return {" ".join(revisions): text for text, revisions in groups.items()}


def table(per_revision: dict[str, dict[str, dict[str, str]]]) -> dict[str, Any]:
    """Return rows by name; "in" lists the revisions that have the row."""
    rows: dict[str, Any] = {}
    for name in sorted({name for rows_there in per_revision.values() for name in rows_there}):
        there = {r: rows_there[name] for r, rows_there in per_revision.items() if name in rows_there}
        row: dict[str, Any] = {"in": " ".join(there)}
        for member in sorted({m for members in there.values() for m in members}):
            row[member] = grouped({r: members.get(member, "-") for r, members in there.items()})
        rows[name] = row
    return rows


def spread(rows: dict[str, Any], revision: str) -> dict[str, dict[str, str]]:
    """Return the rows of one revision out of a `table`."""
    found: dict[str, dict[str, str]] = {}
    for name, row in rows.items():
        if revision not in row["in"].split():
            continue
        found[name] = {}
        for member, told in row.items():
            if member == "in":
                continue
            text = (
                told if isinstance(told, str) else next(t for rs, t in told.items() if revision in rs.split())
            )
            if text != "-":
                found[name][member] = text
    return found


def make() -> dict[str, Any]:
    """Return the facts, made from the official schemas."""
    objects: dict[str, Objects] = {}
    names: dict[str, dict[str, dict[str, str]]] = {}
    sent: dict[str, dict[str, dict[str, str]]] = {}
    for revision, name in REVISIONS.items():
        definitions = load(name)
        digest = Digest(definitions)
        objects[revision] = digest.objects
        names[revision] = {n: {} for n in definitions if n not in digest.objects}
        sent[revision] = methods(definitions, digest)
    extension = Digest(load("ext-tasks"))
    # The extension's schema repeats the core's definitions; only its own are of interest.
    core = objects[NEWEST]
    objects[TASKS] = {
        name: members
        for name, members in extension.objects.items()
        if core.get(name) != members and name.split(".")[0] not in names[NEWEST]
    }
    return {
        "objects": table(objects),
        "names": {name: row["in"] for name, row in table(names).items()},
        "methods": table(sent),
    }


def dumps(facts: dict[str, Any]) -> str:
    """Return the text of the facts' file: a row a line."""
    parts = []
    for section, rows in facts.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
        parts.append(f"{json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    if not schema_dir().is_dir():
        sys.exit(f"no schemas in {schema_dir()}")
    FACTS.write_text(dumps(make()), encoding="utf-8")
