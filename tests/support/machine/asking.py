"""How the machine acts and is answered: one act after another, cut, or two at once."""

import copy
import itertools
from collections.abc import Collection
from functools import partial
from typing import Any

from django.http import HttpResponse

from judging.models import Campaign, User
from tests.support import races
from tests.support.machine.cuts import Cut, Killed, nothing
from tests.support.machine.seen import Seen
from tests.support.machine.stage import client_of
from tests.support.machine.told import QUOTED, Fault, Told
from tests.support.rest import RestClient


class Asking:
    """How acts are done, cut and answered; what the acts are, `world.World` says."""

    def __init__(self, campaign: Campaign, clients: dict[str, RestClient]) -> None:
        self.campaign = campaign
        self.clients = dict(clients)  # and those of guests, who are others in each example
        self.told = Told()
        self.seen = Seen.of(campaign)
        self.told.members = set(self.seen.members)
        self.told.uploads = set(self.seen.uploads)
        self.cut: Cut = nothing()
        self.unanswered = False
        self.alone = True
        self.count = itertools.count(1)
        self.trail: list[str] = []

    @property
    def base(self) -> str:
        return f"/api/campaigns/{self.campaign.slug}/"

    def do(self, name: str, who: int, pick: int, choice: int, cut: Cut | None = None) -> None:
        """One act, perhaps cut; then everything is looked at anew."""
        self.trail.append(f"{name} {who} {pick} {choice}")
        self.cut = cut = cut or nothing()
        self.unanswered = False
        try:
            getattr(self, name)(who, pick, choice)
        except Killed:
            self.unanswered = True
        self.cut = nothing()
        self.seen = Seen.of(self.campaign)
        if cut.fell:
            self._find_out(drawn=self.unanswered)
        for number, each in self.seen.rounds.items():
            if each.state == "drafted":  # perhaps again: its draw has failed
                self.told.asked.pop(number, None)

    def meanwhile(self, *act: Any) -> None:
        """An act in the middle of another one, whose outcome neither the model nor `seen` has."""
        self.alone = False
        try:
            self.do(*act)
        finally:
            self.alone = True

    def at_once(self, *acts: tuple[str, int, int, int]) -> None:
        """Acts in threads that begin together, each with a connection of its own."""
        self.alone = False
        works = [partial(getattr(self, name), *numbers) for name, *numbers in acts]
        outcomes = races.at_once(works)
        self.alone = True
        for error in outcomes:
            if isinstance(error, BaseException):
                raise error
        self.seen = Seen.of(self.campaign)
        self._find_out(drawn=False)

    def _find_out(self, *, drawn: bool) -> None:
        """Whoever got no answer looks, and so does who cannot know whether he came first.

        What is drawn is not looked up where it was promised: that must be kept.
        """
        told, seen = self.told, self.seen
        told.members, told.uploads = set(seen.members), set(seen.uploads)
        told.excluded = set(seen.excluded)
        before, told.rounds = told.rounds, {}
        for number, each in seen.rounds.items():
            row = {name: getattr(each.row, name) for name in QUOTED}
            told.rounds[number] = row if each.state == "drafted" else before.get(number, row)
            if drawn and each.state != "drafted" and number not in told.asked:
                told.asked[number] = told.rounds[number]
                told.raised(number)

    def may(self, name: str) -> bool:
        """Whether there is something to do it to."""
        told, seen = self.told, self.seen
        states = {row.state for row in seen.assignments}
        there: dict[str, object] = {
            **dict.fromkeys(("change", "draw", "discard", "report"), told.rounds),
            **dict.fromkeys(
                ("cancel", "remove", "take_in", "take_in_all", "dismiss"), told.uploads
            ),
            **dict.fromkeys(
                ("claim", "judge", "again", "correct", "skip", "later", "learn"), self.assessors()
            ),
            **dict.fromkeys(
                ("begin_talk", "discuss", "end_talk", "call_in", "dissolve"), seen.talks
            ),
            **dict.fromkeys(("answer_alone", "revise", "remark", "peek"), seen.talks),
            **dict.fromkeys(("decide",), seen.unfinished),
            **dict.fromkeys(("decide_rest", "from_qrels"), seen.is_drawn),
            "ask_again": "skipped" in states,
            "retry": seen.given_up,
            "work": seen.pending,
            "take_back": seen.exclusions,
        }
        needed = {
            "claim": {seen.state} & {"open"}, "again": told.said, "correct": states & {"judged"},
            "judge": states & {"leased", "lapsed"}, "skip": states & {"leased"},
            "later": states & {"leased"},
        }  # fmt: skip
        return bool(there.get(name, True)) and bool(needed.get(name, True))

    def send(
        self,
        who: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        files: bool = False,
        expect: Collection[int | str] | None = None,
    ) -> Any:
        """The body of a yes, {} for one without; None for a refusal, and where no answer came.

        ``expect`` names the statuses and codes that may be, unless somebody came in between.
        """
        if who not in self.clients:
            self.clients[who] = client_of(User.objects.get(username=who))
        call = getattr(copy.copy(self.clients[who]), method)
        extra = {"HTTP_IDEMPOTENCY_KEY": key} if key else {}
        how = "multipart" if files else "json"
        cut, self.cut = self.cut, nothing()
        with cut.falling():
            answer: HttpResponse = call(f"{self.base}{path}", body, format=how, **extra)
        status = answer.status_code
        said = answer.json() if answer.content else {}
        what = status if status < 400 else said["code"]
        if cut.fell and cut.ends and status == 503:
            self.unanswered = True
            return None
        if status >= 500:
            raise Fault(f"{method} {path}: {status} {said}")
        if expect is not None and self.alone and not cut.fell and what not in expect:
            expected = sorted(map(str, expect))
            raise Fault(f"{who} {method} {path} {body}: {what} {said}, expected {expected}")
        return said if status < 400 else None

    def assessors(self) -> list[str]:
        return sorted(name for name, role in self.told.members if role == "assessor")

    def organizer(self, who: int) -> str:
        names = sorted(name for name, role in self.told.members if role == "organizer")
        return names[who % len(names)]

    def _number(self, name: str) -> str:
        """Another one every time, also for threads."""
        return f"{name}-{next(self.count)}"


def one(things: Any, pick: int) -> Any:
    return things[pick % len(things)] if things else None
