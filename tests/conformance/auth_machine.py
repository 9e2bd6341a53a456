"""How the client of the suite's extension scenarios gets its tokens: without a user, or bound to a key."""

from __future__ import annotations

import os
from typing import Any

from sansmcp.auth.dpop import ProofKey
from sansmcp.auth.jose import PrivateKeyJwt, SigningKey
from sansmcp.auth.machine_grants import ClientCredentials, EnterpriseManaged, JwtBearer
from sansmcp.auth.registration import Registration


def oauth(scenario: str, context: dict[str, Any]) -> dict[str, Any]:
    """What `OAuth` is given in `scenario` beside the usual."""
    match scenario.removeprefix("auth/"):
        case "client-credentials-basic":
            return {"grant": ClientCredentials()}
        case "client-credentials-jwt":
            key = SigningKey(context["private_key_pem"], context["signing_algorithm"])
            return {"grant": ClientCredentials(), "authentication": PrivateKeyJwt(key=key)}
        case "enterprise-managed-authorization":
            provider = Registration(client_id=context["idp_client_id"], issuer=context["idp_issuer"])
            grant = EnterpriseManaged(
                token_endpoint=context["idp_token_endpoint"],
                client=provider,
                id_token=context["idp_id_token"],
            )
            return {"grant": grant}
        case "wif-jwt-bearer":
            return {"grant": JwtBearer(context["valid_jwt"])}
        case "dpop" | "dpop-nonce":
            return {"dpop": ProofKey.generate(os.urandom)}
        case _:
            return {}
