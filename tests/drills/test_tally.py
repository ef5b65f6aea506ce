"""The count of `make drills`: what is lost, doubled, above its cap or otherwise wrong fails it."""

from dataclasses import replace

import pytest

from tests.at_length import __main__ as command
from tests.at_length.tally import Tally, table
from tests.support.journal import BatchRow, PairRow, Said, Stored, Tables
from tests.support.topology import composed_command

SAID = [Said("ann", "a", 1, 2, acknowledged=True), Said("bob", "b", 2, 0, acknowledged=True)]
STORED = [Stored(1, "ann", "a", 1, 7, 2, 1), Stored(2, "bob", "b", 2, 7, 0, 1)]
SOUND = Tables(
    judgments=STORED,
    pairs=[PairRow(7, wanted=2, held=2, judged=2, decided=False)],
    batches=[BatchRow(1, "complete", 0, 0)],
    audits=[("judgment 1", 2), ("judgment 2", 0)],
)
ONE_LESS = replace(
    SOUND,
    judgments=STORED[:1],
    audits=SOUND.audits[:1],
    pairs=[PairRow(7, wanted=2, held=1, judged=1, decided=False)],
)
ABOVE = replace(SOUND, pairs=[PairRow(7, wanted=1, held=2, judged=2, decided=False)])
TWICE = replace(
    SOUND,
    judgments=[*STORED, Stored(3, "ann", "a", 1, 8, 2, 1)],
    audits=[*SOUND.audits, ("judgment 3", 2)],
    pairs=[*SOUND.pairs, PairRow(8, wanted=1, held=1, judged=1, decided=False)],
)
OTHER_GRADE = replace(
    SOUND,
    judgments=[replace(STORED[0], grade=3), STORED[1]],
    audits=[("judgment 1", 3), ("judgment 2", 0)],
)


@pytest.mark.parametrize(
    ("tables", "wrong"),
    [
        (SOUND, (0, 0, 0, 0)),
        (ONE_LESS, (1, 0, 0, 0)),
        (TWICE, (0, 1, 0, 0)),
        (ABOVE, (0, 0, 1, 1)),
        (OTHER_GRADE, (0, 0, 0, 1)),
        (replace(SOUND, audits=SOUND.audits[:1]), (0, 0, 0, 1)),
    ],
)
def test_every_kind_of_wrong_is_counted_and_fails(
    tables: Tables, wrong: tuple[int, int, int, int]
) -> None:
    tally = Tally("drill")
    tally.compare(SAID, tables)

    assert (tally.lost, tally.doubled, tally.above_cap, tally.mismatches) == wrong
    assert tally.acknowledged == 2
    assert tally.passed == (not any(wrong))


def test_what_was_expected_and_not_seen_fails() -> None:
    tally = Tally("drill")
    tally.expect(True, "so it is")
    assert tally.passed
    tally.expect(False, "so it is not")
    assert not tally.passed
    assert tally.notes == ["so it is", "WRONG: so it is not"]


def test_the_table_has_a_line_for_each_drill_and_their_sum() -> None:
    lines = table([Tally("one", 1, 1000, 900), Tally("two", 2, 5, 4, lost=3)]).splitlines()

    assert lines[0].split("  ")[0] == "drill"
    assert lines[2].split() == ["one", "1", "1,000", "900", "0", "0", "0", "0"]
    assert lines[-1].split() == ["total", "3", "1,005", "904", "3", "0", "0", "0"]


def test_a_drill_that_breaks_off_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> Tally:
        raise OSError("no such place")

    assert not command.run(broken).passed
    assert "broke off: OSError: no such place" in capsys.readouterr().out


def test_what_is_drilled_is_what_compose_yaml_composes() -> None:
    web = composed_command("web", port=4711)
    assert web[2:6] == ["gunicorn", "evalsite.wsgi", "--bind", "127.0.0.1:4711"]
    queues = [
        command[command.index("--queues") + 1]
        for command in (composed_command("worker"), composed_command("reader"))
    ]
    assert queues == ["celery", "uploads,celery"]
