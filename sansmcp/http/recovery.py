"""What a client does by itself when a request was lost, and what it leaves to its user.

Specification: 2025-11-25, basic/transports (session management); 2026-07-28,
basic/transports/streamable-http (receiving messages).
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final

import attrs

from ..errors import LocalProtocolError
from ..session.calls import Call
from ..types.methods import Method, spec_for


class EveryTool(Enum):
    """No list of tools, but all of them."""

    EVERY = "every"


EVERY_TOOL: Final = EveryTool.EVERY
"""Every tool of the server may run twice without harm."""


@attrs.frozen(kw_only=True)
class Recovery:
    """Which requests are made again without asking, each at most once.

    Every method of the protocol can be repeated without harm, except ``tools/call``: a tool may do
    something. Methods that the protocol does not have are taken for such as well. A request that most
    likely crossed with the end of an idle connection is sent again by the same rule, whatever else is set.

    Raises LocalProtocolError for a text in the place of a list of names.
    """

    reopen_session: bool = True
    """Whether a session that a legacy server has forgotten is opened anew, and the request that told
    of it repeated in the new one."""
    reissue: bool = False
    """Whether a modern request whose answer was lost with its stream or connection is repeated."""
    tools: Collection[str] | EveryTool = ()
    """Names of tools that may be repeated too, or `EVERY_TOOL`."""
    methods: Collection[str] = ()
    """Methods of your own that may be repeated too."""

    def __attrs_post_init__(self) -> None:
        for name in ("tools", "methods"):
            if isinstance(getattr(self, name), str):  # parts of it would be taken for names
                raise LocalProtocolError(f"{name}: a list of names is needed, not a text")

    def may_repeat(self, call: Call) -> bool:
        """Whether `call` may be made twice."""
        if call.method == Method.CALL_TOOL:
            return isinstance(self.tools, EveryTool) or call.params.get("name") in self.tools
        return self.may_repeat_method(call.method)

    def may_repeat_method(self, method: str) -> bool:
        """Whether a message of `method`, other than ``tools/call``, may be sent twice."""
        return spec_for(method) is not None or method in self.methods
