"""``sansmcp bridge``: serve a server of one era to clients of the other."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sansmcp.bridge import EVERYTHING, Bridge
from sansmcp.context import Answers
from sansmcp.events import Event, SessionEnded

from .commands import no_more
from .failures import NO_CONNECTION, CommandError
from .session import run
from .settings import Settings
from .targets import Target
from .text import one_line

if TYPE_CHECKING:
    from sansmcp_asyncio import Client
    from sansmcp_shared.pump import OnEvent

    from .listening import Listening

_LAST_ANSWERS: Final = 0.2
"""Seconds for clients to be told that the server is gone."""


class Bridged:
    """The two sides of a bridge, as their bindings see them."""

    capabilities = EVERYTHING

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.gone = asyncio.Event()
        self._tell = tell
        self._bridge: Bridge | None = None
        self._client: Client | None = None
        self._served = False

    def before(self, on_event: OnEvent | None) -> Callable[[Event], None]:
        """Hear what the server says, before `on_event` does."""

        def heard(event: Event) -> None:
            self._from_server(event)
            if on_event is not None:
                on_event(event)

        return heard

    async def serve(self, client: Client, listening: Listening | None) -> None:
        """Pass on until no client is left, or a signal comes. Raises CommandError when the server ends."""
        import sansmcp_asyncio

        self._client = client
        self._bridge = Bridge(client.engine, entropy=os.urandom)
        self._app = self._bridge.app()
        if listening is None:
            if sys.stdin.isatty():
                what = f"{self._app.info.name} is served on standard input and output"
                print(f"sansmcp: {what}; Ctrl-C ends it", file=sys.stderr)
            serving = sansmcp_asyncio.serve_stdio(self._app, on_event=self._from_client)
        else:
            from .listening import serve_at

            serving = serve_at(self._app, listening, on_event=self._from_client)
        tasks = [asyncio.ensure_future(serving), asyncio.ensure_future(self.gone.wait())]
        rest = asyncio.ensure_future(_forget_events(client))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
                return
            await asyncio.sleep(_LAST_ANSWERS)
            raise CommandError(NO_CONNECTION, "server_gone", "the server behind the bridge has ended")
        finally:
            for task in (*tasks, rest):
                task.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await task

    def _from_client(self, event: Event) -> None:
        def take(answers: Answers, now: float) -> None:
            bridge = self._bridge
            assert bridge is not None
            if not self._served:
                self._served = True
                bridge.serve(answers, now=now)
            bridge.from_client(event, now=now)

        self._submit(take)

    def _from_server(self, event: Event) -> None:
        if isinstance(event, SessionEnded):
            self.gone.set()
        bridge = self._bridge
        if bridge is not None and self._served:
            self._submit(lambda answers, now: bridge.from_server(event, now=now))

    def _submit(self, action: Callable[[Answers, float], object]) -> None:
        bridge, client = self._bridge, self._client
        assert bridge is not None
        assert client is not None
        if self._app.submit is not None:
            self._app.submit(action)
        client._pump.soon()
        while (lost := bridge.next_event()) is not None:
            self._tell(f"not translated: {lost.name}: {one_line(lost.detail, 300)}")


async def _forget_events(client: Client) -> None:
    """What belongs to no call was heard already."""
    async for _ in client.events():
        pass


def bridge(target: Target, words: list[str], settings: Settings, listening: Listening | None) -> None:
    """Serve `target` on standard streams or where `listening` says, whichever era each side speaks."""
    no_more(words)

    def tell(text: str) -> None:
        if settings.trace:
            print(f"sansmcp: {text}", file=sys.stderr, flush=True)

    sides: list[Bridged] = []

    async def work(client: Client) -> None:
        await sides[0].serve(client, listening)

    sides.append(Bridged(tell))
    try:
        run(target, settings, work, bridged=sides[0])
    except CommandError as failure:
        if listening is None or failure.kind != "terminated":  # so a server is ended in order
            raise
