"""The worker's part: pair by pair a machine judge is asked, until its order or a ceiling ends.

Work comes in slices of seconds, so that nothing else waits long. Every request is counted, with the
most that it can cost, in a transaction before it is sent; what it brought is stored, with what it
did cost, in another one. So a worker that is killed leaves no answer half stored, doubles none and
passes no ceiling: at worst, requests whose answers nobody stored count and are sent again.

Which pairs get a grade depends on the endpoint and the ceilings alone, and on no judgment: see
`order` why that biases nothing.
"""

import json
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from django.db import transaction
from django.db.models import F

from estimation.endpoints import Endpoint
from estimation.machines import ASKING, NANO
from estimation.models import MachineAnswer, MachineJudge, MachinePrompt
from estimation.services.machines import calls, order, prompts, replies
from estimation.services.machines.calls import CallFault, Reply
from estimation.services.machines.judges import ceiling_reached, endpoint_of
from estimation.services.machines.publishing import conclude
from judging import selectors as judging
from judging.errors import UserError
from judging.models import Campaign, Topic
from judging.services import jobs

SLICE_SECONDS = 15.0
TRIES = 4
FIRST_WAIT = 0.5
LONGEST_WAIT = 5.0
"""Seconds that a retry waits within a slice; when the endpoint asks for more, the job waits."""
MOST_PAUSES = 10
DOWN_IN_A_ROW = 3
BARREN_IN_A_ROW = 20
ROOM = 256
"""Tokens that a server may add to what it is sent, to mark who says what."""

Outcome = MachineAnswer.Outcome
Arrived: TypeAlias = "tuple[Call, Reply | CallFault, float]"


def ask(job: jobs.Running) -> None:
    """The job: asks for a slice, and is due again as long as there is more to ask."""
    judge = _judge(job.target)
    if judge is None or not judge.is_at_work:
        return
    why, prompt = "It was stopped.", judge.prompts.last()
    if judge.state == MachineJudge.State.ASKING and prompt is not None:
        try:
            asking = Asking(job, judge, prompt, endpoint_of(judge), _ordered(job, judge, prompt))
            asking.go()
            why = asking.why
            if not why and (asking.todo or asking.pause):
                _go_on_later(job, judge, asking.pause)
                return
        except UserError as error:
            why = error.message
    conclude(job, judge.pk, why)


def _judge(pk: int) -> MachineJudge | None:
    return MachineJudge.objects.select_related("campaign").filter(pk=pk).first()


def _ordered(
    job: jobs.Running, judge: MachineJudge, prompt: MachinePrompt
) -> list[tuple[str, str]]:
    """The pairs in their order, which is made once after every start."""
    if judge.campaign.state == Campaign.State.CLOSED:
        raise UserError("campaign_closed", "The campaign was closed.", status=409)
    if judge.plan_file:
        return order.read_back(judge.plan_file)
    made = order.make(judge, prompt)
    name = order.keep(made)
    with transaction.atomic():
        job.fence()
        answered = MachineAnswer.objects.filter(prompt=prompt).count()
        planned = answered + min(len(made.pairs), judge.max_calls - judge.calls)
        told = {"plan_file": name, "planned": planned, "order": made.by}
        MachineJudge.objects.filter(pk=judge.pk).update(**told)
    return made.pairs


def _go_on_later(job: jobs.Running, judge: MachineJudge, pause: float | None) -> None:
    if pause is not None:
        raise jobs.NotYet(pause, f"waits {pause:.0f} s, as the endpoint asks")
    with transaction.atomic():
        job.fence()
        jobs.request(ASKING, judge.pk, campaign=judge.campaign_id)


@dataclass
class Call:
    """A request about a pair. ``worst``: the most that one try can cost, in billionths."""

    topic: int
    docno: str
    body: dict[str, Any]
    worst: int
    tries: int = 0
    due: float = 0.0
    fault: str = ""


@dataclass
class Asking:
    """A slice. Threads send requests and touch no database; all rows are written by this one.

    ``why``: why nothing more is asked; ``pause``: seconds that the endpoint asks to be left alone.
    """

    job: jobs.Running
    judge: MachineJudge
    prompt: MachinePrompt
    endpoint: Endpoint
    ordered: list[tuple[str, str]]
    why: str = ""
    pause: float | None = None
    flying: int = 0
    not_before: float = 0.0
    reported: float = 0.0
    waiting: list[Call] = field(default_factory=list)
    arrived: "queue.SimpleQueue[Arrived]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        answers = MachineAnswer.objects.filter(prompt=self.prompt)
        done = set(answers.values_list("topic__topic_id", "docno"))
        self.todo = deque(pair for pair in self.ordered if pair not in done)
        self.topics = {row.topic_id: row for row in self.judge.campaign.topics.all()}
        latest = answers.order_by("-pk").values_list("outcome", flat=True)[:BARREN_IN_A_ROW]
        self.row = list(reversed(latest))
        self.body = prompts.settings_of(
            self.endpoint,
            model=self.judge.model,
            max_grade=len(self.prompt.grades) - 1,
            with_schema=self.judge.with_schema,
        )
        self.end = time.monotonic() + SLICE_SECONDS

    def go(self) -> None:
        while True:
            if self.job.lost.is_set():
                raise jobs.LeaseLost(f"machine judge {self.judge.pk}")
            if not self._is_over:
                self._send(self._next())
            if not self.flying and (self._is_over or not (self.waiting or self._may_begin)):
                return
            self._settle(self._arrivals())

    @property
    def _is_over(self) -> bool:
        return bool(self.why) or self.pause is not None

    @property
    def _may_begin(self) -> bool:
        """What was begun is brought to its end, also after the slice."""
        return bool(self.todo) and time.monotonic() < self.end

    def _next(self) -> list[Call]:
        """Requests to send now, at most as many as the endpoint takes at a time."""
        free, now = self.endpoint.parallel - self.flying, time.monotonic()
        ready = [call for call in self.waiting if call.due <= now][:free]
        self.waiting = [call for call in self.waiting if call not in ready]
        while len(ready) < free and self._may_begin and now >= self.not_before:
            if (call := self._call(*self.todo.popleft())) is not None:
                ready.append(call)
        return ready

    def _call(self, topic_id: str, docno: str) -> Call | None:
        """None if the pair has gone since it was put in order."""
        topic: Topic | None = self.topics.get(topic_id)
        document = judging.documents(self.judge.campaign).filter(docno=docno).first()
        if topic is None or document is None:
            return None
        said = prompts.messages(
            self.prompt.text,
            grades=self.prompt.grades,
            topic=vars(topic),
            document=f"{document.title}\n{document.text}".strip(),
            chars=self.judge.document_chars,
        )
        body = {**self.body, "messages": said}
        longest = len(json.dumps(body)) + ROOM, prompts.most_tokens_out(body)
        return Call(topic.pk, docno, body, cost_of(self.endpoint, *longest))

    def _send(self, ready: list[Call]) -> None:
        granted = self._reserve(ready) if ready else 0
        for call in ready[:granted]:
            call.tries += 1
            self.flying += 1
            threading.Thread(target=self._fly, args=(call,), daemon=True).start()
        rest = ready[granted:]
        if not self.why:  # others may turn out to cost less than they can
            self.waiting += rest
        elif given_up := [call for call in rest if call.tries]:
            self._store([_row(self.prompt, call, Outcome.DOWN, call.fault) for call in given_up], 0)

    def _reserve(self, ready: list[Call]) -> int:
        """Counts requests before they are sent; how many of them may be."""
        with transaction.atomic():
            self.job.fence()
            row = MachineJudge.objects.select_for_update().filter(pk=self.judge.pk).first()
            if row is None or row.state != MachineJudge.State.ASKING:
                self.why = "It was stopped."
                return 0
            granted, spent = 0, row.spent
            for call in ready:
                if row.calls + granted >= row.max_calls:
                    self.why = ceiling_reached(row)
                    break
                if row.max_cost is not None and spent + call.worst > row.max_cost * NANO:
                    if not self.flying and not granted:
                        cost = f"{row.max_cost:g}"
                        self.why = f"A further call could pass its ceiling of cost, {cost}."
                    break
                granted, spent = granted + 1, spent + call.worst
            told = {"calls": row.calls + granted, "spent": spent}
            MachineJudge.objects.filter(pk=row.pk).update(**told)
        return granted

    def _fly(self, call: Call) -> None:
        """In a thread of its own."""
        start = time.monotonic()
        outcome: Reply | CallFault
        try:
            outcome = calls.ask(self.endpoint, call.body)
        except CallFault as fault:
            outcome = fault
        except Exception as error:
            outcome = CallFault(f"brings an error of ours ({type(error).__name__})")
        self.arrived.put((call, outcome, time.monotonic() - start))

    def _arrivals(self) -> list[Arrived]:
        """What came in; waits a moment for the first."""
        found: list[Arrived] = []
        try:
            found.append(self.arrived.get(timeout=0.2 if self.flying else 0.05))
            while True:
                found.append(self.arrived.get_nowait())
        except queue.Empty:
            self.flying -= len(found)
            return found

    def _settle(self, found: list[Arrived]) -> None:
        rows, back = [], 0
        for call, outcome, seconds in found:
            if isinstance(outcome, Reply):
                row = self._row_of(call, outcome, seconds)
                rows.append(row)
                back += call.worst - row.cost
                continue
            back += call.worst if outcome.unpaid else 0
            if (failed := self._failed(call, outcome, seconds)) is not None:
                rows.append(failed)
        if found:
            self._store(rows, back)

    def _row_of(self, call: Call, said: Reply, seconds: float) -> MachineAnswer:
        best = len(self.prompt.grades) - 1
        grade, outcome = replies.grade_in(said.text, max_grade=best)
        if said.refused:
            grade, outcome = None, "refused"
        cost = call.worst
        if said.tokens_in is not None and said.tokens_out is not None:
            cost = cost_of(self.endpoint, said.tokens_in, said.tokens_out)
        row = _row(self.prompt, call, Outcome(outcome), said.text, seconds)
        row.grade, row.model, row.cost = grade, said.model, cost
        row.tokens_in, row.tokens_out = said.tokens_in, said.tokens_out
        return row

    def _failed(self, call: Call, fault: CallFault, seconds: float) -> MachineAnswer | None:
        """What is stored of a call that brought nothing; None if it may yet bring something."""
        call.fault = fault.message
        if fault.fatal:
            self.why = f"The endpoint {fault.message}."
            return None
        if not fault.again or call.tries >= TRIES:
            return _row(self.prompt, call, Outcome(fault.outcome), fault.message, seconds)
        wait = FIRST_WAIT * 2 ** (call.tries - 1) if fault.pause is None else fault.pause
        if wait > LONGEST_WAIT:
            self.pause = max(wait, self.pause or 0.0)
            return None
        call.due = self.not_before = time.monotonic() + wait
        self.waiting.append(call)
        return None

    def _store(self, rows: list[MachineAnswer], back: int) -> None:
        """Answers and what they cost, at once; ``back`` was counted and is not owed."""
        values: dict[str, Any] = {"spent": F("spent") - back}
        if rows:
            values["pauses"] = 0
        elif self.pause is not None:
            values["pauses"] = F("pauses") + 1
        fence = self.job.fence_progress if rows else self.job.fence
        with transaction.atomic():
            fence()
            MachineAnswer.objects.bulk_create(rows)
            MachineJudge.objects.filter(pk=self.judge.pk).update(**values)
        self._look_at(rows)
        if time.monotonic() - self.reported > 1.0:
            self.reported = time.monotonic()
            self.job.report(1.0 - len(self.todo) / max(len(self.ordered), 1))

    def _look_at(self, rows: Iterable[MachineAnswer]) -> None:
        """Ends what goes on bringing nothing, before it has cost the whole ceiling."""
        self.row = [*self.row, *(row.outcome for row in rows)][-BARREN_IN_A_ROW:]
        down = self.row[-DOWN_IN_A_ROW:] == [Outcome.DOWN] * DOWN_IN_A_ROW
        barren = len(self.row) == BARREN_IN_A_ROW and Outcome.GRADED not in self.row
        if self.why:
            return
        if down:
            last = next((row.reply for row in reversed(list(rows)) if row.reply), "")
            self.why = f"{DOWN_IN_A_ROW} pairs in a row got no answer: the endpoint {last}."
        elif barren:
            self.why = f"{BARREN_IN_A_ROW} pairs in a row got no grade. Look at the answers."
        elif self.pause is not None and self._pauses() >= MOST_PAUSES:
            self.why = f"The endpoint has asked {MOST_PAUSES} times in a row to be left alone."

    def _pauses(self) -> int:
        return int(MachineJudge.objects.values_list("pauses", flat=True).get(pk=self.judge.pk))


def cost_of(endpoint: Endpoint, tokens_in: int, tokens_out: int) -> int:
    """In billionths; prices are of a million tokens. Without prices nothing is counted."""
    if endpoint.prices is None:
        return 0
    price_in, price_out = endpoint.prices
    return math.ceil(1000 * (tokens_in * price_in + tokens_out * price_out))


def _row(
    prompt: MachinePrompt, call: Call, outcome: str, reply: str, seconds: float = 0.0
) -> MachineAnswer:
    return MachineAnswer(
        prompt=prompt,
        topic_id=call.topic,
        docno=call.docno,
        outcome=outcome,
        reply=calls.clean(reply),
        tries=call.tries,
        seconds=seconds,
    )
