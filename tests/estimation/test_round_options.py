"""Every option of a round is declared once, and stands wherever it belongs."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Q, TextChoices

from estimation.api.options import RoundBody, RoundChange
from estimation.api.serializers import RoundRow
from estimation.core.sampling.methods import SAMPLING_METHODS, with_option
from estimation.forms import RoundForm
from estimation.models import Round
from estimation.options import REQUIRED, Option, labels_of
from estimation.plans import NAMED, OPTIONS, SECTIONS
from estimation.services import quoting
from judging.models import Campaign
from tests.support import evaluation
from tests.support.site import REPO

NOT_CHOSEN = {
    "id", "campaign", "number", "state", "preview", "pool", "design", "design_file", "sample_file",
    "provenance", "created_by", "created", "drawn", "paused", "stopping", "paces",
}  # fmt: skip
CHOSEN_ALWAYS = ("seed", "method", "batch_size")
"""Of a row, whatever was left open when it was drafted."""
STYLES = (REPO / "static" / "css" / "charts.css").read_text("utf-8")
SHOWN = set(re.findall(r"\.only-([a-z_]+)", STYLES))


@pytest.fixture
def campaign(db: None) -> Campaign:
    return evaluation.with_material()


def test_the_row_has_a_column_for_every_option_and_no_other() -> None:
    assert {field.name for field in Round._meta.fields} - NOT_CHOSEN == set(OPTIONS)


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in NAMED])
def test_the_column_has_the_default_and_the_choices_that_are_declared(name: str) -> None:
    column, option = Round._meta.get_field(name), OPTIONS[name]
    if name not in CHOSEN_ALWAYS:
        default = REQUIRED if not column.has_default() and not column.null else column.get_default()
        assert default == option.default
    assert list(column.choices or []) == option.labels


@pytest.mark.parametrize(
    ("constraint", "option"),
    [
        ("round_difference_has_predictions", "difference"),
        ("round_with_earlier_can_be", "with_earlier"),
        ("round_by_topics_can_be", "topic_minimum"),
        ("round_top_up_can_be", "top_up"),
        ("round_keeps_hours_can_be", "keeps_hours"),
    ],
)
def test_the_database_lets_through_the_methods_that_have_an_option(
    constraint: str, option: Any
) -> None:
    found = {each.name: each for each in Round._meta.constraints}[constraint]
    assert set(methods_in(found.condition)) == set(with_option(option))  # type: ignore[attr-defined]


def methods_in(condition: Q) -> Iterator[str]:
    for each in condition.children:
        if isinstance(each, Q):
            yield from methods_in(each)
        elif each[0] == "method":
            yield each[1]
        elif each[0] == "method__in":
            yield from each[1]


@pytest.mark.slow
@pytest.mark.django_db
def test_form_bodies_answers_and_quotations_have_every_option(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign)
    assert set(RoundForm(campaign).fields) == set(OPTIONS)
    assert set(RoundBody().fields) == set(RoundChange().fields) == set(OPTIONS)
    assert set(OPTIONS) < set(RoundRow().fields)
    assert set(quoting.columns_of(row, None)) - {"pool"} == set(OPTIONS)
    required = {name for name, field in RoundBody().fields.items() if field.required}
    assert required == {"measure", "budget"}
    assert not any(field.required for field in RoundChange().fields.values())


def test_every_option_stands_in_one_part_of_the_form() -> None:
    placed = [name for section in SECTIONS for name in section.names]
    assert sorted(placed) == sorted(OPTIONS)


def test_what_is_shown_at_times_has_a_rule_that_says_when() -> None:
    options = {option.only or option.needs for option in OPTIONS.values()}
    asked = {only for only in (*options, *(section.only for section in SECTIONS)) if only}
    assert asked | {"length", "uploaded"} == SHOWN


def test_the_rules_of_what_is_shown_ask_for_what_methods_have_and_no_method_by_name() -> None:
    (rules,) = re.findall(r"(  form:has\(\[name=\"goal\".*?)\n  fieldset\[", STYLES, re.S)
    asked = set(re.findall(r"\.has-([a-z_]+)", rules))
    had = {each for method in SAMPLING_METHODS.values() for each in method.options}
    assert asked <= had | {"topics", "intervals"}
    assert not [name for name in SAMPLING_METHODS if f'value="{name}"' in rules]


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.needs])
def test_what_programs_are_told_names_the_methods_that_have_an_option(name: str) -> None:
    option = OPTIONS[name]
    told = {word for word in re.findall(r"[a-z-]+", option.asked) if word in SAMPLING_METHODS}
    assert told in (set(), set(with_option(option.needs)))


def test_the_intervals_of_other_methods_are_hidden() -> None:
    """Which CSS cannot ask of a method, so that these rules name those that have their own."""
    rule = r'\[value="([a-z-]+)"\]:checked\) \[name="interval"\] \[label="With ([^"]+)"\]'
    own = {name: each for name, each in SAMPLING_METHODS.items() if len(each.intervals) > 1}
    wanted = {(name, other.short) for name, each in own.items() for other in own.values()
              if other is not each}  # fmt: skip
    assert set(re.findall(rule, STYLES)) == wanted


class Sizes(TextChoices):
    SMALL = "small", "Small"
    LARGE = "large", "Large"


@pytest.mark.parametrize(
    ("option", "value", "fault"),
    [
        (Option(choices=Sizes), "small", ""),
        (Option(choices=Sizes), "", "Expected one of small, large."),
        (Option(choices=Sizes, empty="Any"), "", ""),
        (Option(choices=Sizes, empty="Any"), "huge",
         "Expected one of small, large, or nothing for the method's own."),
        (Option(least=1, most=3, expected="1 to 3."), 3, ""),
        (Option(least=1, most=3, expected="1 to 3."), 4, "1 to 3."),
        (Option(least=0, expected="Finite."), float("inf"), "Finite."),
        (Option(least=0, expected="Finite."), float("nan"), "Finite."),
        (Option(least=1), 0, ""),  # the service says what it must be
        (Option(longest=3, expected="Short."), "abcd", "Short."),
        (Option(longest=3, expected="Short."), "a\n", "Short."),
        (Option(longest=3, expected="Short."), "", ""),
        (Option(default="", needs="floor", refusal="{method}: not but {methods}."), "x",
         f"“Whole topics, by what they tell and cost”: not but {labels_of(with_option('floor'))}."),
        (Option(default="", needs="floor", refusal="{method} has none."), "", ""),
        (Option(default="", needs="floor"), "x", ""),  # has no effect, and says so on the page
        (Option(default="", needs="costs", refusal="{method} has none."), "x", ""),
    ],
)  # fmt: skip
def test_a_value_is_held_against_what_is_declared(
    option: Option, value: object, fault: str
) -> None:
    assert option.fault(value, method="query") == fault


@pytest.mark.slow
@pytest.mark.django_db
def test_a_further_method_is_offered_everywhere_and_is_no_migration(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(SAMPLING_METHODS["iid"], name="other", label="Another way")
    monkeypatch.setitem(SAMPLING_METHODS, "other", other)  # type: ignore[arg-type]
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    assert Round(method="other").get_method_display() == "Another way"
    assert ("other", "Another way") in Round._meta.get_field("method").choices
