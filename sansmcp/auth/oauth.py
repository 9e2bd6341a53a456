"""What a client is told about authorization: the one object that its user fills in.

Specification: 2026-07-28, basic/authorization.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from ..errors import LocalProtocolError
from .addresses import DEFAULT_ADDRESSES, AddressPolicy
from .clients import ClientAuthentication
from .flow import Flow
from .grants import AuthorizationCode
from .registration import ApplicationType, Registration, check_metadata_url, check_redirect
from .steps import Steps
from .tokens import MemoryTokenStore, Tokens, TokenStore

if TYPE_CHECKING:
    from .dpop import ProofKey


def _names(scopes: Iterable[str]) -> tuple[str, ...]:
    if isinstance(scopes, str):
        raise LocalProtocolError("scopes must be names, not one text")
    return tuple(scopes)


class Grant(Protocol):
    """A way to come by a token, once it is known who gives them."""

    def obtain(self, flow: Flow) -> Steps[Tokens]:
        """Come by a token; raises `AuthorizationFailed` where there is none. See `Flow`."""
        ...


@attrs.frozen(kw_only=True)
class OAuth:
    """How a client gets the tokens that its server wants to see.

    Raises LocalProtocolError for what cannot be used.
    """

    client: Registration | None = None
    """By what the authorization server knows this client, where that was settled beforehand."""
    client_metadata_url: str | None = None
    """The address of this client's own document, which is its name where the authorization server can
    read such."""
    client_name: str = "sansmcp"
    """What users are shown of this client where it makes itself known."""
    redirect_uri: str | None = None
    """Where the browser arrives; None: found out when it is needed, with `RedirectNeeded`."""
    application_type: ApplicationType | None = None
    """None: ``native`` for an address on this computer, else ``web``."""
    registration: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """More members for the document with which this client makes itself known."""
    scopes: tuple[str, ...] = attrs.field(default=(), converter=_names)
    """Asked for beside what the server says is needed."""
    offline: bool = True
    """Whether to ask for tokens that can be renewed without the user, where the authorization server has a
    scope for that."""
    grant: Grant = attrs.field(factory=AuthorizationCode)
    """How a token is come by: the user logs in, unless given."""
    authentication: ClientAuthentication | None = None
    """How this client shows who it is; None: as the authorization server takes it."""
    dpop: ProofKey | None = None
    """Binds tokens to this key: whoever steals one cannot use it. Keep the key as long as the tokens."""
    store: TokenStore = attrs.field(factory=MemoryTokenStore)
    """Where tokens are kept."""
    addresses: AddressPolicy = DEFAULT_ADDRESSES
    """Which addresses are asked that servers name."""
    old_servers: bool = True
    """Whether a server that says nothing about authorization is taken for one of 2025-03-26, which is its own
    authorization server."""
    step_ups: int = 2
    """How often more rights may be asked for in a row for the same method, and name or URI, before that
    succeeds. Past it: it fails, until `authorize` is called."""
    user_timeout: float = 300.0
    """Seconds for the user to log in. Past it: what waits for the token fails."""

    def __attrs_post_init__(self) -> None:
        if self.redirect_uri is not None:
            check_redirect(self.redirect_uri)
        if self.client_metadata_url is not None:
            check_metadata_url(self.client_metadata_url)
        if not self.user_timeout > 0 or self.step_ups < 0:
            raise LocalProtocolError("user_timeout must be positive, and step_ups not negative")
