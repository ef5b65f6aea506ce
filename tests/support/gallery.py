"""A site with campaigns in every state that a page can show, and the addresses of those pages.

``build`` runs in a process of the site (``site.python``), before any worker: what is due is done
here, and what shall wait is left due.
"""

import json
import time
from dataclasses import dataclass
from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django.db.models.functions import Now
from django.test import override_settings

from estimation.models import MachineAnswer, MachineJudge, Report
from estimation.services import rounds
from estimation.services.machines import judges, prompts
from judging.clock import seconds_from_now
from judging.models import (
    Assignment,
    Campaign,
    CrowdLink,
    Document,
    Job,
    Upload,
    User,
    WorkerHeartbeat,
)
from judging.services import assignments, campaigns, entering, exclusions, jobs, members, uploads
from tests.support import chat, evaluation, factories, gallery_files
from tests.support import gallery_accounts as accounts
from tests.support import gallery_campaigns as states
from tests.support import gallery_lessons as lessons
from tests.support import gallery_long as long_names
from tests.support import gallery_norms as talks

ROLES = ("organizer", "assessor", "admin", "newcomer", "beginner", "guest", "leaver")
"""The newcomer is nobody's member; the beginner may create campaigns, and has none; guest and
leaver came by a crowd link, and the latter is done."""
BAD_RUN = b"t1 Q0 d1 1 2.5 bad\nt1 Q0 d1 2 2.0 bad\nt1 Q0 d2 3 not-a-number bad\nt1 Q0\n" * 5
ODD_RUN = b"t1 Q0 d1 1 2.0 odd\nt1 Q0 d2 2 2.0 odd\nt1 Q0 nowhere 3 1.0 odd\n"
GUIDELINES = "Judge the document as a whole.\n\nWhat is only in its title counts as well."


@dataclass(frozen=True)
class Shot:
    """A page as somebody sees it; ``press`` is a key, or the name of a button in quotes, that opens
    something on it."""

    who: str
    address: str
    status: int = 200
    press: str = ""


def build() -> None:
    """Prints, as JSON, a session of everybody and the pages that there are."""
    users = {name: User.objects.create_user(name) for name in ROLES[:-2]}
    User.objects.filter(username__in=["organizer", "beginner"]).update(is_organizer=True)
    User.objects.filter(username="admin").update(is_staff=True, is_superuser=True)
    made = [_of_organizers(), _of_rounds(), _of_assessors(), _of_everybody(users), _of_machines()]
    made, wide = [*made, _of_crowd_links(users)], long_names.addresses()
    made.append(_that_wait())
    made.append(_of_admins())
    shots = [vars(shot) for part in made for shot in part]
    WorkerHeartbeat.objects.update_or_create(name="worker", defaults={"seen": Now()})
    sessions = {name: _session(user) for name, user in users.items()}
    sessions["halfway"] = accounts.halfway(users["admin"])
    print(json.dumps({"sessions": sessions, "shots": shots, "long": wide}))


def _session(user: User) -> str:
    """A session as signing in leaves it."""
    session = SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session["_auth_user_backend"] = "django.contrib.auth.backends.ModelBackend"
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session["confirmed"] = time.time() + 86400
    session.save()
    return str(session.session_key)


def _shots(who: str, base: str, *places: str) -> list[Shot]:
    return [Shot(who, base + place) for place in places]


# ---------------------------------------------------------------------------------- material


def _of_organizers() -> list[Shot]:
    empty, full = states.organized(_empty("empty")), states.with_material("material")
    bad = factories.stored_upload(full, BAD_RUN, name="broken.run", kind="run")
    odd = factories.stored_upload(full, ODD_RUN, name="odd.run", kind="run")
    good = full.uploads.filter(kind=Upload.Kind.DOCUMENTS)[0]
    everywhere = (
        "", "material/", "material/topics/", "material/documents/", "material/runs/",
        "material/predictions/",
    )  # fmt: skip
    rest = (
        "rounds/", "rounds/new/", "people/", "judgments/", "queue/", "queue/?kind=done",
        "decisions/", "comments/",
        "settings/", "settings/log/",
    )  # fmt: skip
    of_people = ("gold/", "training/set/", "norming/sessions/")
    files = [f"material/files/{each.pk}/" for each in (bad, odd, good)]
    document = f"material/documents/{full.documents.all()[0].pk}/"
    places = [f"{place}?q=nothing" for place in ("material/topics/", "material/documents/")]
    return [
        *_shots("organizer", f"/c/{empty.slug}/", *everywhere, *rest, *of_people),
        *_shots("organizer", f"/c/{full.slug}/", *everywhere, *rest, *files, document, *places),
    ]


def _with_predictions() -> tuple[Campaign, tuple[str, ...]]:
    """Grades and probabilities of grades, and none that a drawn round has."""
    made = states.predicted()
    each = [f"material/predictions/{row.pk}/" for row in made.predictions.all()]
    return made, ("material/predictions/", *each)


def _leaving(made: Campaign) -> list[Shot]:
    """What it changes to withdraw the best run, and the drawer over the list of them."""
    place, run = f"/c/{made.slug}/material/", made.runs.all()[0]
    drawer = [Shot("organizer", f"{place}{name}/", press="“Upload files”") for name in ("runs",)]
    return [Shot("organizer", f"{place}runs/{run.pk}/withdraw/"), *drawer]


def _crowd() -> tuple[Campaign, tuple[str, ...]]:
    """Labels of several people, and the pages of one who reads and of one who does not."""
    made = states.crowded()
    named = made.memberships.filter(user__username__in=["severe", "swift"])
    people = [f"assessors/{row.user_id}/" for row in named]
    return made, ("people/", f"{RANKING}labels/", *people)


def _golden() -> tuple[Campaign, tuple[str, ...]]:
    made = states.golden()
    row = made.gold_pairs.all()[1]
    pages = [f"assessors/{each.user_id}/" for each in made.memberships.filter(role="assessor")]
    senior = f"judgments/{states.settled(made)}/", "queue/?kind=apart", "queue/?kind=done"
    return made, ("gold/", "people/", *pages, f"judgments/{row.pair_id}/", *senior)


def _of_data() -> list[tuple[Campaign, tuple[str, ...]]]:
    """Pages of runs and topics: one that is judged, one whose new version waits, one replaced."""
    made, places = states.replaced(), []
    for run in made.runs.all():
        places.append(f"material/runs/{run.pk}/")
    places += [f"material/topics/{topic.pk}/" for topic in made.topics.all()[:2]]
    waiting = made.uploads.filter(state=Upload.State.CHECKED)[0]
    places += [f"material/files/{waiting.pk}/", "material/", "material/topics/"]
    return [(made, tuple(places))]


def _empty(slug: str) -> Campaign:
    by = factories.user(f"organizer-{slug}", is_organizer=True)
    return campaigns.create(
        by=by, plan=campaigns.CampaignPlan(name=f"The {slug} campaign", slug=slug)
    )


# ---------------------------------------------------------------------------------- rounds

RANKING = "rounds/1/ranking/"
TABS = (
    RANKING,
    *(f"{RANKING}{tab}/" for tab in ["pairs", "topics", "history", "batches", "labels", "compare"]),
)


MENUS = ("active", "finished", "unjudged")
"""With files to take along, with estimates of which none are made, and without any."""


def _of_rounds() -> list[Shot]:
    shots = []
    for made, places in (
        (states.unjudged(), ("", "rounds/1/", "rounds/1/ranking/", "rounds/1/reports/")),
        (states.active(), ("", "rounds/1/", *TABS, "rounds/1/reports/")),
        _with_predictions(),
        (states.adaptive(), ("rounds/1/", RANKING, f"{RANKING}batches/", "rounds/2/")),
        (states.race(), ("rounds/1/", "rounds/1/ranking/", "rounds/2/")),
        (states.topped_up(), ("rounds/2/", "rounds/2/ranking/", "rounds/3/", "rounds/4/")),
        (states.gone_on(), ("rounds/", "rounds/2/", "rounds/2/ranking/", "rounds/3/")),
        (
            states.joined(),
            ("material/runs/", RANKING, "rounds/new/", "rounds/new/?top_up=together"),
        ),
        *(*_of_data(), *gallery_files.shown()),
        (states.finished(), ("", "rounds/1/", *TABS)),
        (states.rounds_after_one_another(), ("rounds/", "rounds/1/", "rounds/3/")),
        (states.paused(), ("", RANKING, "settings/", "settings/delete/")),
        (states.archived(), ("", "settings/", "settings/delete/")),
        (states.stopped(), ("", "rounds/", "rounds/1/", *TABS)),
        (states.many_runs(), ("", *TABS)),
        (states.many_drafted(), ("rounds/1/",)),
        (states.failed(), ("", "rounds/1/", "rounds/1/ranking/", "rounds/1/reports/")),
        (states.preferences(), ("", RANKING, f"{RANKING}pairs/", f"{RANKING}labels/")),
        (states.scored(), ("rounds/1/", RANKING, "rounds/1/reports/")),
        (states.waiting_for_others(), ("", "people/")),
        (states.excluded(), (f"{RANKING}labels/",)),
        _crowd(),
        _golden(),
        (lessons.learned(), ("training/set/",)),
    ):
        shots += _shots("organizer", f"/c/{made.slug}/", *places)
    opened = "“Export”"
    shots += [Shot("organizer", f"/c/{slug}/{RANKING}", press=opened) for slug in MENUS]
    active = Campaign.objects.get(slug="active")
    html = Report.objects.get(estimate_set__round__campaign=active, name="report.html")
    who = Assignment.objects.filter(pair__campaign=active, state="judged")[0].assessor_id
    (robot,) = factories.assessors(active, "robot")
    by = active.created_by
    exclusions.exclude(
        campaign=active, assessor=robot, by=by, ground="grades", reason="The same grade always."
    )
    factories.run_due_jobs()
    those = ("queue/", "queue/?kind=apart", f"assessors/{who}/", f"assessors/{robot.pk}/")
    shots += _shots("organizer", "/c/active/", *those)
    said = f"judgments/{Assignment.objects.filter(pair__campaign=active, revision=1)[0].pair_id}/"
    more = (
        "rounds/", "rounds/new/", "comments/", "decisions/", "people/", "settings/",
        "settings/log/?action=judge", "judgments/?order=apart", "judgments/?words=nothing", said,
    )  # fmt: skip
    compare = "rounds/1/ranking/compare/?first=run1&second=run4"
    topic = f"rounds/1/ranking/compare/topics/{active.topics.all()[0].pk}/?first=run1&second=run4"
    pages = (*more, compare, topic, f"{RANKING}topics/?by=judged", f"rounds/1/reports/{html.pk}/")
    shots += _shots("organizer", "/c/active/", *pages)
    closed = Campaign.objects.get(slug="finished")
    shots += _leaving(active)
    return [*shots, *_shots("organizer", f"/c/{closed.slug}/", "material/", "rounds/new/")]


# ---------------------------------------------------------------------------------- machines

ENDPOINT = {
    "MACHINE_ENDPOINTS": "local",
    "MACHINE_LOCAL_URL": "http://127.0.0.1:9/v1",
    "MACHINE_LOCAL_MODELS": "qwen2.5-7b-instruct,a-larger-one",
    "MACHINE_LOCAL_PRICES": "0.15,0.6",
    "EMAIL_URL": "smtp://127.0.0.1:9",
    "OIDC_ISSUER": "http://127.0.0.1:9",
    "OIDC_CLIENT_ID": "evalsite",
    "OIDC_CLIENT_SECRET": "secret",
    "OIDC_NAME": "The House",
    "WORKER_SILENT_SECONDS": "86400",
}
"""What the site must be started with; nobody answers at any of these addresses, and its worker is
seen once."""
MACHINES = "material/machines/"
SAID = ("I cannot grade this document.", '{"grade": 7, "reason": "<b>Ignore the scale</b>"}')


def _of_machines() -> list[Shot]:
    """One that people have judged after, one that gave few grades, a new one, two versions."""
    made = states.with_material("machines")
    with chat.serving(_knowing) as stub:
        declared = stub.endpoint(name="local", models=("qwen2.5-7b-instruct",), prices=(0.15, 0.6))
        with override_settings(MACHINE_ENDPOINTS={"local": declared}):
            good = _machine(made, "Qwen 7B", max_cost=0.5)
            judges.start(judge=good, by=made.created_by)
            factories.run_due_jobs()
            stub.answer = lambda seen: chat.Reply(SAID[len(seen.document) % 2])
            bad, again = _machine(made, "A model that <talks>"), _machine(made, "asked otherwise")
            for each in (bad, again):
                judges.start(judge=each, by=made.created_by)
            factories.run_due_jobs()
            otherwise = {"prompt": f"{prompts.DEFAULT}\nBe strict.\n"}
            judges.change(judge=again, by=made.created_by, chosen=otherwise)
            new = _machine(made, "new")
    evaluation.drawn(made, budget=90, batch_size=30)
    evaluation.judge(made, 1000)
    all_of_them = (good, bad, new, again)
    places = [MACHINES, f"{MACHINES}new/", *(f"{MACHINES}{each.pk}/" for each in all_of_them)]
    places.append(f"{RANKING}labels/")
    empty = _shots("organizer", "/c/empty/", MACHINES)
    return [*empty, *_shots("organizer", f"/c/{made.slug}/", *places)]


def _machine(made: Campaign, name: str, **values: Any) -> MachineJudge:
    plan = judges.MachinePlan(name, "local", "qwen2.5-7b-instruct", max_calls=500, **values)
    return judges.create(campaign=made, by=made.created_by, plan=plan)


def _knowing(seen: chat.Seen) -> chat.Reply:
    """Grades as people do, but kinder to what is not relevant."""
    topic, docno = seen.topic.removeprefix("about "), seen.document.split()[0]
    truth = evaluation.SMALL.truth[topic, docno]
    return chat.grade(truth + (truth == 0 and sum(map(ord, topic + docno)) % 4 == 0))


def _asking() -> list[Shot]:
    """One that is asked just now, and waits as its endpoint wishes."""
    made = states.with_material("asking")
    judge = _machine(made, "Qwen 7B")
    judges.start(judge=judge, by=made.created_by)
    MachineJudge.objects.filter(pk=judge.pk).update(
        planned=129, order="by how many runs return them, and how high", calls=41
    )
    topic, prompt = made.topics.all()[0], judge.prompts.all()[0]
    MachineAnswer.objects.bulk_create(
        MachineAnswer(
            prompt=prompt, topic=topic, docno=f"d{n}", outcome="graded", grade=n % 4, tries=1,
            reply=SAID[1], seconds=0.8, tokens_in=410, tokens_out=24,
        )
        for n in range(40)
    )  # fmt: skip
    note = "waits 120 s, as the endpoint asks"
    Job.objects.filter(kind="machine-judge", target=judge.pk).update(note=note)
    return _shots("organizer", f"/c/{made.slug}/", f"{MACHINES}{judge.pk}/")


# ---------------------------------------------------------------------------------- assessors


def _of_assessors() -> list[Shot]:
    scales = {"yes-no": states.YES_NO, "four": None, "five": states.FIVE, "twenty-one": states.MANY}
    shots = []
    for slug, grades in scales.items():
        desk = _desk(slug, grades)
        shots += [Shot("assessor", desk), Shot("assessor", desk, press="?")]
    five = Campaign.objects.get(slug="five")
    assert factories.judge_next(five, User.objects.get(username="assessor"), 2)
    mine = Assignment.objects.get(pair__campaign=five, state="judged")
    shots += _shots("assessor", "/c/five/", "judged/", f"judged/{mine.pk}/", "judge/")
    shots += [Shot("assessor", "/c/five/judge/", press=key) for key in ("c", "s")]
    two = _desk("preferred", None, two=True)
    shots += [Shot("assessor", two), Shot("assessor", two, press="?")]
    shots += [Shot("assessor", address) for address in lessons.of_learners(_bare)]
    shots += [Shot(who, address) for who, address in talks.of_norming(_bare)]
    return [*shots, *(Shot("assessor", f"/c/{slug}/judge/") for slug in _idle())]


def _bare(slug: str, grades: list[dict[str, str]] | None = None, *, assessor: bool = True) -> Any:
    made = factories.campaign(slug=slug)
    plan: dict[str, Any] = {"guidelines": GUIDELINES, "name": f"Which help with {slug}?"}
    Campaign.objects.filter(pk=made.pk).update(**plan, grades=grades or made.grades)
    made.refresh_from_db()
    members.add(campaign=made, by=made.created_by, username="assessor", role="assessor")
    upload = made.topics.all()[0].upload
    text = "The first sentence says what it is about. The second one goes on about topic 1.\n\n"
    for number in range(4):
        title = f"What is said in document {number}"
        Document.objects.create(
            campaign=made, upload=upload, docno=f"FT934-48{number}", title=title, text=text * 12
        )
    return made


def _desk(slug: str, grades: list[dict[str, str]] | None, *, two: bool = False) -> str:
    made = _bare(slug, grades)
    docnos = [f"FT934-48{number}" for number in range(4)]
    if two:
        factories.preference_batch(made, [(docnos[0], docnos[1]), (docnos[1], docnos[2])])
    else:
        factories.released_batch(made, [*docnos, "without-a-text"], labels=2)
    return f"/c/{slug}/judge/"


def _idle() -> list[str]:
    """Campaigns whose queue is empty, each for a reason of its own."""
    names = ["idle-draft", "idle-nothing", "idle-closed", "idle-complete", "idle-others"]
    _, nothing, closed, complete, others = map(_bare, names)
    Campaign.objects.filter(pk=nothing.pk).update(state=Campaign.State.OPEN)
    for made in (closed, complete, others):
        factories.released_batch(made, ["FT934-480"])
    campaigns.close(campaign=closed, by=closed.created_by)
    assessor, (helper,) = User.objects.get(username="assessor"), factories.assessors(others, "help")
    while factories.judge_next(complete, assessor, 1):
        pass
    for pair in others.pairs.all():
        assert assignments.claim(pair=pair, by=helper)
    return names


# ---------------------------------------------------------------------------------- crowd links

ENGLISH = {
    "question": "Do you read English every day?",
    "answers": [{"text": "Yes", "out": False}, {"text": "No, hardly ever", "out": True}],
}
BY = "?PROLIFIC_PID="
LOOKING = "?" + "=".join(entering.PREVIEW)


def _of_crowd_links(users: dict[str, User]) -> list[Shot]:
    """One by which many came, and guests at work, done, and screened out; others that are over."""
    made = states.organized(_bare("guests"))
    factories.released_batch(made, [f"FT934-48{number}" for number in range(4)], labels=9)
    link = states.crowd_link(made, "Prolific, first wave", out_code="C0UT77", **ENGLISH)
    users["leaver"] = done = states.crowd_guest(link, "5f3c0d9a8b7e6d5c4b3a2f1e", device="one")
    for _ in range(link.judgments):
        assert factories.judge_next(made, done, 1)
    entering.finish(guest=done.crowd_guest)
    users["guest"] = at_work = states.crowd_guest(link, "5a", device="one")
    assert factories.judge_next(made, at_work, 2)
    states.crowd_guest(link, "out", answer="No, hardly ever")
    expired, new = (
        states.crowd_link(made, "The <wave> before"),
        states.crowd_link(made, "The next wave"),
    )
    CrowdLink.objects.filter(pk=expired.pk).update(expires=seconds_from_now(-1))
    work = f"/work/{link.token}/"
    pages = [f"links/{each.pk}/" for each in (link, expired, new)]
    return [
        *_shots("organizer", f"/c/{made.slug}/", "links/", *pages, "people/"),
        *_shots("organizer", "/c/empty/", "links/"),
        *_shots(
            "anonymous", work, "", f"{BY}5a", f"{BY}out", f"?assignmentId={entering.PREVIEW[1]}"
        ),
        Shot("anonymous", f"/work/{expired.token}/", 410),
        Shot("anonymous", f"{work}{BY}{'p' * 101}", 400),
        Shot("assessor", work),
        *(Shot(who, f"{work}done/") for who in ("guest", "leaver")),
        *(Shot(who, f"/c/{made.slug}/judge/") for who in ("guest", "leaver")),
    ]


# ---------------------------------------------------------------------------------- the rest


DOCUMENTATION = ("guide.md", "methods.md", "methods/intervals.md", "methods/labels.md")


def _of_everybody(users: dict[str, User]) -> list[Shot]:
    members.create_token(user=users["organizer"], name="nightly script")
    made = Campaign.objects.get(slug="active")
    guest, _ = members.add(campaign=made, by=made.created_by, username="guest", role="assessor")
    uid, token = members.invitation(guest.user, by=made.created_by) or ("", "")
    accounts.invite(made)
    return [
        *(Shot(who, address) for who, address in accounts.pages(users)),
        *(Shot(who, "/") for who in ROLES),
        *_shots("anonymous", "/", "sign-in/", f"join/{uid}/{token}/"),
        *_shots("organizer", "/", "account/", "account/password/", "c/new/", "api/"),
        *_shots("organizer", "/docs/", *DOCUMENTATION),
        Shot("organizer", "/?q=archived"),
        Shot("organizer", "/nowhere/", 404),
        Shot("assessor", "/c/five/settings/", 403),
        Shot("organizer", "/c/five/", 404),
        Shot("organizer", "/c/guests/settings/close/", 405),
        Shot("anonymous", f"/join/{uid}/gone/", 404),
        Shot("assessor", f"/c/{_broken()}/judge/", 500),
    ]


def _broken() -> str:
    """A campaign whose row nobody could have written, so that its desk is an error of ours."""
    made = _bare("broken")
    factories.released_batch(made, ["FT934-480"])
    Campaign.objects.filter(pk=made.pk).update(grades=5)
    return str(made.slug)


ADMINISTRATION = ("", "people/", "storage/", "work/", "report/")


def _of_admins() -> list[Shot]:
    """After all others, so that there is something to see; and of nothing."""
    account = f"accounts/{User.objects.get(username='beginner').pk}/"
    return _shots(
        "admin", "/site/", *ADMINISTRATION, account, "?q=nothing", "people/?q=nothing",
        "report/?since=2001-01-01&until=2001-01-31", "report/?since=2002-01-01&until=2001-01-31",
    )  # fmt: skip


def _that_wait() -> list[Shot]:
    """Last: whatever is due from here on is left so."""
    reading, failing = (
        states.with_material("reading"),
        states.with_material("not-drawn"),
    )
    drafted, drawing, planned = map(states.with_material, ("drafted", "drawing", "planned"))
    rows = {made.slug: evaluation.drafted(made) for made in (drafted, drawing, failing)}
    for slug in ("drawing", "not-drawn"):
        rounds.request_draw(row=rows[slug], by=rows[slug].created_by)
    states.fail(Job.objects.get(kind="draw", target=rows["not-drawn"].pk))
    rounds.draft(campaign=planned, by=planned.created_by, plan=evaluation.plan())
    shots = _shots("organizer", "/c/planned/", "", "rounds/1/")
    for slug in ("drafted", "drawing", "not-drawn"):
        shots += _shots("organizer", f"/c/{slug}/", "", "rounds/", "rounds/1/")
    copied = _shots("organizer", f"/c/{gallery_files.copied().slug}/", "", "material/")
    return [*shots, *copied, *_asking(), *_files_that_wait(reading)]


def _files_that_wait(made: Campaign) -> list[Shot]:
    content = evaluation.SMALL.runs["run1.run"].replace(b"run1", b"late")
    late = [factories.stored(made, content, name=f"late{n}.run", kind="run") for n in range(5)]
    reading, dead, _waits, canceled, given_up = late
    running = jobs.claim(Job.objects.get(kind="upload", target=reading.pk).pk)
    assert running is not None
    running.report(0.4, "line 12 000")
    Upload.objects.filter(pk__in=[reading.pk, dead.pk]).update(state=Upload.State.READING)
    job = Job.objects.get(kind="upload", target=dead.pk)
    Job.objects.filter(pk=job.pk).update(state=Job.State.FAILED, error=states.ERROR)
    uploads.cancel(upload=canceled, by=made.created_by)
    states.fail(Job.objects.get(kind="upload", target=given_up.pk))
    files = [f"material/files/{each.pk}/" for each in late]
    return _shots("organizer", "/c/reading/", "", "material/", *files)
