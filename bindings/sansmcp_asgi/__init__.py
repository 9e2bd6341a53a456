"""sansmcp as a web application: an `App` under the servers and in the frameworks of ASGI and of WSGI.

    application = sansmcp_asgi.asgi_app(app)  # uvicorn, hypercorn; Starlette, FastAPI
    application = sansmcp_asgi.wsgi_app(app)  # gunicorn, waitress; Flask, Django

The one runs on asyncio and on trio, whichever the server does, the other without a loop. Each name is
loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._app import AsgiApp, asgi_app
    from ._serving import AsgiOptions
    from ._wsgi import WsgiApp, WsgiOptions, wsgi_app

__all__ = ["AsgiApp", "AsgiOptions", "WsgiApp", "WsgiOptions", "asgi_app", "wsgi_app"]

_HOME_OF: Final = {
    "AsgiApp": "_app",
    "AsgiOptions": "_serving",
    "WsgiApp": "_wsgi",
    "WsgiOptions": "_wsgi",
    "asgi_app": "_app",
    "wsgi_app": "_wsgi",
}

if not TYPE_CHECKING:  # a type checker would believe every name

    def __getattr__(name: str) -> Any:
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
