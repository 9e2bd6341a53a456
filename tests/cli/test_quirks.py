"""``--quirk``: a deviation of a server that a command goes along with, and says so."""

from __future__ import annotations

import pytest

from sansmcp.quirks import QUIRKS

from .bad_http import bad_server
from .run import ERAS, invoke

pytestmark = pytest.mark.req("AA11")


def test_the_list_of_quirks() -> None:
    lines = invoke("quirks").out.splitlines()
    assert lines[0].split(maxsplit=1) == ["QUIRK", "A SERVER WITH IT"]
    told = [line.split(maxsplit=1) for line in lines[1:]]
    assert told == [[quirk.name, quirk.why] for quirk in QUIRKS.values()]
    document = invoke("quirks", "--json").document
    assert document["ok"] is True
    assert [quirk["name"] for quirk in document["result"]["quirks"]] == list(QUIRKS)


def test_a_quirk_that_is_used_is_in_the_trace() -> None:
    with bad_server() as url:
        assert invoke("tools", f"{url}/text", "--mode", "2026-07-28").code == 3
        plain = invoke("tools", f"{url}/text", "--quirk", "json-as-text")
        traced = invoke("tools", f"{url}/text", "--quirk", "json-as-text", "--quirk", "no-cancel", "--trace")
    assert (plain.code, plain.out, plain.err) == (0, "This server offers no tools.\n", "")
    assert traced.code == 0
    assert "· QuirkUsed: json-as-text: " in traced.err
    assert "QuirkUsed: no-cancel" not in traced.err


def test_a_quirk_for_every_kind_of_server() -> None:
    assert invoke("tools", "--quirk", "no-cancel", "--", *ERAS["modern"]).code == 0
