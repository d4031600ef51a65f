"""Routes of sign-in, sign-out and preferences."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from phasegate.signin import views

app_name = "signin"
urlpatterns = [
    path("sign-in/", views.SignInView.as_view(), name="login"),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("preferences/", views.PreferencesView.as_view(), name="preferences"),
]
