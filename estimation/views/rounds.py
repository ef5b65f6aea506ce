"""Rounds: planned, previewed, drawn."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from estimation import selectors
from estimation.figures import PreviewFigures, preview_figures
from estimation.forms import BETWEEN_MEASURES, RoundForm, TargetForm, values_of
from estimation.known_now import known_now, less_than_known
from estimation.material import can_be_pooled, taking_part
from estimation.models import Round
from estimation.plans import OTHERWISE, USUAL, is_learned, plan_of, why_not_usual
from estimation.reach_figures import Calendar, Work, sentence_of
from estimation.services import choices, quoting, reaching, rounds
from estimation.work import OF_NUMBERS, failed_for
from judging import selectors as judging
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.models import Campaign, Job, Membership
from judging.pace import pace
from judging.views.already import leads_back, there
from judging.workers import serving

TYPED_SINCE = (
    "Your latest choices are saved, but not drawn yet: what they buy is worked out first. Look at "
    "it, and draw then."
)
CHANGED_SINCE = (
    "Nothing is drawn yet: somebody else has changed this round since you opened it. Look at what "
    "it says now, and draw that."
)

ADDING: dict[str, object] = {"top_up": True, "topic_minimum": 1, "further": 0.0}
TOP_UPS: dict[str, dict[str, object]] = {
    "together": ADDING | {"with_earlier": True},
    "alone": ADDING | {"with_earlier": False},
}
"""What the buttons of the page for a new round choose, and links to it, by ``top_up``."""
AT_ONCE = {"method": OTHERWISE, "more_predictions": []}
"""What else they choose where no model can learn from what is judged."""


def round_of(campaign: Campaign, number: int) -> Round:
    row = selectors.rounds_of(campaign).filter(number=number).first()
    if row is None:
        raise Http404("No such round.")
    row.campaign = campaign
    return row


def round_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form with defaults, or with the choices of the round before."""
    campaign = organized_campaign(user_of(request), slug)
    before = selectors.current_round(campaign)
    initial = values_of(before, same_seed=False) if before else {}
    button = request.POST.get("add", "")
    if button:
        initial |= RoundForm(campaign, request.POST).typed()
    drawn_by = before.method if before else ""
    initial |= topping_up(button or request.GET.get("top_up", ""), initial, drawn_by)
    form = RoundForm(campaign, None if button else request.POST or None, initial=initial)
    if form.is_valid():
        try:
            row = rounds.draft(campaign=campaign, by=user_of(request), plan=form.anew())
            _tell_of_method(request, form, row)
            _tell_of_unit(request, form)
            return redirect("round-detail", slug, row.number)
        except UserError as error:
            show_in(form, error)
    news = newcomers(campaign, before)
    ready = can_be_pooled(campaign)
    context = {"campaign": campaign, "form": form, "ready": ready, "news": news}
    return render(request, "estimation/round_new.html", context)


def topping_up(way: str, initial: Mapping[str, object], before: str) -> dict[str, object]:
    """What is chosen to top up in a way; nothing in none. Together, it is by the method before.
    The best run alone is found by learning from batches, so that who looked for it has the ranking
    of all where nothing is learned."""
    chosen = dict(TOP_UPS.get(way, {}))
    if not chosen:
        return {}
    if _learns(initial) and (way == "alone" or before == USUAL):
        return chosen | {"method": USUAL}
    races = initial.get("goal") == Round.Goal.WINNER
    return chosen | AT_ONCE | ({"goal": Round.Goal.RANKING} if races else {})


def _learns(initial: Mapping[str, object]) -> bool:
    """Whether a model learns of all measures that are chosen, and all else is as rounds usually
    have it."""
    if initial.get("estimator") or initial.get("interval") not in (
        None,
        "",
        Round.Interval.STUDENT,
    ):
        return False
    measures = [initial.get("measure"), *BETWEEN_MEASURES.split(str(initial.get("reported") or ""))]
    return all(is_learned(str(each), on_top=True) for each in measures if each)


def _tell_of_method(request: HttpRequest, form: RoundForm, row: Round) -> None:
    """Why a new round has not the method with which its form began."""
    if form.cleaned_data["method"] != row.method:
        why = why_not_usual(plan_of(row)) or f"it is the usual one for {row.measure}"
        told = f"The method is {row.sampling.short}: {why}."
        messages.info(request, f"{told} You can choose another.")


def _tell_of_unit(request: HttpRequest, form: RoundForm) -> None:
    """What of the round before was not taken over, as it had another measure."""
    shown = [name for name in form.of_another_unit() if name != "stop_width"]
    if labels := ", ".join(f"“{form[name].label}”" for name in shown):
        before, measure = form.initial["measure"], form.cleaned_data["measure"]
        told = f"Not taken over, as it was for {before}: {labels}. Choose it anew for {measure}."
        messages.info(request, told)


def newcomers(campaign: Campaign, before: Round | None) -> dict[str, object] | None:
    """How many runs came since the latest draw, and how a round can add to what is judged for
    them; None where nobody came, or nothing is judged to add to."""
    if before is None or before.pool is None or not choices.complete(campaign):
        return None
    joined = taking_part(campaign).filter(created__gt=before.drawn).count()
    learns = before.sampling.draws == "batches"
    alone = before.top_up and not before.with_earlier and not learns
    able = "top_up" in before.sampling.options and before.topic_minimum == 1
    apart = alone or not able
    return {"joined": joined, "since": before.number, "apart": apart} if joined > 0 else None


@never_cache  # who goes back sees the choices that the review is of, and not those of then
def round_detail(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    row = round_of(campaign, number)
    if row.is_drawn:
        shown, progress = quoting.as_drawn(row), selectors.round_progress(row)
        context = {
            "campaign": campaign,
            "round": shown,
            "progress": progress,
            "failed": failed_for(row, OF_NUMBERS),
        }
        return render(request, "estimation/round_frozen.html", context)
    form = RoundForm(campaign, initial=values_of(row, same_seed=True))
    context = {"campaign": campaign, "form": form, **preview_context(row)}
    return render(request, "estimation/round_draft.html", context)


def round_preview(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The right half of a drafted round, asked for again and again while a worker is at it.

    When the draw has begun or ended since, the whole page is another one.
    """
    campaign = organized_campaign(user_of(request), slug)
    row = round_of(campaign, number)
    if row.is_drawn or request.GET.get("state", row.state) != row.state:
        return to_page(request, row)
    context = {"campaign": campaign, **preview_context(row)}
    if request.GET.get("seen") == context["token"]:
        return HttpResponse(status=204)
    return render(request, "estimation/_preview_alone.html", context)


def preview_context(row: Round) -> dict[str, object]:
    """What the preview shows: the work under way, the error, or the figures."""
    work = {kind: judging.job_of(kind, row.pk) for kind in ("preview", "draw")}
    design, there = choices.digest_of(row), row.preview
    outdated = choices.is_outdated(row, design)
    if outdated and pending(work["preview"]):
        there, outdated = {}, False
    gone = choices.withdrawn_choice(row)
    error = gone or there.get("error") or failure(work["preview"])
    drawing, workers = row.state == Round.State.DRAWING, serving("draw")
    return {
        "round": row,
        "error": error,
        "gone": gone,
        "ready": not error or can_be_pooled(row.campaign),
        "working": not there and not error,
        "at_work": work["preview"],
        "drawing": work["draw"] if drawing else None,
        "draw_error": failure(work["draw"]),
        "failed": work["preview"] if failure(work["preview"]) else None,
        **told_of(row, {} if error else there),
        "design": design,
        "outdated": outdated,
        "workers": workers,
        "token": " ".join([*map(state_of, work.values()), str(bool(there)), workers.missing]),
    }


def state_of(job: Job | None) -> str:
    """All of a job that is shown while it is waited for."""
    return f"{job.state} {job.progress} {job.note} {job.error}" if job else ""


def told_of(row: Round, preview: dict[str, Any]) -> dict[str, object]:
    """What is shown of a preview, if it is there."""
    if not preview:
        return {"figures": None, "targets": TargetForm.of({}), "sentence": ""}
    known = known_now(row)
    people = people_of(row.campaign)
    figures = figures_of(row, preview, people)
    reached, middle = figures.reached, figures.measures[0].middle if figures.measures else "–"
    return {
        "figures": figures,
        "targets": TargetForm.of(reached.fields if reached else {}),
        "cost": row.campaign.cost_of(preview["hours"]),
        "known": known,
        "less": less_than_known(row, known, reached.table) if reached else "",
        "sentence": sentence_of(row, reached=reached, middle=middle, people=people),
    }


def figures_of(row: Round, preview: dict[str, Any], people: int) -> PreviewFigures:
    lately = pace(row.campaign).per_day
    work = Work(row.labels_each, reaching.hours_each(row), row.campaign, row.draws_again)
    seen = Calendar(per_day=lately, people=people)
    return preview_figures(preview, budget=row.budget, work=work, calendar=seen)


def people_of(campaign: Campaign) -> int:
    return campaign.memberships.filter(role=Membership.Role.ASSESSOR).count()


def pending(job: Job | None) -> bool:
    return job is not None and job.state in Job.PENDING


def failure(job: Job | None) -> str:
    """Why the job failed, if it did."""
    return job.error if job is not None and job.state == Job.State.FAILED else ""


@require_POST
def round_change(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Saves the choices; the preview is worked out anew where any is another."""
    campaign = organized_campaign(user_of(request), slug)
    row = round_of(campaign, number)
    form = RoundForm(campaign, request.POST)
    if form.is_valid():
        try:
            chosen = typed(request, form, row)
            if chosen or not is_worked_out(row):
                rounds.amend(row=row, by=user_of(request), chosen=chosen)
        except UserError as error:
            show_in(form, error)
    if not request.htmx:  # type: ignore[attr-defined]
        return refused(request, form, row) if form.errors else to_page(request, row)
    return changed_fragment(request, form, row)


def is_worked_out(row: Round) -> bool:
    """Whether the preview is of the choices as they are, so that nothing is due."""
    there = row.preview
    return bool(there) and not there.get("error") and there.get("design") == choices.digest_of(row)


def typed(request: HttpRequest, form: RoundForm, row: Round) -> dict[str, Any]:
    """What was chosen; where something to reach was typed and no budget, with that for it."""
    chosen, wish = form.chosen(), TargetForm(request.POST).wish()
    if wish is None or "budget" in chosen:
        return chosen
    found, wanted = reaching.chosen_for(row, *wish)
    messages.success(request, found.text)
    usual = form.cleaned_data["batch_size"] is None
    return chosen | wanted | ({"batch_size": None} if usual else {})


def changed_fragment(request: HttpRequest, form: RoundForm, row: Round) -> HttpResponse:
    """The preview alone, so that nobody's typing is disturbed; the form as well with errors, and
    where somebody else has changed the round."""
    merged = [] if form.errors else others_choices(form, row)
    if merged:
        form = RoundForm(row.campaign, initial=values_of(row, same_seed=True))
    context = {"campaign": row.campaign, "form": form, "merged": merged, **preview_context(row)}
    if not form.errors and not merged and "had_errors" not in request.POST:
        return render(request, "estimation/_saved.html", context)
    answer = render(request, "estimation/_planning.html", context)
    answer["HX-Retarget"] = "#planning"
    answer["HX-Reswap"] = "outerHTML"
    return answer


def others_choices(form: RoundForm, row: Round) -> list[str]:
    """What the round, now that the form is saved, says otherwise than the form."""
    names = rounds.differences(row=row, plan=form.plan())
    return [str(form[name].label) for name in names if form.data.get("seed") or name != "seed"]


def to_page(request: HttpRequest, row: Round) -> HttpResponse:
    """To the round's page; htmx is told to go there itself, as a fragment would not fit."""
    answer = redirect("round-detail", row.campaign.slug, row.number)
    if not request.htmx:  # type: ignore[attr-defined]
        return answer
    return HttpResponse(status=204, headers={"HX-Redirect": answer["Location"]})


def show_in(form: RoundForm, error: UserError) -> None:
    field = error.field if error.field in form.fields else None
    if field is None and error.status != 400:
        raise error
    form.add_error(field, error.message)


@require_POST
def round_draw(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Draws the design that was on show; choices that were typed since are shown first."""
    campaign, by = organized_campaign(user_of(request), slug), user_of(request)
    row, form = round_of(campaign, number), RoundForm(campaign, request.POST)
    design = request.POST.get("design", "")
    try:
        if row.state == Round.State.DRAFTED:
            choices.require(row, design)
        wish = TargetForm(request.POST).wish()
        if form.is_valid() and (wish or rounds.differences(row=row, plan=form.plan())):
            if chosen := typed(request, form, row):
                rounds.amend(row=row, by=by, chosen=chosen)
            messages.warning(request, TYPED_SINCE if chosen else CHANGED_SINCE)
        elif form.is_valid():
            rounds.request_draw(row=row, by=by, design=design, and_open="open" in request.GET)
            messages.success(request, f"{preview_context(row)['sentence']} It is being drawn.")
    except UserError as error:
        if error.code == "design_changed":
            messages.warning(request, error.message)
            return redirect("round-detail", slug, number)
        show_in(form, error)
    return to_page(request, row) if not form.errors else refused(request, form, row)


def refused(request: HttpRequest, form: RoundForm, row: Round) -> HttpResponse:
    """The whole page with what is wrong at its field."""
    context = {"campaign": row.campaign, "form": form, **preview_context(row)}
    return render(request, "estimation/round_draft.html", context, status=422)


@require_POST
@leads_back("round-list", "slug")
def round_discard(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    row = there(campaign.rounds.select_related("campaign"), f"Round {number}", number=number)
    rounds.discard(row=row, by=user_of(request))
    return redirect("round-list", slug)
