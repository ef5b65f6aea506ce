"""Norming: who judges the same pairs alone and then talks, and the model of what they said."""

from django.db.models import QuerySet

from judging.models import NormingPair, NormingSession
from tests.support.machine.asking import one
from tests.support.machine.learning import Learning
from tests.support.machine.told import Fault

BLIND, TALKS = NormingSession.State.JUDGING, NormingSession.State.DISCUSSION


class Talking(Learning):
    """Acts of organizers who hold norming sessions, and of those who take part."""

    def convene(self, who: int, pick: int, choice: int) -> None:
        """Also with a pair that is gold, or of which there is no text."""
        by = self.organizer(who)
        row = self.send(
            by, "post", "norming/", {"title": "a talk", "by_itself": choice % 2 == 0}, expect={201}
        )
        if row:
            pairs = [
                {"topic": f"t{1 + pick % 2}", "docno": f"d{n}"} for n in {1 + choice, 1 + pick}
            ]
            expect: set[int | str] = {201, "norming_invalid"}
            self.send(by, "post", f"norming/{row['id']}/pairs/", {"pairs": pairs}, expect=expect)

    def begin_talk(self, who: int, pick: int, choice: int) -> None:
        self._move(who, pick, "begin", {"draft": {200, "norming_invalid"}})

    def discuss(self, who: int, pick: int, choice: int) -> None:
        self._move(who, pick, "discuss", {"judging": {200, "norming_unanswered"}})

    def end_talk(self, who: int, pick: int, choice: int) -> None:
        self._move(who, pick, "close", {"discussion": {200}})

    def _move(self, who: int, pick: int, how: str, expect: dict[str, set[int | str]]) -> None:
        if session := one(list(self._sessions()), pick):
            path, refused = f"norming/{session.pk}/{how}/", {"wrong_state"}
            expected = expect.get(session.state, refused)
            self.send(self.organizer(who), "post", path, expect=expected)

    def call_in(self, who: int, pick: int, choice: int) -> None:
        """Changes who takes part."""
        if session := one(list(self._sessions()), pick):
            people = [name for name in self.assessors() if not name.startswith("guest-")]
            body = {"people": people[choice % 3 :]}
            now = session.state in ("draft", BLIND)
            expect: set[int | str] = {200, "norming_invalid"} if now else {"wrong_state"}
            path = f"norming/{session.pk}/people/"
            self.send(self.organizer(who), "post", path, body, expect=expect)

    def dissolve(self, who: int, pick: int, choice: int) -> None:
        if session := one(list(self._sessions()), pick):
            said = session.pairs.filter(answers__isnull=False).exists()
            expect: set[int | str] = {"norming_answered"} if said else {204}
            path = f"norming/{session.pk}/"
            self.send(self.organizer(who), "delete", path, expect=expect)

    def answer_alone(self, who: int, pick: int, choice: int) -> None:
        """Also what was answered already, and after the talk has begun."""
        if (found := self._part(who, pick)) is None:
            return
        name, pair = found
        grade = choice % self.seen.scale
        before = self.told.spoken.get((name, pair.pk))
        there = before is not None or pair.session.state == BLIND
        expect: set[int | str] = {200} if there else {"wrong_state", 200}
        path, body = f"norming/{pair.session_id}/answers/", {"pair": pair.pk, "grade": grade}
        if row := self.send(name, "post", path, body, expect=expect):
            first = self.told.spoken.setdefault((name, pair.pk), row["grade"])
            if row["grade"] != first:
                raise Fault(f"{name} said {first} of {pair} first, and was told {row}")

    def revise(self, who: int, pick: int, choice: int) -> None:
        if (found := self._part(who, pick)) is None:
            return
        name, pair = found
        there = pair.session.state == TALKS
        expect: set[int | str] = {200, "no_answer"} if there else {"wrong_state"}
        path = f"norming/{pair.session_id}/revisions/"
        body = {"pair": pair.pk, "grade": choice % self.seen.scale}
        if row := self.send(name, "post", path, body, expect=expect):
            first = self.told.spoken.get((name, pair.pk), row["grade"])
            if row["grade"] != first:
                raise Fault(f"{name} said {first} of {pair} while it was blind, and now {row}")

    def remark(self, who: int, pick: int, choice: int) -> None:
        """Sent twice, it is one."""
        if (found := self._part(who, pick)) is None:
            return
        name, pair = found
        there = pair.session.state == TALKS
        closed: set[int | str] = {"wrong_state", "still_blind"}
        path = f"norming/{pair.session_id}/pairs/{pair.pk}/comments/"
        body = {"text": "A word.", "key": f"word {choice % 2}"}
        expect: set[int | str] = {201} if there else closed
        if row := self.send(name, "post", path, body, expect=expect):
            of_key = (name, pair.pk, body["key"])
            if self.told.remarks.setdefault(of_key, row["id"]) != row["id"]:
                raise Fault(f"{of_key} is written twice: {row}")

    def _sessions(self) -> QuerySet[NormingSession]:
        return NormingSession.objects.filter(campaign=self.campaign).order_by("pk")

    def _part(self, who: int, pick: int) -> tuple[str, NormingPair] | None:
        """Somebody who still assesses, and a pair of a session that they take part in."""
        name = one(self.assessors(), who)
        rows = NormingPair.objects.filter(
            session__in=self._sessions(), session__people__user__username=name
        )
        begun = rows.exclude(session__state="draft").select_related("session")
        pair = one(list(begun.order_by("pk")), pick)
        return (name, pair) if pair else None
