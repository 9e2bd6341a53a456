"""sansmcp as a web application: an `App` under the servers and in the frameworks of ASGI and of WSGI.

    application = sansmcp_asgi.asgi_app(app)  # uvicorn, hypercorn; Starlette, FastAPI
    application = sansmcp_asgi.wsgi_app(app)  # gunicorn, waitress; Flask, Django

The one runs on asyncio and on trio, whichever the server does, the other without a loop. Each name is
loaded when it is first used.
"""

from typing import TYPE_CHECKING

from sansmcp_shared.lazy import lazily

if TYPE_CHECKING:
    from ._app import AsgiApp, asgi_app
    from ._serving import AsgiOptions
    from ._wsgi import WsgiApp, WsgiOptions, wsgi_app

__all__ = ["AsgiApp", "AsgiOptions", "WsgiApp", "WsgiOptions", "asgi_app", "wsgi_app"]

if not TYPE_CHECKING:  # a type checker would believe every name
    __getattr__, __dir__ = lazily(
        globals(),
        {
            "._app": "AsgiApp asgi_app",
            "._serving": "AsgiOptions",
            "._wsgi": "WsgiApp WsgiOptions wsgi_app",
        },
    )
