"""WSGI applications for servers that import what they serve: alone, in Flask and in Django."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flask
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path
from werkzeug.middleware.dispatcher import DispatcherMiddleware

import sansmcp_asgi

from .wsgi_support import make_app

plain = sansmcp_asgi.wsgi_app(make_app(state_keys=[b"k" * 32]))

in_flask = flask.Flask(__name__)
in_flask.add_url_rule("/hello", view_func=lambda: "hello")
in_flask.wsgi_app = DispatcherMiddleware(in_flask.wsgi_app, {"/mcp": plain})  # type: ignore[method-assign]

settings.configure(ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__, SECRET_KEY="s" * 50)
urlpatterns = [path("hello", lambda request: HttpResponse("hello"))]
_django = get_wsgi_application()


def in_django(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Django, with one path that it does not see."""
    chosen: Any = plain if environ["PATH_INFO"] == "/mcp" else _django
    served: Iterable[bytes] = chosen(environ, start_response)
    return served
