"""The conversation with the provider: allauth's, with everything checked that the standard has a client check."""

from __future__ import annotations

from typing import Any

import jwt
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from controlplane.login.provider import Provider
from controlplane.login.sso_login import claims_of

PROVIDER_ID = "oidc"
# With a pair of keys: one that is shared would be our own secret. And never "none".
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_S = 60  # how far its clock may be from ours


def oidc_provider() -> Provider:
    """The provider of the settings. Callers have made sure that there is one."""
    provider: Provider | None = settings.OIDC
    if provider is None:
        raise OAuth2Error("no provider is set")
    return provider


def social_app(provider: Provider) -> SocialApp:
    """What allauth calls an app: never stored."""
    return SocialApp(
        provider="openid_connect",
        provider_id=PROVIDER_ID,
        name=provider.label[:40],
        client_id=provider.client_id,
        secret=provider.secret,
        settings={"server_url": provider.issuer.rstrip("/"), "scope": [*provider.scopes], "oauth_pkce_enabled": True},
    )


class OidcAdapter(OpenIDConnectOAuth2Adapter):
    """Checks the issuer, the token's signature and that both answers speak of the same person."""

    @property
    def openid_config(self) -> dict[str, Any]:
        config: dict[str, Any] = super().openid_config
        if config.get("issuer", "").rstrip("/") != oidc_provider().issuer.rstrip("/"):
            raise OAuth2Error("its issuer differs from HEADGATE_OIDC_ISSUER")
        return config

    @property
    def basic_auth(self) -> bool:
        return "client_secret_basic" in self.openid_config.get(
            "token_endpoint_auth_methods_supported", ["client_secret_basic"]
        )

    def complete_login(self, request: HttpRequest, app: SocialApp, token: Any, **kwargs: Any) -> Any:
        """A login that is not stored yet, with ``claims`` and the token's ``nonce``. Raises ``OAuth2Error``."""
        try:
            id_token = self._checked(app, kwargs["response"]["id_token"])
            userinfo = self._fetch_user_info(token.token) if "userinfo_endpoint" in self.openid_config else {}
            if userinfo and userinfo["sub"] != id_token["sub"]:
                raise OAuth2Error("its two answers are about different users")
            login = self.get_provider().sociallogin_from_response(request, {"id_token": id_token})
        except (KeyError, TypeError, ValueError, AttributeError, jwt.PyJWTError) as error:
            raise OAuth2Error(f"its answer lacks a required field ({type(error).__name__})") from error
        # The same name at another provider is another person. Claims are not kept: they are asked for at each login.
        subject = f"{self.openid_config['issuer']}\0{id_token['sub']}"
        login.account.uid = salted_hmac(
            "controlplane.login.subject", subject, secret="", algorithm="sha256"
        ).hexdigest()
        login.account.extra_data = {}
        login.email_addresses = []
        login.claims = claims_of(oidc_provider(), id_token, userinfo)
        login.nonce = id_token.get("nonce")
        return login

    def _checked(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        """What the token says, its signature checked. Raises ``OAuth2Error``."""
        header = jwt.get_unverified_header(id_token)
        if header["alg"] not in ALGORITHMS:
            raise OAuth2Error(f"its token is signed by {str(header['alg'])[:20]!r}, which Headgate does not accept")
        with get_adapter().get_requests_session() as session:
            answer = session.get(self.openid_config["jwks_uri"])
        answer.raise_for_status()
        wrong: Exception = OAuth2Error("the token is not signed by one of its keys")
        for key in _keys(answer.json(), header.get("kid")):
            try:
                claims: dict[str, Any] = jwt.decode(
                    id_token,
                    jwt.PyJWK(key, algorithm=header["alg"]),
                    algorithms=[header["alg"]],
                    audience=app.client_id,
                    issuer=self.openid_config["issuer"],
                    leeway=LEEWAY_S,
                    options={"require": ["exp", "iat", "iss", "aud", "sub"]},
                )
            except jwt.PyJWTError as error:
                wrong = OAuth2Error(f"its token is not valid ({type(error).__name__})")
                continue
            if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != app.client_id:
                raise OAuth2Error("its token is for another client")
            return claims
        raise wrong


def _keys(jwks: dict[str, Any], kid: str | None) -> list[dict[str, Any]]:
    """Those that may have signed: pairs of keys, of the name that the token gives, or all where it gives none."""
    return [k for k in jwks["keys"] if k.get("kty") in ("RSA", "EC", "OKP") and kid in (None, k.get("kid"))]
