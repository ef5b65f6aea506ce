"""What organizers send from their queue."""

from django import forms

from judging.models import SeenItem


class SeenForm(forms.Form):
    kind = forms.ChoiceField(choices=SeenItem.Kind)
    target = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    version = forms.CharField(max_length=40, required=False)
