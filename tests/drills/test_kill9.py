"""Judgments survive kill -9 of web server and worker at any moment.

Four assessors judge and send again, under the same key, whatever was not answered. Their journal,
forced to the disk before and after each request, is then held against what the site has stored.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from tests.at_length.twin import judged_by_hasty
from tests.conftest import MakeSite
from tests.core.length import bounded
from tests.support.crowd import NOT_NOW, Crowd, Organizer, Shift, assessors, supervise
from tests.support.journal import (
    Journal,
    Said,
    Stored,
    Tables,
    contradictions,
    differences,
    tables_of,
)
from tests.support.material import small_material
from tests.support.site import Process, Site

pytestmark = [pytest.mark.services, pytest.mark.slow]

SEED = 20
KILLS = bounded(
    {"web": 2, "web child": 1, "worker": 1, "worker child": 1},
    {"web": 6, "web child": 5, "worker": 5, "worker child": 4},
)
BUDGET = bounded(140, 560)
PACE = bounded((0.2, 0.4), (0.04, 0.12))
"""Seconds between two judgments of one person: fewer of them must last for all kills."""
BETWEEN_SECONDS = 0.4
ROUND = {
    "measure": "DCG@10",
    "reported": ["P@5"],
    "budget": BUDGET,
    "batch_size": BUDGET // 14,
    "method": "poisson",
    "labels": 2,
    "extra_share": 0.2,
    "seed": "kill",
}


@dataclass(frozen=True)
class Drilled:
    """A campaign that was judged to its end under fire."""

    organizer: Organizer
    said: list[Said]
    tables: Tables
    killed: list[str]
    resent: int
    refused: int


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def drilled(
    request: pytest.FixtureRequest, make_site: MakeSite, tmp_path_factory: pytest.TempPathFactory
) -> Drilled:
    site = make_site(request.param, processes=2, env={"JOB_LEASE_SECONDS": "4"})
    organizer, crowd = drawn_campaign(site)
    journal = Journal(tmp_path_factory.mktemp("journal") / "journal")
    over, rng = threading.Event(), random.Random(SEED)
    keys = organizer.enlist("ann", "bob", "cy", "dot")
    people = assessors(
        organizer, keys, crowd, journal=journal, pace=pace(over, SEED), tolerant=True
    )
    with Shift(people, seconds=300) as shift:
        killed = fire(organizer, shift, rng)
        over.set()
    organizer.final_estimates(len(organizer.batches()), seconds=60)
    resent = sum(person.resent for person in people)
    refused = sum(person.statuses[status] for person in people for status in NOT_NOW)
    return Drilled(organizer, journal.read(), tables_of(site.python), killed, resent, refused)


def drawn_campaign(site: Site) -> tuple[Organizer, Crowd]:
    key = site.add_users("olga", organizer=True)["olga"]
    organizer = Organizer(site, site.api(key), "kill")
    material = small_material()
    organizer.create()
    organizer.bring(material)
    organizer.draft(**ROUND)
    organizer.draw()
    organizer.open()
    return organizer, Crowd(material.truth, max_grade=3, seed="kill")


def pace(over: threading.Event, seed: int) -> Callable[[], None]:
    """As people do, a little time between two judgments, until the killing is over."""
    rng = random.Random(seed)

    def pause() -> None:
        over.wait(rng.uniform(*PACE))

    return pause


def fire(organizer: Organizer, shift: Shift, rng: random.Random) -> list[str]:
    """Kills in random order; judging must go on after each before the next one comes."""
    victims = [victim for victim, times in KILLS.items() for _ in range(times)]
    rng.shuffle(victims)
    for victim in victims:
        time.sleep(BETWEEN_SECONDS + rng.uniform(0, 0.3))
        shift.wait_acknowledged(shift.acknowledged + 5)
        if victim.startswith("worker"):
            organizer.await_recompute()
        kill(organizer.site, victim)
    return victims


def kill(site: Site, victim: str) -> None:
    """The server of `up`, which the embedded site has, forks nothing: there it dies itself."""
    process = site.web if victim.startswith("web") else site.workers[0]
    forks = site.stack == "postgres" or not victim.startswith("web")
    if victim.endswith("child") and forks:
        site.wait_until(lambda: kill_child(site, process), what=f"a {victim} to kill")
    else:
        process.restart()


def kill_child(site: Site, process: Process) -> bool:
    """Kills one process that it forked, if there is one; it may itself be about to end."""
    supervise(site)
    try:
        forked = psutil.Process(process.pid).children()
    except psutil.NoSuchProcess:
        return False
    for child in forked[:1]:
        child.kill()
    return bool(forked)


def test_the_kills_fell_into_the_judging(drilled: Drilled) -> None:
    assert len(drilled.killed) == sum(KILLS.values()) == bounded(5, 20)
    assert drilled.resent >= KILLS["web"] + KILLS["web child"], "as many as kills they could notice"
    assert len(drilled.said) > 1.8 * BUDGET


def test_next_to_nobody_is_told_to_come_again(drilled: Drilled) -> None:
    """That the site was not there is no answer at all; a request that it had taken it may refuse,
    with 503, where it waited too long for the database."""
    reasons = [line for line in drilled.organizer.site.log("web").splitlines() if "Error:" in line]
    assert drilled.refused <= 4, reasons


def test_clients_and_site_agree(drilled: Drilled) -> None:
    """Every acknowledged judgment is stored once with its grade, and nothing else is."""
    assert differences(drilled.said, drilled.tables.judgments) == []
    assert all(one.acknowledged for one in drilled.said)


def test_pairs_audit_rows_and_batches_agree(drilled: Drilled) -> None:
    assert contradictions(drilled.tables) == []
    assert {batch.state for batch in drilled.tables.batches} == {"complete"}
    assert sum(pair.wanted for pair in drilled.tables.pairs) == len(drilled.tables.judgments)


def test_estimates_equal_a_recompute_from_scratch(drilled: Drilled) -> None:
    assert ": equal " in drilled.organizer.site.manage("recompute", "kill")


def test_no_state_has_two_estimates(drilled: Drilled) -> None:
    told = drilled.organizer.site.python(
        "from estimation.models import EstimateSet\n"
        "for row in EstimateSet.objects.values_list('batches', 'label_digest'): print(row)"
    ).splitlines()
    assert len(told) == len(set(told)) >= 1


def test_no_process_reports_a_bug(drilled: Drilled) -> None:
    site = drilled.organizer.site
    assert "Traceback" not in site.log("web")
    assert "database is locked" not in site.log("worker")


def test_tampering_is_found(drilled: Drilled) -> None:
    """The same comparisons on copies in which one thing is wrong: each says what."""
    said, there = drilled.said, drilled.tables.judgments
    again = replace(there[7], id=10**9, assignment=10**9)
    changed = replace(there[7], grade=3 - there[7].grade)
    assert kinds(differences(said, [*there[:7], *there[8:]])) == {"lost"}
    assert kinds(differences(said, [*there, again])) == {"doubled", "changed", "judged twice"}
    assert kinds(differences(said, [*there[:7], changed, *there[8:]])) == {"changed"}
    assert kinds(differences(said[:-1], there)) == {"made up"}


def test_tables_that_disagree_are_found(drilled: Drilled) -> None:
    tables = drilled.tables
    pair, *pairs = tables.pairs
    batch, *batches = tables.batches
    for name, wrong in (
        ("more labels than wanted", replace(tables, pairs=[replace(pair, wanted=1), *pairs])),
        ("counts", replace(tables, pairs=[replace(pair, judged=0), *pairs])),
        ("without audit row", replace(tables, audits=tables.audits[1:])),
        ("audit row of nothing", replace(tables, audits=[*tables.audits, tables.audits[0]])),
        ("BatchRow", replace(tables, batches=[replace(batch, lacking=1), *batches])),
        ("BatchRow", replace(tables, batches=[replace(batch, state="open"), *batches])),
    ):
        assert any(line.startswith(name) for line in contradictions(wrong)), name


def kinds(lines: list[str]) -> set[str]:
    return {line.split(":")[0] for line in lines}


def test_acknowledging_before_writing_is_found(tmp_path: Path) -> None:
    """The same assessors and the same comparison, on a server that answers before it writes."""
    assert any(line.startswith("lost") for line in judged_by_hasty(tmp_path))


def test_stored_rows_have_the_shape_of_the_journal() -> None:
    """The comparison of agreeing records is empty, so that it says nothing where nothing is."""
    said = [Said("ann", "k", 1, 2, acknowledged=True), Said("bob", "l", 2, 0, acknowledged=False)]
    stored = [Stored(5, "ann", "k", 1, 9, 2, 1)]
    assert differences(said, stored) == []
