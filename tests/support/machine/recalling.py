"""What people were told that they have done about norming and senior grades, held against what is
stored; and who looks at a norming session, which tells nothing while it is blind."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from judging.models import (
    CrowdGuest,
    CrowdLink,
    NormingAnswer,
    NormingSession,
    SeniorGrade,
)
from judging.statements import reads
from tests.support.machine.asking import one
from tests.support.machine.rows import Rows
from tests.support.machine.seen import HERE
from tests.support.machine.talking import BLIND, Talking
from tests.support.machine.told import Fault

LOOKS: tuple[str, ...] = ("peek",)
UNTALKED = (NormingSession.State.DRAFT, BLIND)
GRADES = {"grade", "before", "after"}


class Recalling(Talking):
    """``revised``: what people stand by after talking, by person and pair. ``settled``: the senior
    grade of each pair, None where it was taken back. What came while somebody else acted, or was
    cut, is not known any more."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.revised: dict[tuple[str, int], int] = {}
        self.settled: dict[int, int | None] = {}

    def peek(self, who: int, pick: int, choice: int) -> None:
        """An organizer or one who takes part looks for what others said."""
        if (session := one(list(self._sessions()), pick)) is None:
            return
        organizer, part = self.organizer(who), self._part(who, choice)
        told = self.send(organizer, "get", f"norming/{session.pk}/", expect={200})
        if told and told["state"] in UNTALKED and told["findings"] is not None:
            raise Fault(f"{organizer} is told {told['findings']} of a session that is blind")
        self._listen(organizer, session, f"norming/{session.pk}/discussion/")
        if part is not None:
            name, pair = part
            path = f"norming/{pair.session_id}"
            self._listen(name, pair.session, f"{path}/discussion/")
            self._listen(name, pair.session, f"{path}/pairs/{pair.pk}/comments/")

    def _listen(self, name: str, session: NormingSession, path: str) -> None:
        expect: set[int | str] = {"still_blind"} if session.state in UNTALKED else {200}
        told = self.send(name, "get", path, expect=expect)
        session.refresh_from_db(fields=["state"])
        if told is not None and session.state in UNTALKED:
            raise Fault(f"{name} is told {told} while people still judge alone")

    def send(self, who: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
        cut = self.cut
        answer = super().send(who, method, path, body, **more)
        sure = self.alone and not cut.fell
        if re.fullmatch(r"norming/\d+/revisions/", path):
            self._note(self.revised, (who, body["pair"]), body["grade"], answer, sure=sure)
        elif path == "senior-grades/":
            self._note(self.settled, body["pair"], body["grade"], answer, sure=sure)
        elif back := re.fullmatch(r"senior-grades/(\d+)/back/", path):
            pair = SeniorGrade.objects.get(pk=back[1]).pair_id
            self._note(self.settled, pair, None, answer, sure=sure)
        return answer

    def _note(self, known: Any, key: Any, value: Any, answer: Any, *, sure: bool) -> None:
        if not sure:
            known.pop(key, None)
        elif answer is not None:
            known[key] = value


def recalled(world: Recalling) -> Iterator[str]:
    """What people were told is there, and nobody can read in the log what was said blind."""
    here = {"campaign": world.campaign.pk}
    answers = {(name, pair): now for name, pair, now in _answers(world)}
    for key, grade in world.revised.items():
        if answers.get(key) != grade:
            yield f"{key} stands by {grade}, and {answers.get(key)} is stored"
    in_force = dict(_IN_FORCE.rows(**here))
    for pair, given in world.settled.items():
        if in_force.get(pair) != given:
            yield f"pair {pair} has the senior grade {in_force.get(pair)}, told was {given}"
    names = {f"normingsession {row.pk}" for row in world.seen.talks if row.state in UNTALKED}
    for action, target, data in world.seen.audits:
        if target in names and GRADES & set(data):
            yield f"{action} of {target} tells {data} while it is blind"
    for row in world.seen.assignments:
        if row.skip_reason and row.state not in ("skipped", "excluded"):
            yield f"{row} is {row.state}, and was skipped: {row.skip_reason}"
    yield from _left(world)


def _answers(world: Recalling) -> Iterator[tuple[str, int, int]]:
    """What everybody stands by now."""
    if not world.revised:
        return
    of_campaign = NormingAnswer.objects.filter(pair__session__campaign=world.campaign)
    for row in of_campaign.select_related("person__user"):
        yield row.person.user.username, row.pair_id, row.now


def _left(world: Recalling) -> Iterator[str]:
    """Guests take the places of their link, and who left theirs takes no pair."""
    here = {"campaign": world.campaign.pk}
    guests = Counter(link for (link,) in _GUESTS.rows(**here))
    for link in _CROWD_LINKS(**here):
        there = guests[link.pk]
        if link.people != there or there > link.most_people:
            yield f"{link} says {link.people} of {link.most_people} people, and {there} are there"
    failed = dict(_FAILED.rows(**here))
    for row in world.seen.assignments:
        since = failed.get(row.assessor_id)
        if since and row.state == "judged" and row.changed > since:
            yield f"{row} is judged by somebody who had failed"


_IN_FORCE = reads(
    lambda: SeniorGrade.objects.filter(pair__campaign=HERE, ended=None).values_list(
        "pair_id", "grade"
    )
)
_CROWD_LINKS = Rows(lambda: CrowdLink.objects.filter(campaign=HERE))
_GUESTS = reads(
    lambda: (
        CrowdGuest.objects.filter(link__campaign=HERE, failed=None)
        .exclude(account=None)
        .values_list("link_id")
    )
)
_FAILED = reads(
    lambda: (
        CrowdGuest.objects.filter(link__campaign=HERE, failed__isnull=False)
        .exclude(account=None)
        .values_list("account_id", "failed")
    )
)
