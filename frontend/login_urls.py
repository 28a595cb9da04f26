"""The addresses that allauth asks for by these names."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from frontend.views import account, login

urlpatterns = [
    path("login/", login.Login.as_view(), name="account_login"),
    path("login/second-factor/", login.SecondFactor.as_view(), name="mfa_authenticate"),
    path("login/passkey/", login.PasskeyLogin.as_view(), name="mfa_login_webauthn"),
    path("login/again/", account.again, name="account_reauthenticate"),
    path("login/by/<str:provider_id>/", login.to_provider, name="openid_connect_login"),
    path("login/by/<str:provider_id>/callback/", login.from_provider, name="openid_connect_callback"),
    path("logout/", LogoutView.as_view(), name="account_logout"),
]
