"""Many guests at once by one crowd link: nobody is above a cap, codes are given once, sums add up.

Guests are browsers without JavaScript: each opens the link, agrees, judges until there is nothing
more for them, and fetches the code. Some do so in two tabs at once, and some are one participant in
two browsers. There are more of them than places.
"""

import json
import re
import threading
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from tests.conftest import MakeSite
from tests.core.length import bounded
from tests.support.client import Answer, Api
from tests.support.crowd import NOT_NOW, Organizer, got
from tests.support.material import small_material
from tests.support.site import Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

GUESTS = {"postgres": bounded(40, 200), "sqlite": 30}
JUDGMENTS = 3
TRIES = 40
ROUND = {
    "measure": "DCG@10",
    "budget": 1000,
    "batch_size": 100,
    "labels": 2,
    "seed": "guests",
    "method": "poisson",
}
FORM = re.compile(r'action="(/c/guests/judge/\d+/)"')
KEY = re.compile(r'name="key" value="([0-9a-f]+)"')
CODE = re.compile(r'id="completion-code"[^>]* value="(\w+)"')
STORED = """
import json
from django.db.models import Count, F, Q
from judging.models import Assignment, CrowdGuest, CrowdLink, Pair
link = CrowdLink.objects.get()
taken = Assignment.objects.filter(state__in=["judged", "leased"]).order_by()
counts = taken.values("assessor").annotate(n=Count("pk")).values_list("n", flat=True)
said = Count("assignments", filter=Q(assignments__state="judged"))
over = Pair.objects.annotate(n=said).filter(Q(n__gt=F("wanted")) | ~Q(n=F("judged"))).count()
guests = CrowdGuest.objects.exclude(account=None)
print(json.dumps({
    "counter": link.people,
    "accounts": guests.count(),
    "participants": guests.values("participant").distinct().count(),
    "members": link.campaign.memberships.filter(role="assessor").count(),
    "taken": list(counts),
    "over": over,
    "codes": sorted(CrowdGuest.objects.exclude(code="").values_list("code", flat=True)),
}))
"""


@dataclass
class Browser:
    """One guest at work; ``codes`` are all that they were told, ``acknowledged`` their answers."""

    site: Site
    token: str
    participant: str
    tabs: int = 1
    status: int = 0
    acknowledged: set[str] = field(default_factory=set)
    codes: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)

    def run(self) -> None:
        try:
            api = Api(self.site.url, timeout=240)
            place = f"/work/{self.token}/?PROLIFIC_PID={self.participant}"
            self.ask(api, place)
            self.status = self.send(api, place, {"action": "agree"}).status
            if self.status == 302:
                self.judge_in_tabs(api)
                for _ in range(2):
                    page = self.ask(api, f"/work/{self.token}/done/").text
                    self.codes += CODE.findall(page)
        except Exception as error:  # told by the test, which is in another thread
            self.odd.append(f"{self.participant}: {error!r}")

    def judge_in_tabs(self, api: Api) -> None:
        others = []
        for _ in range(self.tabs - 1):
            tab = Api(self.site.url, timeout=240)
            tab.cookies = dict(api.cookies)
            others.append(threading.Thread(target=self.judge, args=[tab]))
        for other in others:
            other.start()
        self.judge(api)
        for other in others:
            other.join()

    def judge(self, api: Api) -> None:
        for _ in range(TRIES):
            page = self.ask(api, "/c/guests/judge/").text
            form, key = FORM.search(page), KEY.search(page)
            if form is None or key is None:
                return
            answer = self.send(api, form[1], {"grade": "1", "key": key[1]})
            if answer.status == 302:
                self.acknowledged.add(form[1])
            else:
                self.odd.append(f"{self.participant}: {answer.status} to a judgment")
        self.odd.append(f"{self.participant}: no end of pairs")

    def ask(self, api: Api, path: str) -> Answer:
        return self.until_answered(lambda: api.get(path))

    def send(self, api: Api, path: str, fields: dict[str, str]) -> Answer:
        return self.until_answered(lambda: api.submit(path, fields))

    def until_answered(self, request: Any) -> Answer:
        for _ in range(TRIES):
            answer: Answer = request()
            if answer.status not in NOT_NOW:
                return answer
        raise AssertionError("the site is never there")


@dataclass(frozen=True)
class Came:
    browsers: list[Browser]
    stored: dict[str, Any]
    payments: dict[str, Any]
    places: int


def crowd(site: Site, guests: int, places: int) -> Came:
    """Ends with the site: a worker of the next one would share its broker."""
    try:
        return _crowd(site, guests, places)
    finally:
        site.stop()


def _crowd(site: Site, guests: int, places: int) -> Came:
    key = site.add_users("olga", organizer=True)["olga"]
    organizer = Organizer(site, site.api(key), "guests")
    organizer.create()
    organizer.bring(small_material(topics=30))
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    plan = {
        "name": "wave", "most_people": places, "judgments": JUDGMENTS, "consent": "I agree.",
        "code_kind": "each", "per_judgment": "0.105", "per_hour": "7", "bonus": "0.01",
    }  # fmt: skip
    link = got(organizer.api.post(f"{organizer.base}links/", plan), 201)
    token = link["address"].rstrip("/").rsplit("/", 1)[-1]
    twice = guests // 10
    browsers = [
        Browser(site, token, f"p{n % (guests - twice)}", tabs=1 + (n % 4 == 0))
        for n in range(guests)
    ]
    threads = [threading.Thread(target=browser.run) for browser in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = json.loads(site.python(STORED).strip().splitlines()[-1])
    table = got(organizer.api.get(f"{organizer.base}links/{link['id']}/payments/"))
    return Came(browsers, stored, table, places)


def wrong(came: Came) -> list[str]:
    """What must not be, in words."""
    stored, found = came.stored, [odd for browser in came.browsers for odd in browser.odd]
    if stored["accounts"] > came.places:
        found.append(f"{stored['accounts']} people of {came.places}")
    if len({stored[name] for name in ("counter", "accounts", "participants", "members")}) > 1:
        found.append(f"counts differ: {stored}")
    if max(stored["taken"], default=0) > JUDGMENTS:
        found.append(f"{max(stored['taken'])} judgments of {JUDGMENTS}")
    if stored["over"]:
        found.append(f"{stored['over']} pairs above their labels")
    told: dict[str, set[str]] = {}
    for browser in came.browsers:
        told.setdefault(browser.participant, set()).update(browser.codes)
    codes = [code for each in told.values() for code in each]
    if any(len(each) > 1 for each in told.values()) or sorted(codes) != stored["codes"]:
        found.append("codes were given twice")
    return found + sums(came.payments, sum(stored["taken"]))


def sums(table: dict[str, Any], judged: int) -> list[str]:
    found = []
    for column in ("minutes", "judgments", "pay", "bonus", "total"):
        if sum(Decimal(row[column]) for row in table["guests"]) != Decimal(table[column]):
            found.append(f"{column} do not add up")
    if table["judgments"] != judged:
        found.append(f"{table['judgments']} judgments are paid of {judged}")
    if len({row["participant"] for row in table["guests"]}) != len(table["guests"]):
        found.append("somebody is paid twice")
    return found


@pytest.mark.parametrize("stack", ["sqlite", "postgres"])
def test_many_guests_at_once_stay_within_all_caps(stack: str, make_site: MakeSite) -> None:
    guests = GUESTS[stack]
    places = guests * 3 // 5

    came = crowd(make_site(stack), guests, places)

    assert wrong(came) == []
    statuses = [browser.status for browser in came.browsers]
    assert set(statuses) == {302, 409}
    assert came.stored["accounts"] == places
    assert came.stored["taken"] == [JUDGMENTS] * places
    assert len(came.stored["codes"]) == places
    acknowledged = {each for browser in came.browsers for each in browser.acknowledged}
    assert len(acknowledged) == places * JUDGMENTS


@pytest.mark.parametrize("stack", bounded(["postgres"], ["sqlite", "postgres"]))
def test_places_that_are_looked_up_before_they_are_taken_are_caught(
    stack: str, make_site: MakeSite
) -> None:
    """It is our comparison that catches them, and that is the same on both."""
    site = make_site(stack, env={"DJANGO_SETTINGS_MODULE": "tests.support.lookers"})

    found = wrong(crowd(site, 30, 3))

    assert any(re.fullmatch(r"\d+ people of 3", each) for each in found), found
