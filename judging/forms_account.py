"""Forms of signing in beside the password, and of what belongs to one's own account."""

from django import forms

CODE = {"autocomplete": "one-time-code", "autocapitalize": "none", "spellcheck": "false"}


class CodeForm(forms.Form):
    code = forms.CharField(
        max_length=40,
        help_text="The six digits that your app shows now, or one of your recovery codes.",
        widget=forms.TextInput(attrs={**CODE, "autofocus": True, "class": "mono"}),
    )


class PasswordForm(forms.Form):
    password = forms.CharField(
        max_length=4096,
        strip=False,
        label="Your password",
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )


class NewCodesForm(forms.Form):
    token = forms.CharField(max_length=1000, widget=forms.HiddenInput())
    code = forms.CharField(
        max_length=10,
        label="The code that the app shows",
        widget=forms.TextInput(attrs={**CODE, "inputmode": "numeric", "class": "mono"}),
    )


class PasskeyForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        label="Name",
        help_text="To tell it from others, for example: phone, or the blue key.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    credential = forms.CharField(max_length=20_000, widget=forms.HiddenInput())


class ForgotForm(forms.Form):
    who = forms.CharField(
        max_length=254,
        label="User name or e-mail address",
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "none", "autofocus": True}
        ),
    )


class AddressForm(forms.Form):
    address = forms.CharField(
        max_length=254,
        label="E-mail address",
        widget=forms.EmailInput(attrs={"autocomplete": "email", "autocapitalize": "none"}),
    )
