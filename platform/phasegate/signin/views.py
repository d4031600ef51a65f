"""Pages of sign-in and preferences, and the language switch."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils import translation
from django.utils.translation import gettext as _
from django.views import View
from django.views.generic import FormView
from django.views.i18n import set_language

from phasegate.signin import services
from phasegate.signin.forms import PreferencesForm, SignInForm


class SignInView(LoginView):
    """Sign in with name and password; `next` only leads to pages of this site."""

    template_name = "signin/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True


class PreferencesView(LoginRequiredMixin, FormView):
    """Language and time zone of the signed-in person."""

    template_name = "signin/preferences.html"
    form_class = PreferencesForm
    success_url = reverse_lazy("signin:preferences")

    def get_initial(self) -> dict[str, Any]:
        user: Any = self.request.user
        return {"language": user.language, "time_zone": user.time_zone}

    def form_valid(self, form: PreferencesForm) -> HttpResponse:
        user: Any = self.request.user
        services.preferences_set(user=user, **form.cleaned_data)
        if user.language:
            translation.activate(user.language)
        messages.success(self.request, _("Your preferences are saved."))
        response = super().form_valid(form)
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME, translation.get_language(), samesite="Lax", max_age=365 * 86_400
        )
        return response


class LanguageView(View):
    """The language switch of every page: keeps the choice in the cookie and with the person."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest) -> HttpResponse:
        language = request.POST.get("language", "")
        user: Any = request.user
        if user.is_authenticated and language in dict(settings.LANGUAGES) and user.language != language:
            services.preferences_set(user=user, language=language, time_zone=user.time_zone)
        return set_language(request)
