"""Every address outside the REST interface, asked for and posted to by everybody.

The table says who gets which status. An address that it does not list fails the walk, so nobody
can add a page without saying whose it is. (The REST interface has a walk of its own.)
"""

import copy
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.cookies import SimpleCookie
from typing import Any

import pyotp
import pytest
from django.db import transaction
from django.test import Client
from django.urls import get_resolver

from estimation.models import MachineJudge, Report, Round
from estimation.services import reports, rounds
from estimation.services.machines import judges
from judging.models import (
    Assignment,
    Batch,
    Campaign,
    CrowdLink,
    Job,
    Pair,
    SecondFactor,
    User,
)
from judging.services import (
    assignments,
    crowd_links,
    entering,
    exclusions,
    factors,
    gold,
    members,
    seniors,
    training,
)
from judging.services.crowd_links import LinkPlan
from tests.core.length import LONG
from tests.support import choices, factories
from tests.support.addresses import patterns, routes
from tests.support.kept import Kept
from tests.support.material import small_material
from tests.support.norms_walked import WALKED, WALKED_BODIES, norming_pair
from tests.support.walking import (
    CAMPAIGN,
    NO,
    Statuses,
    administering,
    all_alike,
    assessing,
    everybody,
    organizing,
)

pytestmark = pytest.mark.django_db

PLACE = re.compile(r"<\w+:(\w+)>")
ROLES = ("anonymous", "assessor", "other", "organizer", "admin")
OTHERS = ROLES[:-1]  # whom the administration is closed to
PLAN = rounds.RoundPlan(
    measure="DCG@5", reported=["P@5"], budget=12, batch_size=4, seed="walk", method="poisson"
)

ROUND, MACHINES = f"{CAMPAIGN}rounds/<int:number>/", f"{CAMPAIGN}material/machines/"
TABLE: dict[str, tuple[Statuses, Statuses]] = {
    "": (everybody(), everybody()),
    "health/live": (all_alike(), all_alike()),
    "health/ready": (all_alike(503), all_alike(503)),  # no worker runs here
    "sign-in/": ((200, 302, 302, 302, 302), (200, 302, 302, 302, 302)),
    "sign-in/second/": (all_alike(302), all_alike(302)),  # nobody gave a password before
    "sign-in/passkey/": (all_alike(405), all_alike(302)),
    "sign-in/passkey/options/": (all_alike(405), all_alike(409)),  # the site has no name
    "sign-on/": (all_alike(404), all_alike(405)),  # no provider is set up
    "sign-on/back/": (all_alike(404), all_alike(405)),
    "forgot/": (all_alike(), all_alike()),
    "reset/<str:uid>/<str:token>/": (all_alike(404), all_alike(404)),  # that of an invitation
    "sign-out/": (NO, everybody(302)),
    "join/<str:uid>/<str:token>/": (all_alike(), all_alike(302)),
    "work/<str:key>/": (all_alike(), (302, 409, 409, 409, 409)),
    "work/<str:key>/done/": (all_alike(302), all_alike(405)),
    "account/": (everybody(), everybody()),
    "account/password/": (everybody(), everybody()),
    "account/address/": (everybody(), everybody()),
    "account/address/<str:token>/": (everybody(404), everybody(404)),
    "account/sign-on/remove/": (NO, everybody(302)),
    "account/confirm/": (everybody(), everybody()),
    "account/factors/": (everybody(), everybody()),
    "account/factors/codes/": (everybody(302), everybody(302)),  # asked who they are first
    "account/factors/passkeys/": (everybody(302), everybody(302)),
    "account/factors/recovery/": (NO, everybody(302)),
    "account/factors/<int:pk>/remove/": (NO, everybody(302)),  # others are led to their own
    "account/keys/<int:pk>/revoke/": (NO, everybody(302)),  # others are led to their own
    "c/new/": ((302, 403, 200, 200, 200), (302, 403, 200, 200, 200)),
    CAMPAIGN: ((302, 302, 404, 200, 200), (302, 302, 404, 200, 200)),
    f"{CAMPAIGN}comments/": (organizing(), organizing()),
    f"{CAMPAIGN}comments/file/": (organizing(), organizing()),
    f"{CAMPAIGN}decisions/": (organizing(), organizing()),
    f"{CAMPAIGN}decisions/<int:pk>/": (NO, organizing(302)),
    f"{CAMPAIGN}decisions/labels/": (NO, organizing(302)),
    f"{CAMPAIGN}decisions/qrels/": (NO, organizing(302)),
    f"{CAMPAIGN}decisions/rest/": (NO, organizing(302)),
    f"{CAMPAIGN}judge/": (assessing(), NO),
    f"{CAMPAIGN}judge/<int:pk>/": (NO, assessing(302)),
    f"{CAMPAIGN}judge/<int:pk>/later/": (NO, assessing(302)),
    f"{CAMPAIGN}judge/<int:pk>/skip/": (NO, assessing(302)),
    f"{CAMPAIGN}judged/": (assessing(), NO),
    f"{CAMPAIGN}judged/<int:pk>/": (assessing(), assessing(302)),
    f"{CAMPAIGN}material/": (organizing(), organizing()),
    f"{CAMPAIGN}material/documents/": (organizing(), organizing()),
    f"{CAMPAIGN}material/documents/<int:pk>/": (organizing(), organizing()),
    f"{CAMPAIGN}material/files/": (organizing(), organizing()),
    f"{CAMPAIGN}material/files/<int:pk>/": (organizing(), organizing()),
    f"{CAMPAIGN}material/files/<int:pk>/remove/": (NO, organizing(302)),
    f"{CAMPAIGN}material/files/<int:pk>/cancel/": (NO, organizing(302)),
    MACHINES: (organizing(), organizing()),
    f"{MACHINES}new/": (organizing(), organizing(422)),
    f"{MACHINES}<int:pk>/": (organizing(), organizing()),
    f"{MACHINES}<int:pk>/answers/<int:number>/file/": (organizing(), NO),
    f"{MACHINES}<int:pk>/change/": (NO, organizing(422)),
    f"{MACHINES}<int:pk>/start/": (NO, organizing(302)),
    f"{MACHINES}<int:pk>/stop/": (NO, organizing(302)),
    f"{MACHINES}<int:pk>/remove/": (NO, organizing(302)),
    f"{CAMPAIGN}material/predictions/": (organizing(), organizing()),
    f"{CAMPAIGN}material/predictions/<int:pk>/": (organizing(), organizing()),
    f"{CAMPAIGN}material/runs/": (organizing(), organizing()),
    f"{CAMPAIGN}material/runs/fields/": (NO, organizing(302)),
    f"{CAMPAIGN}material/runs/<int:pk>/": (organizing(), organizing()),
    f"{CAMPAIGN}material/runs/<int:pk>/about/": (NO, organizing(302)),
    f"{CAMPAIGN}material/runs/<int:pk>/replace/": (NO, organizing(302)),
    f"{CAMPAIGN}material/runs/<int:pk>/withdraw/": (organizing(200), organizing(302)),
    f"{CAMPAIGN}material/runs/<int:pk>/back/": (NO, organizing(302)),
    f"{CAMPAIGN}material/files/<int:pk>/take-in/": (NO, organizing(302)),
    f"{CAMPAIGN}material/drops/<slug:drop>/take-in/": (NO, organizing(302)),
    f"{CAMPAIGN}material/drops/<slug:drop>/dismiss/": (NO, organizing(302)),
    f"{CAMPAIGN}material/topics/": (organizing(), organizing()),
    f"{CAMPAIGN}material/topics/<int:pk>/": (organizing(), organizing()),
    f"{CAMPAIGN}bar/": (organizing(), organizing()),
    f"{CAMPAIGN}judgments/": (organizing(), organizing()),
    f"{CAMPAIGN}judgments/<int:pk>/": (organizing(), organizing()),
    f"{CAMPAIGN}people/": (organizing(), organizing(302)),
    f"{CAMPAIGN}people/many/": (NO, organizing(302)),
    f"{CAMPAIGN}people/again/": (NO, organizing(302)),
    f"{CAMPAIGN}people/links/": (organizing(), NO),
    f"{CAMPAIGN}people/<int:pk>/again/": (NO, organizing(302)),
    f"{CAMPAIGN}people/<int:pk>/remove/": (NO, organizing(302)),
    f"{CAMPAIGN}assessors/<int:pk>/": (organizing(), NO),
    f"{CAMPAIGN}assessors/<int:pk>/exclude/": (NO, organizing(302)),
    f"{CAMPAIGN}assessors/<int:pk>/hold/": (NO, organizing(302)),
    f"{CAMPAIGN}assessors/<int:pk>/go-on/": (NO, organizing(409)),  # they do not wait
    f"{CAMPAIGN}assessors/<int:pk>/admit/": (NO, organizing(409)),  # they need not learn
    f"{CAMPAIGN}training/": (assessing(), assessing(302)),
    f"{CAMPAIGN}training/begin/": (NO, assessing(302)),
    f"{CAMPAIGN}training/set/": (organizing(), NO),
    f"{CAMPAIGN}training/set/add/": (NO, organizing(302)),
    f"{CAMPAIGN}training/set/ask/": (NO, organizing(302)),
    f"{CAMPAIGN}training/set/<int:pk>/remove/": (NO, organizing(302)),
    **WALKED,
    f"{CAMPAIGN}gold/": (organizing(), NO),
    f"{CAMPAIGN}gold/add/": (NO, organizing(302)),
    f"{CAMPAIGN}gold/mix/": (NO, organizing(302)),
    f"{CAMPAIGN}gold/rules/": (NO, organizing(302)),
    f"{CAMPAIGN}gold/<int:pk>/retire/": (NO, organizing(302)),
    f"{CAMPAIGN}gold/<int:pk>/restore/": (NO, organizing(302)),  # it is in use
    f"{CAMPAIGN}judgments/<int:pk>/gold/": (NO, organizing(302)),
    f"{CAMPAIGN}exclusions/<int:pk>/back/": (NO, organizing(302)),
    f"{CAMPAIGN}judgments/<int:pk>/senior/": (NO, organizing(409)),  # nobody has judged it
    f"{CAMPAIGN}seniors/<int:pk>/back/": (NO, organizing(302)),
    f"{CAMPAIGN}links/": (organizing(), organizing(302)),
    f"{CAMPAIGN}links/<int:pk>/": (organizing(), NO),
    f"{CAMPAIGN}links/<int:pk>/close/": (NO, organizing(302)),
    f"{CAMPAIGN}links/<int:pk>/reopen/": (NO, organizing(302)),  # it is open
    f"{CAMPAIGN}links/<int:pk>/payments/": (organizing(), NO),
    f"{CAMPAIGN}queue/": (organizing(), organizing()),
    f"{CAMPAIGN}queue/seen/": (NO, organizing(302)),
    f"{CAMPAIGN}queue/unseen/": (NO, organizing(302)),
    f"{CAMPAIGN}ranking/": (organizing(302), organizing(302)),
    f"{CAMPAIGN}reports/": (organizing(302), organizing(302)),
    f"{CAMPAIGN}rounds/": (organizing(), organizing()),
    f"{CAMPAIGN}rounds/new/": (organizing(), organizing()),
    ROUND: (organizing(), organizing()),
    f"{ROUND}change/": (NO, organizing(422)),
    f"{ROUND}discard/": (NO, organizing(302)),
    f"{ROUND}draw/": (NO, organizing(302)),
    f"{ROUND}end/": (NO, organizing(302)),
    f"{ROUND}pause/": (NO, organizing(302)),
    f"{ROUND}resume/": (NO, organizing(302)),  # it does not pause
    f"{ROUND}extend/": (NO, organizing(302)),
    f"{ROUND}preview/": (organizing(), organizing()),
    f"{ROUND}ranking/": (organizing(), organizing()),
    f"{ROUND}ranking/batches/": (organizing(), organizing()),
    f"{ROUND}ranking/compare/": (organizing(), organizing()),
    f"{ROUND}ranking/compare/topics/<int:pk>/": (organizing(), organizing()),
    f"{ROUND}ranking/history/": (organizing(), organizing()),
    f"{ROUND}ranking/labels/": (organizing(), organizing()),
    f"{ROUND}ranking/pairs/": (organizing(), organizing()),
    f"{ROUND}ranking/topics/": (organizing(), organizing()),
    f"{ROUND}reports/": (organizing(), organizing()),
    f"{ROUND}reports/<int:pk>/": (organizing(), organizing()),
    f"{ROUND}reports/<int:pk>/file/": (organizing(), organizing()),
    f"{ROUND}reports/make/": (NO, organizing(302)),
    f"{ROUND}reports/names/": (NO, organizing()),
    f"{CAMPAIGN}work/<int:pk>/again/": (NO, organizing(302)),
    f"{CAMPAIGN}settings/": (organizing(), organizing()),
    f"{CAMPAIGN}settings/open/": (NO, organizing(302)),
    f"{CAMPAIGN}settings/pause/": (NO, organizing(302)),
    f"{CAMPAIGN}settings/close/": (NO, organizing(302)),
    f"{CAMPAIGN}settings/archive/": (NO, organizing(409)),  # it is open
    f"{CAMPAIGN}settings/unarchive/": (NO, organizing(302)),
    f"{CAMPAIGN}settings/duplicate/": (NO, organizing(302)),
    f"{CAMPAIGN}settings/delete/": (organizing(), organizing(409)),  # it is open
    f"{CAMPAIGN}settings/log/": (organizing(), organizing()),
    f"{CAMPAIGN}settings/log/file/": (organizing(), organizing()),
    "site/": (administering(), administering()),
    "site/people/": (administering(), administering()),
    "site/accounts/<int:pk>/": (administering(), administering(302)),
    "site/accounts/<int:pk>/factors/remove/": (NO, administering(302)),
    "site/storage/": (administering(), administering()),
    "site/work/": (administering(), administering()),
    "site/work/<int:pk>/again/": (NO, administering(302)),
    "site/report/": (administering(), administering()),
    "site/report/file/": (administering(), administering()),
    "site/report/pdf/": (administering(), administering()),
    "docs/": (everybody(), everybody()),
    "docs/<path:path>": (everybody(), everybody()),
}
OUTSIDE_ADMIN = {302, 403, 404}
LINK = {
    "name": "wave", "most_people": "5", "judgments": "40", "least_left": "1", "bonus": "0",
    "consent": "I agree.", "code_kind": "one", "currency": "EUR", "per_judgment": "0.1",
    "per_hour": "0", "least_minutes": "0", "bonus_above": "0", "out_pay": "0",
}  # fmt: skip
BODIES: dict[str, dict[str, str]] = {
    "join/<str:uid>/<str:token>/": {"password": "correct-horse-7", "again": "correct-horse-7"},
    f"{CAMPAIGN}decisions/<int:pk>/": {"action": "grade", "grade": "0", "reason": "off topic"},
    f"{CAMPAIGN}decisions/rest/": {"grade": "0", "reason": "not in the pool", "sure": "on"},
    f"{CAMPAIGN}judge/<int:pk>/": {"grade": "1", "key": "walk"},
    f"{CAMPAIGN}judge/<int:pk>/skip/": {"reason": "no text"},
    f"{CAMPAIGN}judged/<int:pk>/": {"grade": "2", "key": "walk", "revision": "1"},
    f"{CAMPAIGN}links/": LINK,
    f"{CAMPAIGN}people/": {"username": "somebody", "role": "assessor"},
    f"{CAMPAIGN}people/many/": {"people": "one\ntwo", "role": "assessor"},
    f"{CAMPAIGN}assessors/<int:pk>/exclude/": {"ground": "time", "reason": "a second each"},
    f"{CAMPAIGN}assessors/<int:pk>/hold/": {"reason": "let us talk"},
    f"{CAMPAIGN}gold/add/": {"text": "topic,docno,grade\nt2,d3,1\n"},
    f"{CAMPAIGN}training/": {"pair": "1", "grade": "1"},
    f"{CAMPAIGN}training/set/add/": {"text": "topic,docno,grade\nt2,d1,1\n"},
    f"{CAMPAIGN}training/set/ask/": {"percent": "70", "tries": "2"},
    **WALKED_BODIES,
    f"{CAMPAIGN}gold/mix/": {"every": "12"},
    f"{CAMPAIGN}gold/rules/": {"least": "12", "warn_below": "0.5"},
    f"{CAMPAIGN}judgments/<int:pk>/gold/": {"grades": "1"},
    f"{CAMPAIGN}exclusions/<int:pk>/back/": {"reason": "a mistake"},
    f"{CAMPAIGN}judgments/<int:pk>/senior/": {"grade": "1", "reason": "read twice"},
    f"{CAMPAIGN}seniors/<int:pk>/back/": {"reason": "a mistake"},
    "site/accounts/<int:pk>/": {"active": "on"},
    f"{CAMPAIGN}settings/duplicate/": {"name": "Again"},
    f"{CAMPAIGN}settings/delete/": {"name": "walked"},
}


@dataclass(frozen=True)
class World:
    """A campaign in the middle of its life, with something behind every address."""

    cookies: dict[str, SimpleCookie]
    values: dict[str, str]
    keys: dict[str, int]

    def client(self, role: str) -> Client:
        """A browser of its own for each request: some change who is signed in."""
        client = Client(raise_request_exception=False)
        client.cookies = copy.deepcopy(self.cookies[role])
        return client

    def address(self, route: str) -> str:
        """The route with what is behind it: the drafted round for what one does with drafts."""
        last = route.rstrip("/").rsplit("/", 1)[-1]
        values = {**self.values, "pk": str(self.keys.get(key_kind(route), 0))}
        if last in ("preview", "change", "draw", "discard"):
            values["number"] = values["draft"]
        return "/" + PLACE.sub(lambda place: values[place[1]], route)


def key_kind(route: str) -> str:
    """What the number in an address counts: the word before it."""
    return route.split("/<int:pk>", maxsplit=1)[0].rsplit("/", 1)[-1]


@pytest.fixture
def world(kept: Kept, on_paper: None) -> World:
    return kept("walked", _world)


def _world() -> World:
    made = factories.campaign(slug="walked")
    material = small_material(topics=2, documents=8, runs=3, depth=6)
    upload = factories.stored_upload(made, material.documents, name="d.jsonl", kind="documents")
    for name, content in material.runs.items():
        factories.stored_upload(made, content, name=name, kind="run")
    drawn, drafted = drawn_round(made), rounds.draft(campaign=made, by=made.created_by, plan=PLAN)
    (assessor,) = factories.assessors(made, "assessor")
    skipped, held = judge(made, assessor)
    factories.run_due_jobs()
    reports.request(row=drawn, by=made.created_by)
    factories.run_due_jobs()
    members.create_token(user=assessor, name="key")
    invited, _ = members.add(campaign=made, by=made.created_by, username="new", role="assessor")
    (excluded,) = factories.assessors(made, "excluded")
    exclusion = exclusions.exclude(
        campaign=made, assessor=excluded, by=made.created_by, ground="identity", reason="a robot"
    )
    looked_at = {"kind": "apart", "target": str(held.pair_id), "version": "1"}
    for what in ("seen", "unseen"):
        BODIES[f"{CAMPAIGN}queue/{what}/"] = looked_at
    link = crowd_link(made)
    talked = norming_pair(made, assessor)
    uid, token = members.invitation(invited.user, by=made.created_by) or ("", "")
    return World(
        cookies_of(made, assessor),
        {
            "slug": made.slug,
            "number": str(drawn.number),
            "draft": str(drafted.number),
            "drop": "none",
            "path": "guide.md",
            "pair": str(talked.pk),
            "uid": uid,
            "key": link.token,
            "token": token,
        },
        {
            "keys": assessor.api_tokens.get().pk,
            "factors": factor_of(assessor).pk,
            "people": invited.pk,
            "assessors": assessor.pk,
            "accounts": assessor.pk,
            "exclusions": exclusion.pk,
            "seniors": senior_grade(made),
            "gold": gold_pair(made),
            "set": training_pair(made),
            "norming": talked.session_id,
            "sessions": talked.session_id,
            "decisions": skipped.pk,
            "judge": held.pk,
            "judgments": held.pair_id,
            "runs": made.runs.all()[0].pk,
            "topics": made.topics.all()[0].pk,
            "judged": Assignment.objects.filter(assessor=assessor, state="judged")[0].pk,
            "files": upload.pk,
            "links": link.pk,
            "machines": machine(made).pk,
            "predictions": choices.grades(made).pk,
            "documents": made.documents.all()[0].pk,
            "work": Job.objects.get(kind="recompute", target=drawn.pk).pk,
            "reports": Report.objects.get(name="report.html").pk,
        },
    )


def senior_grade(made: Campaign) -> int:
    judged = made.pairs.select_related("campaign").filter(judged__gte=1).order_by("pk")[0]
    return seniors.give(pair=judged, by=made.created_by, grade=1, reason="read twice").pk


def gold_pair(made: Campaign) -> int:
    found, problems = gold.read(made, "topic,docno,grade\nt1,d3,1\n", "gold.csv")
    return gold.add(campaign=made, by=made.created_by, found=found, problems=problems)[0].pk


def training_pair(made: Campaign) -> int:
    found, problems = gold.read(made, "topic,docno,grade\nt1,d1,1\n", "training.csv")
    by = made.created_by
    return training.add(campaign=made, by=by, found=found, problems=problems)[0].pk


def factor_of(user: User) -> SecondFactor:
    draft = factors.draft(user=user)
    factors.set_up_codes(user=user, token=draft.token, code=pyotp.TOTP(draft.secret).now())
    return user.factors.get()


def crowd_link(made: Campaign) -> CrowdLink:
    """One by which somebody has come."""
    plan = LinkPlan("walked", most_people=1000, judgments=9, consent="I take part.")
    link = crowd_links.make(campaign=made, by=made.created_by, plan=plan)
    who = entering.visitor([("PROLIFIC_PID", "p1")], "a device")
    entering.enter(link=link, who=who, answer="", address="192.0.2.1")
    return link


def machine(made: Campaign) -> MachineJudge:
    plan = judges.MachinePlan("machine", "nowhere", "small", max_calls=10)
    return judges.create(campaign=made, by=made.created_by, plan=plan)


def drawn_round(made: Campaign) -> Round:
    row = rounds.draft(campaign=made, by=made.created_by, plan=PLAN)
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    Campaign.objects.filter(pk=made.pk).update(state=Campaign.State.OPEN)
    made.refresh_from_db()
    return row


def judge(made: Campaign, assessor: User) -> tuple[Pair, Assignment]:
    """The first batch is judged; of the next, one pair is skipped and one is held."""
    while not made.batches.filter(state=Batch.State.COMPLETE, pair_count__gt=0).exists():
        assert factories.judge_next(made, assessor, 1)
    skipped = assignments.claim_next(campaign=made, by=assessor)
    assert skipped is not None
    assignments.skip(assignment=skipped, by=assessor, reason="no text")
    held = assignments.claim_next(campaign=made, by=assessor)
    assert held is not None
    return skipped.pair, held


def cookies_of(made: Campaign, assessor: User) -> dict[str, SimpleCookie]:
    users = {
        "assessor": assessor,
        "other": factories.campaign(slug="another").created_by,
        "organizer": made.created_by,
        "admin": User.objects.create_superuser("admin"),
    }
    clients = {role: Client() for role in ROLES}
    for role, user in users.items():
        clients[role].force_login(user)
    return {role: client.cookies for role, client in clients.items()}


@pytest.mark.slow
def test_the_administration_is_for_admins(world: World) -> None:
    """Others are sent to a sign-in, by turns or, at length, all; nobody finds a page that fails."""
    turns = itertools.cycle([*OTHERS, *reversed(OTHERS)])  # each of them gets and posts
    for route, _ in patterns(get_resolver()):
        if not route.startswith("admin/"):
            continue
        address = "/" + re.sub(r"<[^>]+>", "1", route)
        for method in ("get", "post"):
            assert asked(world, "admin", route, method, address) < 500, (method, address)
            for other in OTHERS if LONG else [next(turns)]:
                shut = asked(world, other, route, method, address) in OUTSIDE_ADMIN
                assert shut or route == "admin/login/", (method, address)


@pytest.mark.slow
def test_the_door_of_the_administration_is_that_of_the_site(world: World) -> None:
    """Else passwords would be tried at another one, or a second factor passed by."""
    root = User.objects.create_superuser("root", password="correct-horse-7")
    factor_of(root)
    client, right = world.client("anonymous"), {"username": "root", "password": "correct-horse-7"}
    answer = client.post("/admin/login/?next=/admin/", right)
    assert (answer.status_code, answer["Location"]) == (302, "/sign-in/?next=%2Fadmin%2F")
    assert client.post("/sign-in/?next=/admin/", right)["Location"] == "/sign-in/second/"
    assert client.get("/admin/").status_code == 302
    assert world.client("assessor").get("/admin/login/?next=/admin/").status_code == 403


def test_every_address_is_listed() -> None:
    assert routes() == set(TABLE)


def status(send: Callable[[], Any]) -> int:
    """What a request is answered with; what it changed is taken back."""
    with transaction.atomic():
        code: int = send().status_code
        transaction.set_rollback(True)
    return code


WHO = [
    pytest.param(role, marks=[] if role in ("assessor", "admin") else [pytest.mark.sqlite_only])
    for role in ROLES
]
"""Under PostgreSQL those who between them get to see everything: to others the same is refused."""


@pytest.mark.slow
@pytest.mark.parametrize("role", WHO)
def test_everybody_gets_what_is_theirs(world: World, role: str) -> None:
    found = {
        route: tuple(asked(world, role, route, method) for method in ("get", "post"))
        for route in TABLE
    }
    place = ROLES.index(role)
    assert found == {route: (get[place], post[place]) for route, (get, post) in TABLE.items()}


def asked(world: World, role: str, route: str, method: str, address: str = "") -> int:
    body = BODIES.get(route, {}) if method == "post" else {}
    send = getattr(world.client(role), method)
    return status(partial(send, address or world.address(route), body))
