"""What must hold after every act, and what must be possible in the end."""

import json
import re
from collections import Counter
from collections.abc import Iterator

from django.utils import timezone

from estimation.models import Report
from estimation.services import files, quoting
from judging.coming import open_links
from judging.models import (
    Batch,
    BatchPair,
    Campaign,
    Decision,
    GoldPair,
    Job,
    Judgment,
    Membership,
    NormingAnswer,
    NormingComment,
    NormingPair,
    Pair,
    SeniorGrade,
    TrainingPair,
    User,
)
from judging.selectors import labels
from judging.statements import reads
from tests.support.journal import (
    BatchRow,
    PairRow,
    Stored,
    Tables,
    contradictions,
    differences,
)
from tests.support.machine.cuts import GONE
from tests.support.machine.recalling import recalled
from tests.support.machine.rows import Rows
from tests.support.machine.seen import HERE, RoundSeen, Seen
from tests.support.machine.stage import LINK
from tests.support.machine.told import QUOTED, Told
from tests.support.machine.world import World

OF_QRELS = "qrels"
BUG = re.compile(r"\w+(Error|Exception|DoesNotExist|Interrupt): ")
EXPECTED = f"OperationalError: {GONE}"


def faults(world: World) -> list[str]:
    """All that must not be, as sentences; empty if nothing is wrong."""
    seen, told = world.seen, world.told
    return [
        *judgments(seen, told),
        *caps(seen, told),
        *places(seen),
        *batches(seen),
        *gold(seen),
        *learners(seen),
        *seniors(seen),
        *talks(seen, told),
        *recalled(world),
        *people(seen, told),
        *uploads(seen, told),
        *rounds(seen, told),
        *work(seen),
        *dead_ends(seen),
    ]


def judgments(seen: Seen, told: Told) -> Iterator[str]:
    """Nothing acknowledged is lost or doubled, and nothing is made up."""
    stored = [_stored(row) for row in seen.judgments]
    of_people = [row for row in stored if row.assessor != OF_QRELS]
    yield from differences([*told.said, *told.corrected], of_people)
    audits = [
        (target, data["grade"]) for action, target, data in seen.audits
        if action in ("judge", "correct")
    ]  # fmt: skip
    there = Counter((f"judgment {row.id}", row.grade) for row in of_people)
    if there != Counter(audits):
        yield f"judgments and their audit rows differ: {there - Counter(audits)}"
    pairs = [PairRow(p.pk, p.wanted, p.held, p.judged, p.decided) for p in seen.pairs.values()]
    of_gold = {row.pk for row in seen.assignments if row.gold}
    count = [row for row in stored if row.assignment not in seen.set_aside | of_gold]
    pairs = [row for row in pairs if row.id not in seen.gold]
    yield from contradictions(
        Tables(count, pairs, [], [(f"judgment {row.id}", row.grade) for row in count])
    )
    current = Counter(row.assignment_id for row in seen.judgments)
    latest = {row.assignment_id: row.grade for row in sorted(seen.judgments, key=_revision)}
    for row in seen.assignments:
        if row.revision + row.set_aside != current[row.pk]:
            yield f"{row} has {current[row.pk]} judgments and revision {row.revision}"
        if row.grade != latest.get(row.pk):
            yield f"{row} has the label {row.grade}, and was judged {latest.get(row.pk)}"


def _revision(j: Judgment) -> int:
    return j.revision


def _stored(j: Judgment) -> Stored:
    return Stored(
        j.pk,
        j.assessor.username,
        j.key,
        j.assignment_id,
        j.assignment.pair_id,
        j.grade,
        j.revision,
    )


def caps(seen: Seen, told: Told) -> Iterator[str]:
    """No pair has more labels and live leases than somebody was told it would get.

    But for those that came in the place of work that counts again since.
    """
    labels = Counter(
        row.assignment.pair_id
        for row in seen.judgments
        if row.revision == 1 and row.assignment_id not in seen.set_aside
    )
    total = labels + seen.live_leases()
    back = sum(row.ended is not None for row in seen.exclusions)
    for pair, count in total.items():
        if pair not in seen.gold and count > told.labels + back:
            yield f"pair {pair} has {count} labels and leases, asked for {told.labels}"


def places(seen: Seen) -> Iterator[str]:
    """A place is held by a lease or a judgment, and by nothing else."""
    taken = Counter(row.pair_id for row in seen.assignments if row.state in ("leased", "judged"))
    for pair in seen.pairs.values():
        if pair.held != taken[pair.pk]:
            yield f"pair {pair.pk} says {pair.held} places are held, and {taken[pair.pk]} are"
    for row in seen.assignments:
        if row.campaign_id != seen.pairs[row.pair_id].campaign_id:
            yield f"{row} is of another campaign than its pair"
    held = Counter(row.assessor.username for row in seen.assignments if row.state == "leased")
    for name, count in held.items():
        if count > 1:
            yield f"{name} holds {count} pairs at once"
    decided = {pk for pk, pair in seen.pairs.items() if pair.decided}
    without = {
        pk for pk, row in seen.decisions.items()
        if row.kind == Decision.Kind.AS_IS and not seen.pairs[pk].judged
    }  # fmt: skip
    if decided != set(seen.decisions) - without:
        yield f"decided are {decided}, decisions are there of {set(seen.decisions)}"


def batches(seen: Seen) -> Iterator[str]:
    lacking = Counter(row.batch_id for row in seen.batch_pairs if seen.lacks(row))
    rows = [BatchRow(b.number, b.state, b.remaining, lacking[b.pk]) for b in seen.batches]
    yield from contradictions(Tables([], [], rows, []))
    states = [batch.state for batch in seen.batches if batch.state != Batch.State.PREPARING]
    waiting = [number for number, state in enumerate(states) if state == Batch.State.WAITING]
    if waiting and waiting != list(range(waiting[0], len(states))):
        yield f"batches are opened out of their order: {states}"


def gold(seen: Seen) -> Iterator[str]:
    """It counts nowhere, stands in no batch, and nobody meets it beside the pair that was drawn."""
    met = Counter(
        (row.assessor.username, row.pair.topic_id, row.pair.docno)
        for row in seen.assignments
        if not row.pair.other
    )
    for who, count in met.items():
        if count > 1:
            yield f"{who} met the same document {count} times"
    for row in seen.assignments:
        if row.gold != (row.pair_id in seen.gold) or (row.gold and row.revision):
            yield f"{row} is gold: {row.gold}, and has revision {row.revision}"
    if wrong := seen.gold & {row.pair_id for row in seen.batch_pairs}:
        yield f"gold pairs {wrong} are served in batches"
    of_gold = Pair.every.filter(pk__in=seen.gold)
    if seen.gold and (counted := {label.pair for label in labels(of_gold.values("pk"))}):
        yield f"gold pairs {counted} have labels"


def learners(seen: Seen) -> Iterator[str]:
    """Whoever learns holds nothing, and nobody has to who has passed."""
    for (user,) in _LEARNING.rows(campaign=seen.campaign.pk):
        now, who = timezone.now(), User.objects.get(pk=user)
        if any(a.state == "leased" and a.lease_until > now for a in seen.assignments
               if a.assessor_id == user):  # fmt: skip
            yield f"{who} learns, and holds a pair"
        if who.training_tries.filter(campaign=seen.campaign, passed=True).exists():
            yield f"{who} has passed, and learns"


def seniors(seen: Seen) -> Iterator[str]:
    """One is in force for a pair, and counts, as its only label, as the campaign says."""
    if not (rows := _SENIORS(campaign=seen.campaign.pk)):
        return
    rule = seen.campaign.senior_grades
    in_force = {row.pair_id: row for row in rows if row.ended is None}
    if len(in_force) != sum(row.ended is None for row in rows):
        yield "a pair has two senior grades in force"
    for row in rows:
        if row.counts != (row.ended is None and rule == Campaign.Seniors.SUPERSEDE):
            yield f"senior grade {row.pk} counts: {row.counts}, by the rule {rule}"
    counting = SeniorGrade.objects.filter(pair__campaign=seen.campaign, counts=True)
    given = [each for each in labels(counting.values("pair")) if each.decided]
    there = sorted((each.pair, each.grade) for each in given)
    if there != sorted((row.pair_id, row.grade) for row in rows if row.counts):
        yield f"labels of settled pairs are {there}"


def talks(seen: Seen, told: Told) -> Iterator[str]:
    """What was said while it was blind stays, and nobody is told of gold."""
    here = {"campaign": seen.campaign.pk}
    answers = _ANSWERS.rows(**here) if seen.talks else []
    there = {(name, pair): grade for name, pair, grade, _, _ in answers}
    if lost := told.spoken.items() - there.items():
        yield f"people said {lost} before they talked, and {there} is there"
    for name, pair, _, created, begun in answers:
        if begun and created > begun:
            yield f"{name} answered {pair} after the talk had begun"
    comments = {pk for (pk,) in _COMMENTS.rows(**here)} if seen.talks else set()
    if gone := set(told.remarks.values()) - comments:
        yield f"comments {gone} are lost"
    known = set(_GOLD.rows(**here))
    if spoilt := known & {*_TAUGHT.rows(**here), *_TALKED_ABOUT.rows(**here)}:
        yield f"{spoilt} is gold, and people are told of it"


def people(seen: Seen, told: Told) -> Iterator[str]:
    if set(seen.members) != told.members:
        yield f"members are {set(seen.members)}, told was {told.members}"
    if not any(role == "organizer" for _, role in seen.members):
        yield "no organizer is left"
    actions = Counter(action for action, _, _ in seen.audits)
    came, left = actions["add member"], actions["remove member"]
    if 1 + came - left != len(seen.members):
        yield f"{came} came and {left} left, and {len(seen.members)} are there"
    yield from guests(seen)
    yield from exclusions(seen, told, actions)


def uploads(seen: Seen, told: Told) -> Iterator[str]:
    """Each is there, or was removed or dismissed by somebody; what it brought is there with it."""
    if set(seen.uploads) != told.uploads:
        yield f"uploads are {set(seen.uploads)}, told was {told.uploads}"
    counted = Counter({"upload": 0, "remove upload": 0})
    counted.update(action for action, _, _ in seen.audits)
    dismissed = sum(d["files"] for action, _, d in seen.audits if action == "dismiss files")
    left = counted["upload"] - counted["remove upload"] - dismissed
    if left != len(seen.uploads):
        yield f"{left} uploads should be left, and there are {len(seen.uploads)}"
    for pk, row in seen.uploads.items():
        if row.state == "accepted" and row.check_only:
            yield f"upload {pk} was only to be checked, and is taken in"
        if row.state == "checked" and not (row.check_only or row.replaces_id):
            yield f"upload {pk} was to be taken in, and is only checked"
    for tag, pk in seen.tags.items():
        if pk not in seen.uploads or seen.uploads[pk].state != "accepted":
            yield f"the run {tag} is there, and its file {pk} is not taken in"


def guests(seen: Seen) -> Iterator[str]:
    """Nobody who came by the crowd link has more pairs than they may have."""
    taken = Counter(
        row.assessor.username
        for row in seen.assignments
        if row.assessor.is_guest and (row.state in ("judged", "leased") or row.set_aside)
    )
    for name, count in taken.items():
        if count > LINK.judgments:
            yield f"{name} has {count} pairs of {LINK.judgments}"


def exclusions(seen: Seen, told: Told, actions: Counter[str]) -> Iterator[str]:
    """Everything that somebody said counts, or nothing of it."""
    if seen.excluded != told.excluded:
        yield f"excluded are {seen.excluded}, told was {told.excluded}"
    left = actions["exclude work"] - actions["take back exclusion"]
    if len(seen.exclusions) != actions["exclude work"] or len(seen.excluded) != left:
        yield f"{dict(actions)}, and {seen.exclusions} are there"
    for row in seen.assignments:
        out = row.assessor.username in seen.excluded
        if out != (row.state == "excluded") or (out and row.revision):
            yield f"{row} of {row.assessor} is {row.state} with revision {row.revision}"


def rounds(seen: Seen, told: Told) -> Iterator[str]:
    if set(seen.rounds) != set(told.rounds):
        yield f"rounds are {set(seen.rounds)}, told was {set(told.rounds)}"
        return
    labels = {(row.batch_id, row.pair_id): row for row in seen.batch_pairs}
    for number, each in seen.rounds.items():
        row = each.row
        asked = told.asked.get(number) if row.state != "drafted" else told.rounds[number]
        now = {name: getattr(row, name) for name in QUOTED}
        if asked is None:
            yield f"round {number} is {row.state}, and nobody was told that it would be drawn"
        elif now != asked:
            yield f"round {number} is {now}, told was {asked}"
        if row.is_drawn:
            if {name: row.design.get(name) for name in QUOTED} != asked:
                yield f"round {number} is said to have been drawn as {row.design}, asked: {asked}"
            yield from quoting.differences(row)
            yield from _of_drawn(each, labels)
        elif row.state == "drafted" and (each.batches or each.draws):
            yield f"round {number} is a draft, and has {each.batches} and {each.draws}"
    linked = {batch.pk for each in seen.rounds.values() for batch in each.batches}
    for batch in seen.batches:
        if batch.pk not in linked and batch.state != Batch.State.PREPARING:
            yield f"{batch} is served, and no round has drawn it"


def _of_drawn(each: RoundSeen, labels: dict[tuple[int, int], BatchPair]) -> Iterator[str]:
    ready = [batch for batch in each.batches if batch.state != Batch.State.PREPARING]
    served = Counter(pair for batch, pair in labels if batch in {b.pk for b in ready})
    if len(ready) == len(each.batches) and served != each.draws:
        yield f"round {each.row.number} drew {each.draws}, and {served} are served"
    if any(count > 1 for count in served.values()):
        yield f"round {each.row.number} serves a pair twice: {served}"
    allowed = {each.row.labels, each.row.labels + 1}
    wrong = [row for (batch, _), row in labels.items()
             if batch in {b.pk for b in ready} and row.labels not in allowed]  # fmt: skip
    if wrong:
        yield f"round {each.row.number} wants {allowed} labels a pair, and {wrong} do not"


def work(seen: Seen) -> Iterator[str]:
    """What was asked for is done, on its way, or shown as failed; errors are those we made."""
    for job in seen.jobs:
        due = job.state in ("queued", "running")
        if job.done > job.requested or (not due and job.done < job.requested):
            yield f"{job} was asked for {job.requested} times, and {job.done} are done"
        if due and job.due is None:
            yield f"{job} will never be taken"
        if BUG.match(job.error) and job.error != EXPECTED:
            yield f"{job}: {job.error}"
        if job.state == "failed" and not _is_shown(seen, job):
            yield f"{job} has failed, and nothing shows it"


def _is_shown(seen: Seen, job: Job) -> bool:
    if job.kind == "upload":
        upload = seen.uploads.get(job.target)
        return upload is not None and upload.state == "rejected"
    return seen.is_shown_as_failed(job.kind, job.target)


def dead_ends(seen: Seen) -> Iterator[str]:
    """Whatever is not final has an act that a person may do, or work that will end it."""
    for pk, upload in seen.uploads.items():
        if upload.state in ("stored", "reading") and not _goes_on(seen, "upload", pk):
            yield f"upload {pk} is {upload.state}, and nothing reads it"
    for number, each in seen.rounds.items():
        if why := _dead_end(seen, each):
            yield f"round {number} is {each.state}: {why}"
    opened = {batch.pk for batch in seen.batches if batch.state == Batch.State.OPEN}
    for row in seen.batch_pairs:
        if row.batch_id in opened and seen.lacks(row) and not _may_be_judged(seen, row):
            yield f"pair {row.pair_id} waits for labels, and nobody can give or decide them"


def _goes_on(seen: Seen, kind: str, target: int) -> bool:
    return seen.is_pending(kind, target) or seen.is_shown_as_failed(kind, target)


def _dead_end(seen: Seen, each: RoundSeen) -> str:
    """Why nothing leads on; empty if something does."""
    pk = each.row.pk
    if each.state == "drafted":
        there = each.preview or _goes_on(seen, "preview", pk)
        return "" if there else "it has no preview, and none will come"
    if each.state == "drawing":
        return "" if seen.is_pending("draw", pk) else "nothing draws it"
    return _end_of_drawn(seen, each)


def _end_of_drawn(seen: Seen, each: RoundSeen) -> str:
    if not each.batches:
        return "it has no batch"
    if _goes_on(seen, "recompute", each.row.pk):
        return ""
    if (each.used or 0) != each.complete:
        return f"estimates rest on {each.used} of {each.complete} batches, and nothing computes"
    planned = each.row.sampling.draws == "batches" and _goes_on(seen, "plan-batch", each.row.pk)
    if not each.all_complete or each.state == "complete" or planned:
        return ""
    return "everything is judged and computed, nothing is planned, and it is not complete"


def _may_be_judged(seen: Seen, row: BatchPair) -> bool:
    """Somebody holds it, may still take it or come for it, the organizer is asked, or nobody is
    there yet."""
    spent = {a.assessor.username for a in seen.assignments
             if a.pair_id == row.pair_id and a.state in ("judged", "skipped")}  # fmt: skip
    held = any(a.pair_id == row.pair_id and a.state == "leased" for a in seen.assignments)
    there = {name for name, role in seen.members if role == "assessor"}
    there -= seen.excluded | seen.done
    if held or not there or there - spent:
        return True
    return row.pair_id in seen.stuck or open_links(seen.campaign).free > 0


# In the end


def final(world: World) -> list[str]:
    """After everything that people can do was done and all work has ended."""
    seen = world.seen
    found = faults(world)
    found += [f"{job} is left: {job.note} {job.error}" for job in seen.pending]
    found += [f"{job} cannot be mended: {job.error}" for job in seen.given_up if _is_ours(job)]
    for number, each in seen.rounds.items():
        if each.row.is_drawn and each.state != "complete":
            found.append(f"round {number} is {each.state} for ever")
    for upload in seen.uploads.values():
        if upload.state in ("stored", "reading"):
            found.append(f"upload {upload.pk} is {upload.state} for ever")
    return found + reports(world)


def _is_ours(job: Job) -> bool:
    return job.error == EXPECTED or job.error.startswith("The worker died")


def reports(world: World) -> list[str]:
    """What reports quote of a design is what was asked for when it was drawn."""
    found = []
    made = Report.objects.filter(
        estimate_set__round__campaign=world.campaign, name="estimates.json"
    )
    for report in made.select_related("estimate_set__round"):
        number = report.estimate_set.round.number
        said = json.loads(files.path_of(report.file).read_text())["design"]
        quoted = {name: said.get(name) for name in QUOTED}
        if quoted != world.told.asked[number]:
            found.append(f"a report of round {number} quotes {quoted}")
    return found


_LEARNING = reads(
    lambda: Membership.objects.filter(campaign=HERE, learns=True).values_list("user_id")
)
_SENIORS = Rows(lambda: SeniorGrade.objects.filter(pair__campaign=HERE))
_ANSWERS = reads(
    lambda: NormingAnswer.objects.filter(pair__session__campaign=HERE).values_list(
        "person__user__username", "pair_id", "grade", "created", "pair__session__discussed"
    )
)
_COMMENTS = reads(
    lambda: NormingComment.objects.filter(pair__session__campaign=HERE).values_list("pk")
)
_GOLD = reads(
    lambda: GoldPair.objects.filter(campaign=HERE, retired=None).values_list(
        "pair__topic", "pair__docno"
    )
)
_TAUGHT = reads(lambda: TrainingPair.objects.filter(campaign=HERE).values_list("topic", "docno"))
_TALKED_ABOUT = reads(
    lambda: NormingPair.objects.filter(session__campaign=HERE).values_list("topic", "docno")
)
