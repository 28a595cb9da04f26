"""Logging in and out: Django's own views, with a limit on failures."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from frontend import throttle
from frontend.forms import LoginForm


class Login(LoginView):
    """The login page. After too many failures it answers 429 for a while, whatever the password."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        wait_s = throttle.seconds_to_wait(request)
        if wait_s:
            return self._too_many(wait_s)
        return super().post(request, *args, **kwargs)

    def _too_many(self, wait_s: int) -> HttpResponse:
        form = LoginForm(self.request, initial={"username": self.request.POST.get("username", "")[:150]})
        answer = self.render_to_response(self.get_context_data(form=form, wait_s=wait_s), status=429)
        answer["Retry-After"] = str(wait_s)
        return answer

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        throttle.forget(self.request)
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        throttle.count_failure(self.request)
        return super().form_invalid(form)
