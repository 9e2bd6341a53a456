"""Skills: what a server has for models, and how a client makes sure that it is that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sansmcp import App, LocalProtocolError, Responder
from sansmcp.extensions.skills import (
    MAX_BYTES,
    MAX_FILES,
    SKILLS_EXTENSION,
    FrontmatterError,
    GetSkillResult,
    HeldSkill,
    ListSkillsResult,
    ReadDirectoryResult,
    ServerSkills,
    Skill,
    SkillEntry,
    SkillId,
    SkillRefused,
    client_skills,
    entry_problems,
    get_skill,
    list_skills,
    read_directory,
    read_frontmatter,
)
from sansmcp.extensions.skills.directory import read_skill
from sansmcp.revisions import LATEST
from sansmcp.types import ReadResourceResult
from sansmcp.types.convert import structure

from .support import DISCOVER, client, meta
from .tasks_support import Server

PDF = """---
name: pdf-processing
description: "Extract: fill in, and assemble"
license: MIT
metadata:
  author: bo
  version: 1.5
---

Body.
"""
FILES: dict[str, str | bytes] = {
    "SKILL.md": PDF,
    "references/FORMS.md": "forms",
    "assets/dot.png": b"\x89PNG\xff",
}
ROOT = "skill://acme/pdf-processing"
FRONTMATTER = {
    "name": "pdf-processing",
    "description": "Extract: fill in, and assemble",
    "license": "MIT",
    "metadata": {"author": "bo", "version": 1.5},
}


def plain(name: str) -> Skill:
    return Skill(name, {"SKILL.md": f"---\nname: {name}\ndescription: d\n---\n"})


def served(**options: Any) -> Server:
    skills = ServerSkills(skills=[Skill("acme/pdf-processing", FILES), plain("notes")], **options)
    return Server(App("skills", "1", extensions=[skills]))


def entry_of(skill: Skill, **changes: Any) -> SkillEntry:
    return structure({**skill.entry, **changes}, SkillEntry, LATEST)


# server ------------------------------------------------------------------------------------------


@pytest.mark.req("X10", "X1")
def test_skills_are_listed_and_read() -> None:
    server = served()
    discovered = server.result("server/discover", capabilities={})["capabilities"]
    assert discovered["extensions"] == {SKILLS_EXTENSION: {"directoryRead": True}}
    assert "resources" in discovered
    listed = server.result("skills/list", capabilities={})
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
    first = listed["skills"][0]
    assert first["uri"] == f"{ROOT}/SKILL.md"
    assert first["frontmatter"] == FRONTMATTER
    assert {r["uri"] for r in first["resources"]} == {f"{ROOT}/{name}" for name in FILES}
    got = server.result("skills/get", {"uri": first["uri"]})
    assert got["skill"] == first
    assert "nextCursor" not in got
    for file in first["resources"]:
        result = server.result("resources/read", {"uri": file["uri"]})
        held = HeldSkill("here", structure(first, SkillEntry, LATEST))
        assert len(held.take(file["uri"], structure(result, ReadResourceResult, LATEST))) == file["size"]
    resources = {r["uri"]: r for r in server.result("resources/list")["resources"]}
    assert resources[first["uri"]]["name"] == "pdf-processing"
    assert resources[first["uri"]]["description"] == FRONTMATTER["description"]
    assert resources[first["uri"]]["mimeType"] == "text/markdown"
    assert resources[f"{ROOT}/assets/dot.png"]["mimeType"] == "image/png"


@pytest.mark.req("X10")
def test_pages() -> None:
    server = served(page_size=1)
    first = server.result("skills/list")
    second = server.result("skills/list", {"cursor": first["nextCursor"]})
    assert [s["frontmatter"]["name"] for p in (first, second) for s in p["skills"]] == [
        "pdf-processing",
        "notes",
    ]
    assert "nextCursor" not in second
    assert server.code("skills/list", {"cursor": "odd"}) == -32602


@pytest.mark.req("X10")
@pytest.mark.parametrize("slash", ["", "/"])
def test_directories(slash: str) -> None:
    server = served()
    inside = server.result("resources/directory/read", {"uri": ROOT + slash})["resources"]
    assert {r["name"]: r["mimeType"] for r in inside} == {
        "SKILL.md": "text/markdown",
        "references": "inode/directory",
        "assets": "inode/directory",
    }
    above = server.result("resources/directory/read", {"uri": "skill://acme"})["resources"]
    assert above == [{"uri": ROOT, "name": "pdf-processing", "mimeType": "inode/directory"}]
    for uri in (f"{ROOT}/SKILL.md", "skill://none", "file:///", 1, None):
        assert server.code("resources/directory/read", {"uri": uri}) == -32602
    closed = served(directory_read=False)
    assert closed.code("resources/directory/read", {"uri": ROOT}) == -32601
    assert closed.result("server/discover")["capabilities"]["extensions"] == {SKILLS_EXTENSION: {}}


@pytest.mark.req("X10")
@pytest.mark.parametrize("uri", ["skill://none/SKILL.md", ROOT, 1, None])
def test_an_unknown_skill(uri: Any) -> None:
    assert served().code("skills/get", {"uri": uri}) == -32602


@pytest.mark.req("X10")
def test_skills_can_be_added_later_and_once() -> None:
    skills = ServerSkills()
    with pytest.raises(LocalProtocolError, match="an App first"):
        skills.add(plain("a"))
    server = Server(App("x", extensions=[skills]))
    skills.add(plain("a"))
    with pytest.raises(LocalProtocolError, match="there already"):
        skills.add(plain("a"))
    assert len(server.result("skills/list")["skills"]) == 1
    with pytest.raises(LocalProtocolError, match="another App"):
        App("y", extensions=[skills])
    with pytest.raises(LocalProtocolError, match="page_size"):
        ServerSkills(page_size=0)


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    ("path", "files", "text"),
    [
        ("a", {}, "no SKILL.md"),
        ("a", {"SKILL.md": "no head"}, "does not begin with ---"),
        ("a", {"SKILL.md": b"\xff"}, "utf-8"),
        ("a", {"SKILL.md": "---\nname: b\ndescription: d\n---\n"}, "not called as the skill"),
        ("a", {"SKILL.md": "---\nname: a\n---\n"}, "no description"),
        ("A", {"SKILL.md": "---\nname: A\ndescription: d\n---\n"}, "1 to 64"),
        ("a", {"SKILL.md": "---\nname: a\ndescription: d\n---\n", "../b": ""}, "outside"),
        (
            "a",
            {"SKILL.md": "---\nname: a\ndescription: d\n---\n", **{str(n): "" for n in range(MAX_FILES)}},
            "more than 512 files",
        ),
        ("a", {"SKILL.md": "---\nname: a\ndescription: d\n---\n", "b": bytes(MAX_BYTES)}, "bytes"),
    ],
)
def test_what_is_no_skill(path: str, files: dict[str, str | bytes], text: str) -> None:
    with pytest.raises(LocalProtocolError, match=text):
        Skill(path, files)


@pytest.mark.req("X10", "X11")
def test_files_may_be_called_what_a_uri_cannot_hold() -> None:
    names = ["a b.txt", "{x}.txt", "50%.txt", "what?.txt", "one#two.txt", "ü.txt", "in dir/%41"]
    head = "---\nname: a\ndescription: d\n---\n"
    skill = Skill("a", {"SKILL.md": head, **dict.fromkeys(names, "text")})
    app = App("s", extensions=[ServerSkills(skills=[skill])])
    assert "skill://a/%7Bx%7D.txt" in skill.files
    held = HeldSkill("s", entry_of(skill))
    server = Responder(app)
    for uri in skill.files:
        assert uri.isascii()
        params = {"uri": uri, "_meta": meta()}
        reply = server.handle({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params})
        assert isinstance(reply, dict)
        held.take(uri, structure(reply["result"], ReadResourceResult, LATEST))
    params = {"_meta": meta()}
    reply = server.handle({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": params})
    assert isinstance(reply, dict)
    assert {*names, "a"} == {resource["name"] for resource in reply["result"]["resources"]}


@pytest.mark.req("X10", "X11")
def test_a_skill_from_a_directory(tmp_path: Path) -> None:
    root = tmp_path / "pdf-processing"
    for name, data in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("hidden")
    (tmp_path / "secret").write_text("outside")
    (root / "link").symlink_to(tmp_path / "secret")
    skill = read_skill(root, "acme/pdf-processing")
    assert {u.removeprefix(f"{ROOT}/") for u in skill.files} == set(FILES)
    assert read_skill(root).uri == "skill://pdf-processing/SKILL.md"
    for number in range(MAX_FILES):
        (root / str(number)).write_text("")
    with pytest.raises(LocalProtocolError, match="more than 512"):
        read_skill(root)


# client ------------------------------------------------------------------------------------------


@pytest.mark.req("X10")
def test_verbs() -> None:
    driver = client(extensions=[client_skills()])
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply({**DISCOVER, "capabilities": {"extensions": {SKILLS_EXTENSION: {}}}})
    entry = plain("a").entry
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    for verb, arguments, body, kind in (
        (list_skills, (), {"skills": [entry]}, ListSkillsResult),
        (list_skills, ("c",), {"skills": [entry]}, ListSkillsResult),
        (get_skill, ("skill://a/SKILL.md",), {"skill": entry}, GetSkillResult),
        (read_directory, ("skill://a",), {"resources": []}, ReadDirectoryResult),
        (read_directory, ("skill://a", "c"), {"resources": []}, ReadDirectoryResult),
    ):
        verb(driver.engine, *arguments, now=0.0)
        driver.drain()
        driver.reply({**hints, **body})
        assert isinstance(driver.said[-1].result, kind)  # type: ignore[attr-defined]
    assert driver.last["params"]["cursor"] == "c"


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"uri": "https://a/SKILL.md"}, "skill://"),
        ({"uri": "skill://a/b.md"}, "skill://"),
        ({"frontmatter": {"name": "b", "description": "d"}}, "not called"),
        ({"frontmatter": {"description": "d"}}, "1 to 64"),
        *(
            ({"frontmatter": {"name": name, "description": "d"}}, "1 to 64")
            for name in ("A", "-a", "a-", "a--b", "a" * 65, "", "a\n", 1)
        ),
        ({"frontmatter": {"name": "a"}}, "no description"),
        ({"resources": []}, "do not include"),
        ({"resources": "odd"}, "neither a list"),
    ],
)
def test_an_entry_that_is_none(changes: dict[str, Any], text: str) -> None:
    entry = entry_of(plain("a"), **changes)
    assert any(text in problem for problem in entry_problems(entry))
    with pytest.raises(SkillRefused, match=r"a skill of s"):
        HeldSkill("s", entry)


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ({"uri": "skill://a/SKILL.md"}, "twice"),
        ({"uri": "skill://b/x"}, "outside"),
        ({"uri": "skill://a/../b"}, "outside"),
        ({"uri": "skill://a/%2e%2E/b"}, "outside"),
        ({"uri": "skill://a/x%2F..%2fb"}, "outside"),
        ({"uri": "skill://a/x%5C..%5cb"}, "outside"),
        ({"uri": "skill://a/x%00b"}, "outside"),
        ({"digest": "sha256:" + "A" * 64}, "digest"),
        ({"digest": "md5:1"}, "digest"),
        ({"size": -1}, "negative"),
        ({"size": MAX_BYTES + 1}, "bytes"),
    ],
)
def test_a_file_of_an_entry_that_is_none(file: dict[str, Any], text: str) -> None:
    skill = plain("a")
    more = {"uri": "skill://a/x", "digest": "sha256:" + "0" * 64, "size": 1, **file}
    entry = entry_of(skill, resources=[*skill.entry["resources"], more])
    assert any(text in problem for problem in entry_problems(entry))


@pytest.mark.req("X11")
def test_each_read_is_verified() -> None:
    skill = Skill("acme/pdf-processing", FILES)
    held = HeldSkill("s", entry_of(skill))
    assert held.id == SkillId("s", skill.uri) != SkillId("t", skill.uri)
    good = skill.files[skill.uri]
    assert held.take(skill.uri, good) == good
    for uri, data, text in (
        (skill.uri, good.replace(b"Body", b"Evil"), "digest"),
        (skill.uri, good + b"x", "bytes"),
        (f"{ROOT}/other", b"", "does not list"),
        ("file:///etc/passwd", b"", "does not list"),
    ):
        with pytest.raises(SkillRefused, match=text) as caught:
            held.take(uri, data)
        assert "Evil" not in str(caught.value)


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"name": "a", "description": "other"}, "description"),
        ({"name": "a", "description": "d", "license": "MIT"}, "license"),
        ({"name": "a", "description": "d", "metadata": {"n": True}}, "metadata"),
    ],
)
def test_the_head_is_compared_member_by_member(told: dict[str, Any], text: str) -> None:
    head = (
        "---\nname: a\ndescription: d\nmetadata:\n  n: 1\n---\n" if "metadata" in told else plain("a").files
    )
    skill = Skill("a", {"SKILL.md": head}) if isinstance(head, str) else plain("a")
    held = HeldSkill("s", entry_of(skill, frontmatter=told))
    with pytest.raises(SkillRefused, match=text):
        held.take(skill.uri, skill.files[skill.uri])


@pytest.mark.req("X11")
def test_dynamic_files_stay_within_bounds() -> None:
    skill = plain("a")
    held = HeldSkill("s", entry_of(skill, resources="dynamic"))
    assert held.take("skill://a/any", b"1") == b"1"
    with pytest.raises(SkillRefused, match="does not list"):
        held.check_uri("skill://b/any")
    with pytest.raises(SkillRefused, match="head"):
        held.take(skill.uri, b"other")
    with pytest.raises(SkillRefused, match="more than"):
        held.take("skill://a/big", bytes(MAX_BYTES))


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    "contents",
    [
        [],
        [{"uri": "skill://a/x", "text": ""}] * 2,
        [{"uri": "skill://a/y", "text": ""}],
        [{"uri": "skill://a/x", "blob": "?"}],
        [{"uri": "skill://a/x", "blob": "\u00e9"}],
    ],
)
def test_a_read_that_gives_something_else(contents: list[Any]) -> None:
    held = HeldSkill("s", entry_of(plain("a"), resources="dynamic"))
    body = {"resultType": "complete", "contents": contents, "ttlMs": 0, "cacheScope": "private"}
    with pytest.raises(SkillRefused):
        held.take("skill://a/x", structure(body, ReadResourceResult, LATEST))


# the head ----------------------------------------------------------------------------------------


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("a: b", {"a": "b"}),
        ("a: b, c: d".replace(": d", ";d"), {"a": "b, c;d"}),
        ("a: 'it''s'", {"a": "it's"}),
        ('a: "x: \\"y\\""', {"a": 'x: "y"'}),
        ("a: 1\nb: -2.5\nc: true\nd: ~\ne:", {"a": 1, "b": -2.5, "c": True, "d": None, "e": None}),
        ("a: 007\nb: 1.2.3\nc: http://x", {"a": 7, "b": "1.2.3", "c": "http://x"}),
        ("m:\n  x: 1\n  y: z\nn: 2", {"m": {"x": 1, "y": "z"}, "n": 2}),
        ("\na: b  \n\n", {"a": "b"}),
    ],
)
def test_heads(lines: str, value: dict[str, Any]) -> None:
    for newline in ("\n", "\r\n"):
        text = f"---\n{lines}\n---\nbody: [".replace("\n", newline)
        assert read_frontmatter(text) == value
        assert read_frontmatter("\ufeff" + text) == value


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("a: [b]", "lists in brackets"),
        ("a: {b: c}", "maps in braces"),
        ("a: |\n  b", "several lines"),
        ("a: >\n  b", "several lines"),
        ("a: &x b", "anchors"),
        ("a: *x", "aliases"),
        ("a: !!str b", "tags"),
        ("a: b # c", "comments"),
        ("a: b: c", "a colon"),
        ("- a", "lists"),
        ("a:\n- b", "lists"),
        ("just text", "anything but"),
        ("a: 'b", "does not end"),
        ('a: "b', "does not end"),
        ('a: "b" c', "does not end"),
        ("a: 1\na: 2", "twice"),
        ("a: 1\n  b: 2", "indent"),
        ("a:\n  b: 1\n    c: 2", "indent"),
        ("  a: 1", "indent"),
        ("\ta: 1", "anything but"),
        ("a: b\rc: d", "odd end"),
        ("a: b\u2028c: d", "odd end"),
        ("a: " + "1" * 5000, "digits"),
        ("a: 1e999", "so large"),
    ],
)
def test_heads_that_are_not_read(lines: str, text: str) -> None:
    with pytest.raises(FrontmatterError, match=text):
        read_frontmatter(f"---\n{lines}\n---\n")


@pytest.mark.req("X11")
@pytest.mark.parametrize(
    "text", ["", "a: b", "---", "---\na: b", " ---\na: b\n---", "---\n" + "a: b\n" * 2000]
)
def test_texts_without_a_head(text: str) -> None:
    with pytest.raises(FrontmatterError):
        read_frontmatter(text)
