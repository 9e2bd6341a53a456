"""What an application can ask of a server: the one list of verbs.

Knows no event loop. A binding derives its client from `Verbs` and says how a call is waited for and
how a verb without an answer is carried out; whoever has no ``await`` derives from the text of this
file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from sansmcp.client import DEFAULT, ClientEngine, Timeout
from sansmcp.errors import McpError
from sansmcp.session.calls import Call, IncomingRequest
from sansmcp.session.rounds import Answer, Round
from sansmcp.session.suspended import SuspendedCall
from sansmcp.wire.jsoncodec import JsonValue

from .options import ListOptions, Options

if TYPE_CHECKING:
    from sansmcp.types.completion import CompleteResult, Reference
    from sansmcp.types.lifecycle import DiscoverResult
    from sansmcp.types.prompts import GetPromptResult, ListPromptsResult
    from sansmcp.types.resources import (
        ListResourcesResult,
        ListResourceTemplatesResult,
        ReadResourceResult,
    )
    from sansmcp.types.tools import CallToolResult, ListToolsResult


class Verbs(ABC):
    """The verbs of a connected client.

    Each returns the result as the class its method prescribes. Each raises what went wrong:

    * `McpError`: the server answered with an error;
    * `CallFailure`: no answer came; `CallTimeout` and `ConnectionEnded` are kinds of it;
    * `RemoteProtocolError`: the answer does not have the shape that is prescribed for it;
    * `LocalProtocolError`: the revision spoken has no such thing, or the server does not declare it;
      nothing was sent.

    A tool that failed is no error here: see `CallToolResult.is_error`. Options are in `Options`.
    """

    _engine: ClientEngine

    @abstractmethod
    async def _call(self, verb: Callable[..., Call], *arguments: Any, **options: Any) -> Any:
        """Start a call with `verb`, wait for its end, return its result or raise its error."""

    @abstractmethod
    async def _do(self, verb: Callable[..., Any], *arguments: Any) -> Any:
        """Carry out a verb that no answer belongs to."""

    # tools ---------------------------------------------------------------------------------------

    async def call_tool(
        self, name: str, arguments: Mapping[str, JsonValue] | None = None, **options: Unpack[Options]
    ) -> CallToolResult:
        """Run a tool."""
        result: CallToolResult = await self._call(self._engine.call_tool, name, arguments, **options)
        return result

    async def list_tools(self, **options: Unpack[ListOptions]) -> ListToolsResult:
        """All tools, read page by page."""
        result: ListToolsResult = await self._call(self._engine.list_all_tools, **options)
        return result

    async def list_tools_page(self, cursor: str | None = None, **options: Unpack[Options]) -> ListToolsResult:
        """One page of the tools: the first, or the one that a page before it named."""
        result: ListToolsResult = await self._call(self._engine.list_tools, cursor, **options)
        return result

    # resources -----------------------------------------------------------------------------------

    async def list_resources(self, **options: Unpack[ListOptions]) -> ListResourcesResult:
        """All resources, read page by page."""
        result: ListResourcesResult = await self._call(self._engine.list_all_resources, **options)
        return result

    async def list_resources_page(
        self, cursor: str | None = None, **options: Unpack[Options]
    ) -> ListResourcesResult:
        """One page of the resources."""
        result: ListResourcesResult = await self._call(self._engine.list_resources, cursor, **options)
        return result

    async def list_resource_templates(self, **options: Unpack[ListOptions]) -> ListResourceTemplatesResult:
        """All resource templates, read page by page."""
        result: ListResourceTemplatesResult = await self._call(
            self._engine.list_all_resource_templates, **options
        )
        return result

    async def list_resource_templates_page(
        self, cursor: str | None = None, **options: Unpack[Options]
    ) -> ListResourceTemplatesResult:
        """One page of the resource templates."""
        result: ListResourceTemplatesResult = await self._call(
            self._engine.list_resource_templates, cursor, **options
        )
        return result

    async def read_resource(self, uri: str, **options: Unpack[Options]) -> ReadResourceResult:
        """Read a resource."""
        result: ReadResourceResult = await self._call(self._engine.read_resource, uri, **options)
        return result

    # prompts -------------------------------------------------------------------------------------

    async def list_prompts(self, **options: Unpack[ListOptions]) -> ListPromptsResult:
        """All prompts, read page by page."""
        result: ListPromptsResult = await self._call(self._engine.list_all_prompts, **options)
        return result

    async def list_prompts_page(
        self, cursor: str | None = None, **options: Unpack[Options]
    ) -> ListPromptsResult:
        """One page of the prompts."""
        result: ListPromptsResult = await self._call(self._engine.list_prompts, cursor, **options)
        return result

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[Options]
    ) -> GetPromptResult:
        """Fill in a prompt."""
        result: GetPromptResult = await self._call(self._engine.get_prompt, name, arguments, **options)
        return result

    async def complete(
        self,
        ref: Reference | Mapping[str, JsonValue],
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        **options: Unpack[Options],
    ) -> CompleteResult:
        """Completions for the argument of a prompt or of a resource template.

        `ref` is a `PromptReference` or a `ResourceTemplateReference`, or one as JSON: ``{"type":
        "ref/prompt", "name": …}``, ``{"type": "ref/resource", "uri": …}``. `context` holds the arguments
        chosen before (from 2025-06-18 on).
        """
        more: dict[str, Any] = {} if context is None else {"context": context}
        result: CompleteResult = await self._call(
            self._engine.complete, ref, argument, value, **more, **options
        )
        return result

    # the connection ------------------------------------------------------------------------------

    async def discover(self, **options: Unpack[Options]) -> DiscoverResult:
        """Ask for versions and capabilities again (from 2026-07-28 on)."""
        result: DiscoverResult = await self._call(self._engine.discover, **options)
        return result

    async def ping(self, timeout: Timeout = DEFAULT) -> None:  # noqa: ASYNC109  (the engine's deadline)
        """Return when the server answers (up to 2025-11-25). `timeout` is **10 s** unless given."""
        await self._call(self._engine.ping, timeout=timeout)

    async def set_log_level(self, level: str, **options: Unpack[Options]) -> None:
        """Set the least severe level the server logs (up to 2025-11-25)."""
        await self._call(self._engine.set_log_level, level, **options)

    async def subscribe_resource(self, uri: str, **options: Unpack[Options]) -> None:
        """Be told of changes of a resource among the events (up to 2025-11-25); `listen` works with all."""
        await self._call(self._engine.subscribe_resource, uri, **options)

    async def unsubscribe_resource(self, uri: str, **options: Unpack[Options]) -> None:
        """Undo `subscribe_resource` (up to 2025-11-25)."""
        await self._call(self._engine.unsubscribe_resource, uri, **options)

    # anything else -------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, JsonValue] | None = None,
        **options: Unpack[Options],
    ) -> Any:
        """Ask for any method. The result is its class, or the JSON object for a method of your own."""
        return await self._call(self._engine.request, method, params, **options)

    async def use(self, verb: Callable[..., Call], *arguments: Any, **options: Any) -> Any:
        """Use a verb of an extension: a function of the engine, as in ``client.use(get_task, task_id)``."""
        return await self._call(partial(verb, self._engine), *arguments, **options)

    async def notify(self, method: str, params: Mapping[str, JsonValue] | None = None) -> None:
        """Send a notification."""
        await self._do(self._engine.notify, method, params)

    async def provide_input(
        self, where: Round | Call, answers: Mapping[str, Answer], *, apply_defaults: bool = False
    ) -> bool:
        """Answer what an `InputRequired` event asks; see `ClientEngine.provide_input`.

        For clients without callbacks for it. False when nobody waits for the answers any more.
        """
        verb = partial(self._engine.provide_input, apply_defaults=apply_defaults)
        return bool(await self._do(verb, where, answers))

    async def refuse_input(self, where: Round | Call, error: McpError) -> bool:
        """Refuse what an `InputRequired` event asks. False when nobody waits for answers any more."""
        return bool(await self._do(self._engine.refuse_input, where, error))

    async def suspend(self, call: Call) -> SuspendedCall:
        """Put aside a call that waits for answers; whoever waits for it gets `CallSuspended`."""
        suspended: SuspendedCall = await self._do(self._engine.suspend, call)
        return suspended

    async def resume(self, suspended: Mapping[str, JsonValue]) -> Any:
        """Take up a call that was suspended, here or elsewhere, and wait for its result."""
        return await self._call(self._engine.resume, suspended)

    async def respond(self, request: IncomingRequest, result: Any) -> bool:
        """Answer what a `RequestReceived` event asks. False when the server no longer wants it."""
        return bool(await self._do(self._engine.respond, request, result))

    async def respond_error(self, request: IncomingRequest, error: McpError) -> bool:
        """Refuse what a `RequestReceived` event asks. False when the server no longer wants it."""
        return bool(await self._do(self._engine.respond_error, request, error))
