"""Everything that people and workers do to one campaign, and a model of what they were told.

Acts take three numbers and make of them what there is to act on: who does it, to which of the
things that are there, and what exactly. So any act can be tried in any state, and be cut by any
other. People act through the REST interface, workers through the functions that Celery calls.

The model holds what was acknowledged. Where nobody else came in between, it also says what the
answer must be: a refusal that nothing explains is a fault, as is a yes to what must be refused.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.db.models import F

from judging.errors import UserError
from judging.models import Assignment, CrowdLink, Job, KnownGrade, Membership
from judging.services import entering, jobs, steward
from tests.support.journal import Said
from tests.support.machine.asking import one
from tests.support.machine.cuts import nothing
from tests.support.machine.recalling import LOOKS, Recalling
from tests.support.machine.sorting import Sorting
from tests.support.machine.stage import FILES, LINK, PEOPLE
from tests.support.machine.told import CHANGES, PLANS, QUOTED, Fault, quoted

LATER = timedelta(minutes=45)
ORGANIZERS: tuple[str, ...] = (
    "draft", "change", "draw", "discard", "upload", "cancel", "remove", "settle", "open", "close",
    "join", "leave", "decide", "decide_rest", "from_qrels", "ask_again", "report", "retry",
    "exclude", "take_back", "gold", "mix", "hold", "let_go_on", "teach", "examine", "admit",
    "adjudicate", "rule", "convene", "begin_talk", "discuss", "end_talk", "call_in", "dissolve",
    "take_in", "take_in_all", "dismiss",
    *LOOKS,
)  # fmt: skip
ASSESSORS: tuple[str, ...] = (
    "claim", "judge", "again", "correct", "skip", "later", "enter",
    "learn", "answer_alone", "revise", "remark",
)  # fmt: skip
WORKERS: tuple[str, ...] = ("work", "catch_up", "wait", "sweep")


class World(Recalling, Sorting):
    """The acts, by their names."""

    # Rounds

    def draft(self, who: int, pick: int, choice: int) -> None:
        seed = self._number("seed")
        plan = PLANS[pick % len(PLANS)] | {"seed": seed, "prior": "rank"}
        if "baseline" in plan and plan["baseline"] not in self.seen.tags:
            plan = PLANS[0] | {"seed": seed}
        closed = self.seen.state == "closed"
        row = self.send(
            self.organizer(who), "post", "rounds/", plan,
            expect={"campaign_closed"} if closed else {201},
        )  # fmt: skip
        if row:
            wrong = {
                name: row[name]
                for name, value in plan.items()
                if name in QUOTED and row[name] != value
            }
            if wrong:
                raise Fault(f"drafted as {wrong}, asked for {plan}")
            self.told.rounds[row["number"]] = quoted(row)

    def change(self, who: int, pick: int, choice: int) -> None:
        if (number := self._round(pick)) is None:
            return
        change = CHANGES[choice % len(CHANGES)]
        row = self.send(
            self.organizer(who), "patch", f"rounds/{number}/", change,
            expect=self._if_drafted(number, 200),
        )  # fmt: skip
        if row and number in self.told.rounds:
            self.told.rounds[number] = quoted(row)
            if number in self.told.asked:  # somebody had it drawn before the answer came
                self.told.asked[number] = quoted(row)

    def draw(self, who: int, pick: int, choice: int) -> None:
        if (number := self._round(pick)) is None:
            return
        state = self.seen.rounds[number].state
        design = self.seen.rounds[number].preview.get("design")
        body = {"design": design} if choice % 2 and design else {}
        expect: set[int | str] = {202} if state in ("drafted", "drawing") else {"frozen"}
        if body and state == "drafted":
            expect.add("design_changed")
        if self.seen.state == "closed":
            expect = {"campaign_closed"}
        row = self.send(self.organizer(who), "post", f"rounds/{number}/draw/", body, expect=expect)
        if row and number in self.told.rounds:
            self.told.asked[number] = self.told.rounds[number]
            self.told.raised(number)

    def discard(self, who: int, pick: int, choice: int) -> None:
        if (number := self._round(pick)) is None:
            return
        gone = self.send(
            self.organizer(who), "delete", f"rounds/{number}/", expect=self._if_drafted(number, 204)
        )
        if gone is not None:
            self.told.rounds.pop(number, None)
            self.told.asked.pop(number, None)

    def _round(self, pick: int) -> int | None:
        return one(sorted(self.told.rounds), pick)

    def _if_drafted(self, number: int, yes: int) -> set[int | str]:
        state = self.seen.rounds[number].state
        return {"drafted": {yes}, "drawing": {"being_drawn"}}.get(state, {"frozen"})  # type: ignore[return-value]

    # Material

    def upload(self, who: int, pick: int, choice: int) -> None:
        """One, or two at once; or only to be checked."""
        kind, name, content = FILES[pick % len(FILES)]
        body: dict[str, Any] = {"kind": kind, "files": [SimpleUploadedFile(name, content)]}
        if choice >= 4:
            body["check_only"] = True
        if choice == 4:
            _, name, content = FILES[(pick + 1) % len(FILES)]
            body["files"].append(SimpleUploadedFile(name, content))
            body.pop("kind")  # each is what it looks like
        rows = self.send(
            self.organizer(who), "post", "uploads/", body, files=True,
            expect={"campaign_closed"} if self.seen.state == "closed" else {201},
        )  # fmt: skip
        self.told.uploads |= {row["id"] for row in rows or ()}

    def cancel(self, who: int, pick: int, choice: int) -> None:
        pk = one(sorted(self.told.uploads), pick)
        if pk is None:
            return
        reading = self.seen.uploads[pk].state in ("stored", "reading")
        self.send(
            self.organizer(who), "post", f"uploads/{pk}/cancel/",
            expect={200} if reading else {"not_reading"},
        )  # fmt: skip

    def remove(self, who: int, pick: int, choice: int) -> None:
        pk = one(sorted(self.told.uploads), pick)
        if pk is None:
            return
        gone = self.send(
            self.organizer(who), "delete", f"uploads/{pk}/", expect=self._if_unused(pk)
        )
        if gone is not None:
            self.told.uploads.discard(pk)

    def _if_unused(self, pk: int) -> set[int | str]:
        upload = self.seen.uploads[pk]
        if upload.state == "reading" and not self.seen.has_failed("upload", pk):
            return {"in_use"}
        if upload.state == "accepted" and upload.is_sampled:
            if self.seen.is_drawn:
                return {"in_use"}
            if self.seen.is_being_drawn:
                return {"being_drawn"}
            if pk in self.seen.named:
                return {"in_use"}
        return {204}

    # The campaign

    def settle(self, who: int, pick: int, choice: int) -> None:
        """Changes scale or depth."""
        scale = [{"name": f"grade {n}", "meaning": ""} for n in range(2 + choice % 3)]
        body = {"depth": 2 + choice % 3} if pick % 2 else {"grades": scale}
        name, value = next(iter(body.items()))
        fixed = (
            {"fixed"}
            if self.seen.is_drawn
            else {"being_drawn"}
            if self.seen.is_being_drawn
            else {200}
        )
        same = getattr(self.seen.campaign, name) == value
        self.send(self.organizer(who), "patch", "", body, expect={200} if same else fixed)

    def open(self, who: int, pick: int, choice: int) -> None:
        refused = "wrong_state" if self.seen.state == "open" else 200
        expect = {refused} if self.seen.is_drawn else {"nothing_drawn"}
        self.send(self.organizer(who), "post", "open/", expect=expect)

    def close(self, who: int, pick: int, choice: int) -> None:
        expect = {200} if self.seen.state == "open" else {"wrong_state"}
        self.send(self.organizer(who), "post", "close/", expect=expect)

    # People

    def join(self, who: int, pick: int, choice: int) -> None:
        name = PEOPLE[pick % len(PEOPLE)]
        role = "organizer" if name.startswith("o") and choice % 2 else "assessor"
        there = (name, role) in self.told.members
        body = {"username": name, "role": role}
        row = self.send(
            self.organizer(who), "post", "members/", body, expect={200} if there else {201}
        )
        if row:
            self.told.members.add((name, role))

    def leave(self, who: int, pick: int, choice: int) -> None:
        """Also organizers who remove each other, or themselves."""
        name, role = sorted(self.told.members)[pick % len(self.told.members)]
        pk = self.seen.members.get((name, role))
        organizers = [each for each in self.told.members if each[1] == "organizer"]
        last = role == "organizer" and len(organizers) == 1
        gone = self.send(
            self.organizer(who), "delete", f"members/{pk}/",
            expect={"last_organizer"} if last else {204},
        )  # fmt: skip
        if gone is not None:
            self.told.members.discard((name, role))

    def exclude(self, who: int, pick: int, choice: int) -> None:
        """Also somebody whose work is excluded already, or who never judged."""
        name = PEOPLE[2 + pick % 3]
        ground = ("identity", "time", "grades")[choice % 3]
        body = {"assessor": name, "ground": ground, "reason": "a robot"}
        known = (name, "assessor") in self.told.members or name in self.seen.given_pairs
        expect: set[int | str] = {201} if known else {"no_assessor", "not_found"}
        if known and name in self.told.excluded:
            expect = {"excluded_already"}
        row = self.send(self.organizer(who), "post", "exclusions/", body, expect=expect)
        if row:
            self.told.excluded.add(name)

    def take_back(self, who: int, pick: int, choice: int) -> None:
        exclusion = one(self.seen.exclusions, pick)
        if exclusion is None:
            return
        name = exclusion.assessor.username
        row = self.send(
            self.organizer(who), "post", f"exclusions/{exclusion.pk}/back/", {"reason": "no robot"},
            expect={"taken_back"} if exclusion.ended else {200},
        )  # fmt: skip
        if row:
            self.told.excluded.discard(name)

    def enter(self, who: int, pick: int, choice: int) -> None:
        """Somebody opens the crowd link and agrees: a new guest, or one who was here."""
        link = CrowdLink.objects.select_related("campaign").filter(campaign=self.campaign).first()
        if link is None:
            return
        visitor = entering.visitor([("PROLIFIC_PID", f"p{pick % 4}")], "a device")
        cut, self.cut = self.cut, nothing()
        try:
            with cut.falling():
                entering.enter(link=link, who=visitor, answer="", address="192.0.2.1")
        except UserError as error:
            if error.code not in ("link_full", "campaign_not_open"):
                raise Fault(f"p{pick % 4} enters: {error.code}") from error
        except OperationalError:
            if not cut.fell:
                raise
        come = Membership.objects.filter(campaign=self.campaign, user__is_guest=True)
        names = come.values_list("user__username", flat=True)
        self.told.members |= {(name, "assessor") for name in names}

    # Judging

    def claim(self, who: int, pick: int, choice: int) -> None:
        if name := one(self.assessors(), who):
            self.send(name, "post", "assignments/next/", expect={200})

    def judge(self, who: int, pick: int, choice: int) -> None:
        """Judges what is held, or what was held once: late."""
        mine = [
            row for row in self.seen.assignments
            if row.assessor.username in self.assessors()
            and row.state == ("lapsed" if choice == 5 else "leased")
        ]  # fmt: skip
        if row := one(mine, pick):
            self._say(row, choice % self.seen.scale)

    def again(self, who: int, pick: int, choice: int) -> None:
        """Sends a judgment again under the same key, answered or not; or another under that key."""
        known = [
            said for said in self.told.said
            if said.assessor in self.assessors() and said.assignment in self.seen.by_assignment
        ]  # fmt: skip
        if said := one(known, pick):
            grade = (said.grade + (choice == 5)) % self.seen.scale
            self._say(self.seen.by_assignment[said.assignment], grade, said.key)

    def _say(self, row: Assignment, grade: int, key: str | None = None) -> None:
        name, key = row.assessor.username, key or self._number("key")
        before = self._of_key(name, key)
        said = Said(name, key, row.pk, grade, acknowledged=False)
        if before is None:
            self.told.said.append(said)
        answer = self.send(
            name, "post", "judgments/", {"assignment": row.pk, "grade": grade}, key=key,
            expect=self._of_judging(row, said, before),
        )  # fmt: skip
        if answer is not None:
            stored = answer["judgment"]
            if (stored["assignment"], stored["grade"]) != (row.pk, grade):
                raise Fault(f"said {said}, acknowledged {stored}")
            self._acknowledged(Said(name, key, row.pk, grade, acknowledged=True))

    def _of_key(self, name: str, key: str) -> Said | None:
        return next((s for s in self.told.said if (s.assessor, s.key) == (name, key)), None)

    def _acknowledged(self, said: Said) -> None:
        old = self._of_key(said.assessor, said.key)
        self.told.said = [said if each == old else each for each in self.told.said]

    def _of_judging(self, row: Assignment, said: Said, before: Said | None) -> set[int | str]:
        stored = self.seen.judgments_by_key.get((said.assessor, said.key))
        if stored is not None:
            same = (stored.assignment_id, stored.grade) == (said.assignment, said.grade)
            return {200} if same else {"key_reused"}
        if before is not None and before.acknowledged:
            return {200}  # it is lost, which the answer will tell
        if self.seen.state != "open":
            return {"campaign_not_open"}
        return self._while_open(row)

    def _while_open(self, row: Assignment) -> set[int | str]:
        if row.assessor.is_guest and self._is_full(row):
            return {"enough"}
        if row.state in ("judged", "skipped"):
            return {"already_judged"}
        if row.pair.decided:
            return {"pair_closed"}
        full = row.state == "lapsed" and row.pair.held >= row.pair.wanted
        return {"pair_full"} if full else {201}

    def _is_full(self, row: Assignment) -> bool:
        """Whether a guest has as many pairs as they may have, beside this one."""
        taken = [
            each for each in self.seen.assignments
            if each.assessor_id == row.assessor_id and each.pk != row.pk
            and (each.state in ("judged", "leased") or each.set_aside)
        ]  # fmt: skip
        return row.assessor.username in self.seen.done or len(taken) >= LINK.judgments

    def correct(self, who: int, pick: int, choice: int) -> None:
        mine = [
            row for row in self.seen.assignments
            if row.state == "judged" and row.assessor.username in self.assessors()
        ]  # fmt: skip
        if (row := one(mine, pick)) is None:
            return
        name, key, grade = row.assessor.username, self._number("key"), choice % self.seen.scale
        now = row.revision + row.set_aside  # of gold the latter says it
        stale = choice == 5 and now > 1
        body = {"grade": grade, "revision": now - stale}
        expect = {200} if self.seen.state == "open" else {"campaign_not_open"}
        said = Said(name, key, row.pk, grade, acknowledged=False)
        self.told.corrected.append(said)
        path = f"judgments/{row.pk}/"
        if stale and self.seen.state == "open":
            expect = {"superseded"}
        if self.send(name, "patch", path, body, key=key, expect=expect) is not None:
            self.told.corrected.remove(said)
            self.told.corrected.append(replace(said, acknowledged=True))

    def skip(self, who: int, pick: int, choice: int) -> None:
        self._put_away(pick, "skip", {"reason": "not my language"})

    def later(self, who: int, pick: int, choice: int) -> None:
        self._put_away(pick, "later", None)

    def _put_away(self, pick: int, how: str, body: Any) -> None:
        mine = [
            row for row in self.seen.assignments
            if row.state == "leased" and row.assessor.username in self.assessors()
        ]  # fmt: skip
        if row := one(mine, pick):
            path = f"assignments/{row.pk}/{how}/"
            self.send(row.assessor.username, "post", path, body, expect={200})

    # Decisions

    def decide(self, who: int, pick: int, choice: int) -> None:
        if (pair := one(self.seen.unfinished, pick)) is None:
            return
        grade = None if pair.judged and choice != 5 else choice % self.seen.scale
        body = {"pair": pair.pk, "grade": grade, "reason": "nobody can"}
        right = (grade is None) == bool(pair.judged)
        self.send(
            self.organizer(who),
            "post",
            "decisions/",
            body,
            expect={201} if right else {"pair_done"},
        )

    def decide_rest(self, who: int, pick: int, choice: int) -> None:
        grade = (0, 1, None)[choice % 3]
        body = {"grade": grade, "reason": "the rest"}
        job = self.seen.job("decide-rest", self.campaign.pk)
        other = job and job.state in ("queued", "running") and job.data["grade"] != grade
        self.send(
            self.organizer(who), "post", "decisions/rest/", body,
            expect={"rest_under_way"} if other else {202},
        )  # fmt: skip

    def from_qrels(self, who: int, pick: int, choice: int) -> None:
        read = KnownGrade.objects.filter(campaign=self.campaign)
        longer = read.filter(grade__gte=self.seen.scale).exists()  # of the scale before
        expect: set[int | str] = {"scale_changed"} if longer else {202}
        if self.seen.state != "open":
            expect = {"campaign_not_open"}
        self.send(self.organizer(who), "post", "decisions/from-qrels/", expect=expect)

    def ask_again(self, who: int, pick: int, choice: int) -> None:
        skipped = [row.pair for row in self.seen.assignments if row.state == "skipped"]
        if pair := one(skipped, pick):
            path, body = "decisions/ask-again/", {"pair": pair.pk}
            self.send(self.organizer(who), "post", path, body, expect={204})

    def report(self, who: int, pick: int, choice: int) -> None:
        if (number := self._round(pick)) is None:
            return
        there = self.seen.rounds[number].used is not None  # none if its batches lack labels now
        self.send(
            self.organizer(who), "post", "reports/", {"round": number},
            expect={202} if there else {"nothing_to_report"},
        )  # fmt: skip

    def retry(self, who: int, pick: int, choice: int) -> None:
        """Tries failed work again, as the page that shows it offers."""
        if job := one(self.seen.given_up, pick):
            expect = {"draw_again"} if job.kind == "draw" else {202}
            self.send(self.organizer(who), "post", f"work/{job.pk}/retry/", expect=expect)

    # Workers

    def work(self, who: int, pick: int, choice: int) -> None:
        """A worker takes any of the jobs that are due, in whatever order.

        Where the database is away also for telling that it is, the task ends with that error.
        """
        if job := one(self.seen.pending, pick):
            cut = self.cut
            try:
                with cut.falling():
                    jobs.run(job.pk)
            except OperationalError:
                if not cut.fell:
                    raise

    def catch_up(self, who: int, pick: int, choice: int) -> None:
        """Workers do all that is due."""
        for _ in range(40):
            due = Job.objects.filter(jobs.due(), campaign=self.campaign).order_by("pk")
            ids = list(due.values_list("pk", flat=True))
            for pk in ids:
                jobs.run(pk)
            if not ids:
                return
        raise Fault(f"work makes work without end: {list(due.values_list('kind', 'note'))}")

    def wait(self, who: int, pick: int, choice: int) -> None:
        """Time passes: leases of pairs and of jobs run out, what waits is due."""
        Assignment.objects.filter(pair__campaign=self.campaign).update(
            lease_until=F("lease_until") - LATER
        )
        mine = Job.objects.filter(campaign=self.campaign)
        mine.update(due=F("due") - LATER)
        mine.exclude(lease_until=None).update(lease_until=F("lease_until") - LATER)

    def sweep(self, who: int, pick: int, choice: int) -> None:
        """The steward's turn, which it outlives."""
        with self.cut.falling(), suppress(OperationalError):
            steward.sweep()
