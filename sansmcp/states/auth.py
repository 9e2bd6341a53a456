"""The table of authorization."""

from __future__ import annotations

from enum import auto
from typing import Final

from .machine import Symbol, Table

# Authorization: one attempt to come by a token -----------------------------------------------------


class AuthorizationState(Symbol):
    IDLE = auto()
    RESOURCE = auto()
    """The server is asked by whom one is authorized."""
    SERVER = auto()
    """The authorization server is asked what it can do."""
    REDIRECT = auto()
    """The application is asked where the browser is to arrive."""
    REGISTERING = auto()
    """This client makes itself known."""
    USER = auto()
    """The user logs in."""
    TOKEN = auto()
    """The token is asked for."""
    GRANTED = auto()
    FAILED = auto()


class AuthorizationInput(Symbol):
    ASK_RESOURCE = auto()
    ASK_SERVER = auto()
    ASK_REDIRECT = auto()
    REGISTER = auto()
    ASK_USER = auto()
    ASK_TOKEN = auto()
    GRANT = auto()
    FAIL = auto()


AUTHORIZATION: Final = Table(
    "authorization",
    AuthorizationState.IDLE,
    {
        AuthorizationState.IDLE: {
            AuthorizationInput.ASK_RESOURCE: AuthorizationState.RESOURCE,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.RESOURCE: {
            AuthorizationInput.ASK_RESOURCE: AuthorizationState.RESOURCE,
            AuthorizationInput.ASK_SERVER: AuthorizationState.SERVER,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.SERVER: {
            AuthorizationInput.ASK_SERVER: AuthorizationState.SERVER,
            AuthorizationInput.ASK_REDIRECT: AuthorizationState.REDIRECT,
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            AuthorizationInput.GRANT: AuthorizationState.GRANTED,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.REDIRECT: {
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.REGISTERING: {
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.USER: {
            # This client is known for fewer rights than are asked for.
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.TOKEN: {
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            # A token could not be renewed: then the user is asked.
            AuthorizationInput.ASK_REDIRECT: AuthorizationState.REDIRECT,
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.GRANT: AuthorizationState.GRANTED,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.GRANTED: {},
        AuthorizationState.FAILED: {},
    },
)


__all__ = ["AUTHORIZATION", "AuthorizationInput", "AuthorizationState"]
