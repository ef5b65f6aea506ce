"""What is done with files that were only checked, or rejected: taken in, or dismissed."""

from judging.models import Upload
from tests.support.machine.asking import one
from tests.support.machine.talking import Talking
from tests.support.machine.told import Fault

READ_AGAINST_TOPICS = ("run", "qrels", "predictions")
LEFT = ("checked", "rejected")


class Sorting(Talking):
    """Acts of organizers upon files one by one, and upon those that came at once."""

    def take_in(self, who: int, pick: int, choice: int) -> None:
        """Also what is taken in already, or was rejected."""
        if (pk := one(sorted(self.told.uploads), pick)) is None:
            return
        upload = self.seen.uploads[pk]
        expect: set[int | str] = {"not_checked"}
        if upload.state == "checked":
            expect = self._if_there_are_topics([upload])
        if self.seen.state == "closed":
            expect = {"campaign_closed"}
        self.send(self.organizer(who), "post", f"uploads/{pk}/take-in/", expect=expect)

    def take_in_all(self, who: int, pick: int, choice: int) -> None:
        """All of a drop that are good; where none is left, nothing is done."""
        if (drop := one(self._drops(), pick)) is None:
            return
        good = [row for row in self._of_drop(drop) if row.state == "checked"]
        expect = self._if_there_are_topics(good)
        if self.seen.state == "closed":
            expect = {"campaign_closed"}
        path = f"uploads/drops/{drop}/take-in/"
        told = self.send(self.organizer(who), "post", path, expect=expect)
        if told and self.alone and told["to_take_in"]:
            raise Fault(f"all of {drop} are taken in, and of {told} are left")

    def dismiss(self, who: int, pick: int, choice: int) -> None:
        """What is read, or was taken in, stays."""
        if (drop := one(self._drops(), pick)) is None:
            return
        gone = {row.pk for row in self._of_drop(drop) if row.state in LEFT}
        path = f"uploads/drops/{drop}/"
        if self.send(self.organizer(who), "delete", path, expect={204}) is not None:
            self.told.uploads -= gone

    def _drops(self) -> list[str]:
        """The last first: what is left is mostly of it."""
        rows = sorted(self.seen.uploads.items(), reverse=True)
        return list(dict.fromkeys(row.drop for _, row in rows if row.drop))

    def _of_drop(self, drop: str) -> list[Upload]:
        return [row for row in self.seen.uploads.values() if row.drop == drop]

    def _if_there_are_topics(self, rows: list[Upload]) -> set[int | str]:
        """Of topics that are on their way, or come along, it is enough that they come."""
        there = {row.state for row in self.seen.uploads.values() if row.kind == "topics"}
        against = any(row.kind in READ_AGAINST_TOPICS for row in rows)
        return {202, "topics_missing"} if against and "accepted" not in there else {202}
