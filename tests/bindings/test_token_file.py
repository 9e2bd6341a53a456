"""Tokens in a file: who can read it, what it takes, and what it does not."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sansmcp import LocalProtocolError
from sansmcp.auth.registration import Registration
from sansmcp.auth.tokens import Tokens
from sansmcp_shared import token_file
from sansmcp_shared.token_file import MAX_SERVERS, FileTokenStore, default_token_file

TOKENS = Tokens(
    access_token="t0ken",
    token_type="bearer",
    issuer="https://a.example",
    resource="https://s.example",
    scopes=("a", "b"),
    expires_at=5.5,
    refresh_token="r3fresh",
    client=Registration(client_id="c", redirect_uri="http://127.0.0.1:1/callback"),
)
CLIENT = Registration(client_id="c", client_secret="s", issuer="https://a.example")


@pytest.mark.req("T9")
def test_a_file_keeps_tokens_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tokens.json"
    store = FileTokenStore(path)
    assert store.tokens("s") is None
    assert not path.exists()
    store.keep_tokens("s", TOKENS)
    store.keep_registration("i", CLIENT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["tokens.json"]
    again = FileTokenStore(path)
    assert (again.tokens("s"), again.registration("i")) == (TOKENS, CLIENT)
    assert again.servers() == ["s"]
    os.chmod(path, 0o644)
    assert again.tokens("s") == TOKENS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again.keep_tokens("s", None)
    again.keep_tokens("s", None)
    again.keep_registration("i", None)
    assert (store.tokens("s"), store.registration("i")) == (None, None)
    assert "t0ken" not in repr(store)


@pytest.mark.req("T9")
@pytest.mark.skipif(sys.platform == "win32", reason="few may make links there")
def test_a_link_leads_to_where_tokens_are_kept(tmp_path: Path) -> None:
    safe, link = tmp_path / "safe" / "tokens.json", tmp_path / "tokens.json"
    link.symlink_to(safe)
    store = FileTokenStore(link)
    for _ in range(2):
        store.keep_tokens("s", TOKENS)
        assert link.is_symlink()
        assert stat.S_IMODE(safe.stat().st_mode) == 0o600
        assert FileTokenStore(link).tokens("s") == TOKENS
    assert sorted(os.listdir(tmp_path)) == ["safe", "tokens.json"]


@pytest.mark.req("T9")
@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", '{"tokens": [], "registrations": {}}', "\0", "[" * 100_000]
)
def test_a_file_of_another_kind_is_refused_and_later_counts_as_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    store = FileTokenStore(path)
    path.write_text(text)
    with pytest.raises(LocalProtocolError, match="no file of tokens"):
        FileTokenStore(path)
    assert store.tokens("s") is None
    store.keep_tokens("s", TOKENS)
    assert FileTokenStore(path).tokens("s") == TOKENS


_KEEPING = """
import sys
from sansmcp.auth.tokens import Tokens
from sansmcp_asyncio import FileTokenStore
path, name = sys.argv[1:]
store = FileTokenStore(path)
for number in range(40):
    tokens = Tokens(access_token=f"t{number}", token_type="bearer", issuer="i", resource="r")
    store.keep_tokens(f"https://{name}{number % 20}.example/", tokens)
"""


@pytest.mark.req("T9")
@pytest.mark.skipif(sys.platform == "win32", reason="who writes is not shut out there")
def test_processes_that_write_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    names = ("a", "b", "c")
    others = [subprocess.Popen([sys.executable, "-c", _KEEPING, str(path), name]) for name in names]
    assert [other.wait(60) for other in others] == [0, 0, 0]
    servers = FileTokenStore(path).servers()
    assert sorted(servers) == sorted(f"https://{name}{n}.example/" for name in names for n in range(20))
    assert os.listdir(tmp_path) == ["tokens.json"]


@pytest.mark.req("T9")
@pytest.mark.skipif(sys.platform == "win32", reason="who writes is not shut out there")
def test_who_hangs_with_the_lock_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(token_file, "LOCK_WAIT", 0.02)
    store = FileTokenStore(tmp_path / "tokens.json")
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        store.keep_tokens("s", TOKENS)
    finally:
        os.close(handle)
    assert store.tokens("s") == TOKENS


@pytest.mark.req("T9")
@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="who may not write there")
def test_a_folder_in_which_nothing_can_be_kept(tmp_path: Path) -> None:
    store = FileTokenStore(tmp_path / "tokens.json")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError):
            store.keep_tokens("s", TOKENS)
        store.keep_tokens("s", None)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "entry",
    [
        '{"access_token": 5}', "{}",
        '{"access_token": "t", "token_type": "b", "issuer": null, "resource": "r"}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "scopes": [1]}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "expires_at": true}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "expires_at": {}}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "client": {}}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "client": "c"}',
        '{"access_token": "t", "token_type": "b", "issuer": {"client_id": "c"}, "resource": "r"}',
    ],
)  # fmt: skip
def test_an_entry_of_another_kind_counts_for_nothing(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(f'{{"tokens": {{"s": {entry}}}, "registrations": {{}}}}')
    assert FileTokenStore(path).tokens("s") is None


def test_the_file_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sansmcp_shared.token_file.MAX_SERVERS", 3)
    store = FileTokenStore(tmp_path / "t")
    for number in range(5):
        store.keep_tokens(str(number), TOKENS)
    assert store.servers() == ["2", "3", "4"]
    assert MAX_SERVERS > 100


def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileTokenStore(tmp_path / "t")
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        store.keep_tokens("s", TOKENS)
    assert os.listdir(tmp_path) == []
    with pytest.raises(LocalProtocolError, match="cannot be read"):
        FileTokenStore(tmp_path)


def test_where_it_is_unless_somewhere_else_is_said() -> None:
    home = Path.home()
    assert default_token_file({}, "linux") == home / ".local/share/sansmcp/tokens.json"
    assert default_token_file({"XDG_DATA_HOME": "/x"}, "linux") == Path("/x/sansmcp/tokens.json")
    assert default_token_file({}, "darwin") == home / "Library/Application Support/sansmcp/tokens.json"
    assert default_token_file({"LOCALAPPDATA": "/y"}, "win32") == Path("/y/sansmcp/tokens.json")
    assert sys.platform
