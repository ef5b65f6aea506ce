"""What is done about people and what they said: gold, senior grades, whom somebody looks at, and
what is learned from."""

from typing import Any

from judging.models import SeniorGrade, TrainingPair, User
from tests.support.machine.asking import Asking, one


class Learning(Asking):
    """Acts of organizers about people who judge, and of people who learn."""

    def gold(self, who: int, pick: int, choice: int) -> None:
        """Also a pair that is gold already, or of which there is no text."""
        self._known(who, pick, choice, "gold/", "gold_invalid")

    def mix(self, who: int, pick: int, choice: int) -> None:
        body = {"every": (3, 0, 4)[choice % 3]}
        self.send(self.organizer(who), "patch", "quality-rules/", body, expect={200})

    def hold(self, who: int, pick: int, choice: int) -> None:
        self._of_person(who, pick, "hold", {"reason": "let us talk"}, "held_already")

    def let_go_on(self, who: int, pick: int, choice: int) -> None:
        self._of_person(who, pick, "go-on", None, "not_held")

    def adjudicate(self, who: int, pick: int, choice: int) -> None:
        """Gives a pair a senior grade, or takes one back; also of a pair that nobody judged."""
        rows = SeniorGrade.objects.filter(pair__campaign=self.campaign).order_by("pk")
        if choice != 5 and (pair := one(sorted(self.seen.pairs.keys() - self.seen.gold), pick)):
            body = {"pair": pair, "grade": choice % self.seen.scale, "reason": "read twice"}
            expect: set[int | str] = {201, "not_judged"}
            self.send(self.organizer(who), "post", "senior-grades/", body, expect=expect)
        elif row := one(list(rows), pick):
            back, expect = f"senior-grades/{row.pk}/back/", {200, "taken_back"}
            self.send(self.organizer(who), "post", back, {"reason": "a slip"}, expect=expect)

    def rule(self, who: int, pick: int, choice: int) -> None:
        body = {"senior_grades": ("beside", "supersede")[choice % 2]}
        self.send(self.organizer(who), "patch", "", body, expect={200})

    def teach(self, who: int, pick: int, choice: int) -> None:
        """Or takes a pair out again."""
        rows = TrainingPair.objects.filter(campaign=self.campaign).order_by("pk")
        if choice != 5:
            self._known(who, pick, choice, "training/pairs/", "training_invalid")
        elif row := one(list(rows), pick):
            expect: set[int | str] = {204, "training_needed"}
            self.send(self.organizer(who), "delete", f"training/pairs/{row.pk}/", expect=expect)

    def examine(self, who: int, pick: int, choice: int) -> None:
        """Asks new people to pass, or nobody any more."""
        body = {"obligatory": choice % 2 == 1, "threshold": (0.5, 1.0)[pick % 2], "tries": pick % 3}
        expect: set[int | str] = {200, "training_invalid"}
        self.send(self.organizer(who), "patch", "training/", body, expect=expect)

    def admit(self, who: int, pick: int, choice: int) -> None:
        self._of_person(who, pick, "admit", None, "not_learning")

    def learn(self, who: int, pick: int, choice: int) -> None:
        """Somebody answers the next pair of their training."""
        if (name := one(self.assessors(), who)) is None:
            return
        over: set[int | str] = {200, "no_training", "training_over"}
        lesson = self.send(name, "post", "training/lesson/begin/", expect=over)
        if lesson and lesson["pair"]:
            body = {"pair": lesson["pair"]["id"], "grade": choice % self.seen.scale}
            self.send(name, "post", "training/lesson/answer/", body, expect={200})

    def _known(self, who: int, pick: int, choice: int, path: str, refused: str) -> None:
        pairs = [{"topic": f"t{1 + pick % 2}", "docno": f"d{choice}", "grades": [0]}]
        expect: set[int | str] = {201, refused}
        self.send(self.organizer(who), "post", path, {"pairs": pairs}, expect=expect)

    def _of_person(self, who: int, pick: int, how: str, body: Any, refused: str) -> None:
        if name := one(self.assessors(), pick):
            pk = User.objects.get(username=name).pk
            expect: set[int | str] = {200, refused}
            path = f"people/{pk}/{how}/"
            self.send(self.organizer(who), "post", path, body, expect=expect)
