"""sansmcp as an ASGI application: an `App` under uvicorn or hypercorn, in Starlette or FastAPI.

    application = sansmcp_asgi.asgi_app(app)

Runs on asyncio and on trio, whichever the server does. Each name is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._app import AsgiApp, asgi_app
    from ._serving import AsgiOptions

__all__ = ["AsgiApp", "AsgiOptions", "asgi_app"]

_HOME_OF: Final = {"AsgiApp": "_app", "AsgiOptions": "_serving", "asgi_app": "_app"}

if not TYPE_CHECKING:  # a type checker would believe every name

    def __getattr__(name: str) -> Any:
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
