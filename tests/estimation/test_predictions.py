"""Predicted grades come in as uploads, fit the pairs of a pool, and go again. On both databases."""

import gzip
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.core.files.base import File
from django.test import Client
from django.urls import reverse

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.goals import absolute
from estimation.core.sampling.priors import make_prior
from estimation.formats.predictions import PredictionFile, save_predictions
from estimation.models import Prediction
from estimation.services import files, pools, predictions
from judging.errors import UserError
from judging.models import Campaign, Job, Upload, User
from judging.services import jobs, uploads
from tests.support import evaluation, factories, rest
from tests.support.growth import LINEAR, growth

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

GRADES = b"t1 a 2.5\nt2 a 0\nt9 a 3\nt1 b 1\n"
PROBABILITIES = b"t1 a 0 0 0.5 0.5\nt2 b 1 0 0 0\n"


@pytest.fixture
def campaign() -> Campaign:
    return factories.campaign(topics=2)


def upload(made: Campaign, content: bytes, name: str = "judge.tsv", **options: Any) -> Upload:
    return factories.stored_upload(made, content, name=name, **{"kind": "predictions"} | options)


def prediction(made: Campaign, content: bytes, name: str = "judge.tsv") -> Prediction:
    row = upload(made, content, name)
    assert row.state == Upload.State.ACCEPTED, row.errors
    return row.prediction


def pool_of(lists: dict[str, list[str]], topics: list[str] | None = None) -> Pool:
    """A pool of one run that returns these documents."""
    docnos = np.array([name.encode() for names in lists.values() for name in names])
    ends = np.cumsum([0, *map(len, lists.values())])
    run = RankedLists(tuple(lists), ends, docnos)
    return build_pool(topics or list(lists), {"run": run}, depth=max(map(len, lists.values())))


def keys(pool: Pool) -> list[tuple[str, str]]:
    return [(pool.topics[t], d.decode()) for t, d in zip(pool.topic, pool.docno, strict=True)]


# ------------------------------------------------------------------------------------- as uploads


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_grades_come_in_without_the_lines_of_unknown_topics(
    campaign: Campaign, pack: Callable[[bytes], bytes]
) -> None:
    row = upload(campaign, pack(GRADES), "llm.judge.tsv.gz", kind=None)

    assert (row.state, row.kind) == (Upload.State.ACCEPTED, "predictions")
    assert row.summary == {"predictions": 3, "pairs_left_out": 1}
    assert (row.error_count, row.warning_count) == (0, 1)
    assert "t9" in row.warnings[0]["message"]
    made = Prediction.objects.get()
    assert (made.name, made.form, made.max_grade) == ("llm.judge", "grades", 3)
    assert (made.topic_count, made.pair_count) == (2, 3)
    assert predictions.read_back(made).digest == made.digest


def test_probabilities_come_in(campaign: Campaign) -> None:
    made = prediction(campaign, PROBABILITIES)

    assert (made.form, made.pair_count) == ("probabilities", 2)
    assert predictions.read_back(made).values.tolist() == [[0, 0, 0.5, 0.5], [1, 0, 0, 0]]


def test_costs_come_in_by_their_header_and_are_no_grades(campaign: Campaign) -> None:
    content = b"topic docno cost\nt1 a 45\nt2 a 0.5\nt9 a 1\n"
    row = upload(campaign, content, "minutes.tsv.gz", kind=None)

    assert (row.state, row.kind) == (Upload.State.ACCEPTED, "predictions")
    assert row.summary == {"costs": 2, "pairs_left_out": 1}
    made = Prediction.objects.get()
    assert (made.name, made.form, made.max_grade) == ("minutes", "costs", 0)
    client = Client()
    client.force_login(campaign.created_by)
    page = client.get(reverse("material", args=[campaign.slug])).content.decode()
    assert "2 costs of pairs, 1 pair of an unknown topic left out" in page
    pool = pool_of({"t1": ["a"], "t2": ["a"]})
    with pytest.raises(UserError, match="predicts the grades 0 to 0"):
        predictions.grades_for(made, pool)


HOSTILE = [
    (b"topic docno cost\nt1 a 0\n", 2, "cost", "from 0.000001"),
    (b"t1 a 4\n", 1, "grade", "0 to 3"),
    (b"t1 a nan\n", 1, "grade", "nan"),
    (b"t1 a 0 0 0.5 0.6\n", 1, "probabilities", "sum"),
    (b"t1 a 1\nt1 b 0 0 0 1\n", 2, "columns", "line 1"),
    (b"t1 a 1\nt1 a 1\n", 2, "docno", "line 1"),
    (b"t1 a\x00b 1\n", 1, "", "NUL"),
    (b"t1 \xff 1\n", 1, "", "UTF-8"),
    (b"t1 ../../etc/passwd 1\n", 1, "docno", "path"),
    (b"t9 a 1\n", None, "topic", "known topics"),
    (b"t1 Q0 a 1 2.5 tag\n", 1, "p0", "found 'a'"),
    (b"t1 0 a 2\n", 1, "columns", "found 4"),
    (b"", None, "", "none"),
    (gzip.compress(GRADES)[:30], None, "", ""),
]


@pytest.mark.parametrize(("content", "line", "field", "word"), HOSTILE)
def test_bad_files_are_refused_and_bring_nothing(
    campaign: Campaign, content: bytes, line: int | None, field: str, word: str
) -> None:
    row = upload(campaign, content)

    assert row.state == Upload.State.REJECTED
    first = row.errors[0]
    assert line in (None, first["line"])
    assert first["field"] == field
    assert word in first["message"]
    assert not Prediction.objects.exists()


def test_a_bad_file_never_passes_as_a_run(campaign: Campaign) -> None:
    """Four probabilities make six columns, of which a run's reader would take the last for tag."""
    bad = b"t1 a 0.1 0.9 0 0\nt1 b 0.5 0.6 0 0\nt2 c 1.2 0 0 0\n"

    row = upload(campaign, bad, kind=None)

    assert (row.kind, row.state) == ("predictions", Upload.State.REJECTED)
    assert [(e["line"], e["field"]) for e in row.errors] == [(2, "probabilities"), (3, "p0")]
    assert not campaign.runs.exists()


def test_a_name_is_taken_once_in_a_campaign(campaign: Campaign) -> None:
    prediction(campaign, GRADES, "judge.tsv")
    again = upload(campaign, PROBABILITIES, "judge.txt.gz")
    other = factories.campaign(slug="other")

    assert again.state == Upload.State.REJECTED
    assert "“judge” already" in again.errors[0]["message"]
    assert prediction(campaign, PROBABILITIES, "judge2.tsv").name == "judge2"
    assert prediction(other, GRADES, "judge.tsv").campaign == other


@pytest.mark.parametrize(
    ("name", "expected"), [(".gz", ".gz"), ("x" * 300, "x" * 255), ("a/../b.tsv", "b"), ("é", "é")]
)
def test_odd_file_names_make_names(campaign: Campaign, name: str, expected: str) -> None:
    assert prediction(campaign, GRADES, name).name == expected


def test_check_only_tells_and_keeps_nothing(campaign: Campaign) -> None:
    file: File[bytes] = File(io.BytesIO(GRADES), name="p.tsv")
    by = campaign.created_by
    row = uploads.store(
        campaign=campaign, by=by, file=file, name="p.tsv", kind="predictions", check_only=True
    )
    factories.run_due_jobs()

    row.refresh_from_db()
    assert (row.state, row.summary["predictions"]) == (Upload.State.CHECKED, 3)
    assert not Prediction.objects.exists()


def test_they_wait_for_topics_that_are_on_their_way() -> None:
    empty = factories.campaign(topics=0)
    given = {"p.tsv": (b"t1 a 1\n", "predictions"), "topics.tsv": (b"t1\tone\n", "topics")}
    rows = {
        name: uploads.store(
            campaign=empty, by=empty.created_by, file=File(io.BytesIO(data)), name=name, kind=kind
        )
        for name, (data, kind) in given.items()
    }
    job = Job.objects.get(target=rows["p.tsv"].pk)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.note == "waits for the topics"
    jobs.run(Job.objects.get(target=rows["topics.tsv"].pk).pk)
    Job.objects.filter(pk=job.pk).update(due=job.created)
    factories.run_due_jobs()

    assert Prediction.objects.get().pair_count == 1


def test_without_topics_they_are_refused() -> None:
    row = upload(factories.campaign(topics=0), GRADES)

    assert "topics first" in row.errors[0]["message"]


@pytest.mark.slow
def test_they_go_even_after_a_draw_as_long_as_no_round_names_them() -> None:
    made = evaluation.with_material()
    prediction(made, b"t1 d1 1\n", "early.tsv")
    evaluation.drawn(made)
    late = prediction(made, b"t1 d1 1\n", "late.tsv")
    run = made.uploads.filter(kind="run").first()
    assert run is not None

    for row in list(made.uploads.filter(kind="predictions")):
        uploads.remove(upload=row, by=made.created_by)
    with pytest.raises(UserError, match="can no longer be removed"):
        uploads.remove(upload=run, by=made.created_by)

    assert not Prediction.objects.exists()
    assert not Upload.objects.filter(pk=late.upload_id).exists()


@pytest.mark.slow
@pytest.mark.parametrize("state", ["drafted", "drawn"])
def test_they_stay_while_a_round_names_them(state: str) -> None:
    made = evaluation.with_material()
    row = prediction(made, b"t1 d1 1\n")
    used = evaluation.drawn(made) if state == "drawn" else evaluation.drafted(made)
    used.predictions = row
    used.save()

    with pytest.raises(UserError, match="names what this file brought") as refused:
        uploads.remove(upload=row.upload, by=made.created_by)

    assert (refused.value.code, refused.value.status) == ("in_use", 409)
    assert Prediction.objects.get().upload.state == Upload.State.ACCEPTED
    assert predictions.read_back(row).lines == 1


# --------------------------------------------------------------------------------------- for pools


def test_every_pair_gets_its_own_grade_and_unknown_pairs_none(campaign: Campaign) -> None:
    made = prediction(campaign, b"t2 a 3\nt1 b 0.5\nt1 z 2\nt1 aaaa 1\nt2 \xc3\xa9 1.25\n")
    pool = pool_of({"t1": ["b", "a", "aaaa"], "t2": ["é", "b", "a"], "t3": ["b"]})

    grades = dict(zip(keys(pool), predictions.grades_for(made, pool).tolist(), strict=True))

    known = {key: grade for key, grade in grades.items() if not math.isnan(grade)}
    assert known == {("t1", "aaaa"): 1, ("t1", "b"): 0.5, ("t2", "a"): 3, ("t2", "é"): 1.25}
    assert len(grades) == 7


def test_probabilities_give_expected_grades(campaign: Campaign) -> None:
    made = prediction(campaign, PROBABILITIES)
    pool = pool_of({"t1": ["a", "b"], "t2": ["b"]})

    np.testing.assert_array_equal(predictions.grades_for(made, pool), [2.5, np.nan, 0.0])


def test_models_are_those_of_the_core_and_uniform_elsewhere(campaign: Campaign) -> None:
    rng = np.random.default_rng(3)
    pool = pool_of({f"t{t}": [f"d{n}" for n in rng.permutation(40)] for t in (1, 2)})
    chosen = [keys(pool)[place] for place in rng.permutation(len(pool))[:50]]
    rows = rng.dirichlet(np.ones(4), size=50).round(6)
    rows[:, 0] += 1.0 - rows.sum(axis=1)
    rows[:, 0] = np.abs(rows[:, 0])
    texts = [" ".join(map(repr, row)) for row in rows.tolist()]
    lines = [f"{t} {d} {text}" for (t, d), text in zip(chosen, texts, strict=True)]
    made = prediction(campaign, "\n".join([*lines, "t1 outside 1 0 0 0"]).encode())

    model = predictions.model_for(made, pool, 3)

    place = [keys(pool).index(key) for key in chosen]
    expected = np.full((len(pool), 4), 0.25)
    expected[place] = rows / rows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.probability, expected, rtol=0, atol=1e-15)
    assert np.flatnonzero(model.predicted).tolist() == sorted(place)
    assert (model.name, model.max_grade) == ("predicted", 3)
    means = predictions.grades_for(made, pool)
    np.testing.assert_array_equal(np.isnan(means), ~model.predicted)
    known = model.predicted
    np.testing.assert_allclose(means[known], model.probability[known] @ np.arange(4.0), atol=1e-12)


def test_a_grade_becomes_the_two_whole_grades_around_it(campaign: Campaign) -> None:
    pool = pool_of({"t1": ["a", "b", "c"], "t2": ["a"]})

    model = predictions.model_for(prediction(campaign, GRADES), pool, 3)

    expected = [[0, 0, 0.5, 0.5], [0, 1, 0, 0], [0.25] * 4, [1, 0, 0, 0]]
    assert model.probability.tolist() == expected
    assert model.predicted.tolist() == [True, True, False, True]


@pytest.mark.on_both
def test_the_order_of_lines_and_other_topics_play_no_part(campaign: Campaign) -> None:
    pool = pool_of({"t1": ["a", "b"], "t2": ["a", "b"]}, topics=["t0", "t1", "t15", "t2"])
    lines = [b"t2 b 3\n", b"t1 a 1\n", b"t2 a 2\n", b"t1 b 0.5\n"]

    first = prediction(campaign, b"".join(lines), "one.tsv")
    second = prediction(campaign, b"".join(sorted(lines)), "two.tsv")

    assert (first.digest, first.file) == (second.digest, second.file)
    assert predictions.grades_for(first, pool).tolist() == [1, 0.5, 2, 3]


@pytest.mark.slow
def test_a_campaigns_pool_takes_them_as_prior() -> None:
    made = evaluation.with_material()
    truth = evaluation.SMALL.truth
    _, pool = pools.ensure(made)
    lines = "".join(f"{t} {d} {grade}\n" for (t, d), grade in truth.items() if d != "d1")
    row = prediction(made, lines.encode(), "truth.tsv")

    grades = predictions.grades_for(row, pool)

    expected = [math.nan if d == "d1" else float(truth[t, d]) for t, d in keys(pool)]
    np.testing.assert_array_equal(grades, expected)
    measure, goal = parse_measure("DCG@10"), absolute(*pool.runs)
    prior = make_prior(
        pool, name="scores", goal=goal, measure=measure, max_grade=made.max_grade, grades=grades
    )
    best, worst = np.nanargmax(grades), np.nanargmin(grades)
    assert prior.expected[best] > 4 * prior.expected[worst]


def test_another_scale_is_refused(campaign: Campaign) -> None:
    made = prediction(campaign, GRADES)
    pool = pool_of({"t1": ["a"]})
    with pytest.raises(UserError, match="0 to 3, but the scale goes to 4") as refused:
        predictions.model_for(made, pool, 4)
    assert (refused.value.code, refused.value.status) == ("scale_changed", 409)

    campaign.grades = campaign.grades[:2]
    campaign.save()
    made = Prediction.objects.get()
    with pytest.raises(UserError, match="the scale goes to 1 now"):
        predictions.grades_for(made, pool)


def test_pairs_of_documents_have_no_predicted_grade(campaign: Campaign) -> None:
    made = prediction(campaign, GRADES)
    pool = preference_pool(pool_of({"t1": ["a", "b"]}), depth=2)
    with pytest.raises(ValueError, match="pairs of documents"):
        predictions.grades_for(made, pool)
    with pytest.raises(ValueError, match="pairs of documents"):
        predictions.model_for(made, pool, 3)


def many_rows(campaign: Campaign, count: int) -> tuple[Prediction, Pool]:
    """So many predicted grades of each of two topics, and a pool with half of either."""
    names = [f"DOC-{number:07d}" for number in range(count)]
    found = PredictionFile(
        form="grades",
        max_grade=3,
        topics=("t1", "t2"),
        indptr=np.array([0, count, 2 * count]),
        docnos=np.array(2 * names, dtype=np.bytes_),
        values=np.tile(np.arange(count) % 4.0, 2),
        lines=2 * count,
    )
    made = prediction(campaign, GRADES, f"{count}.tsv")
    made.file = files.keep_written("predictions", lambda file: save_predictions(file, found))
    return made, pool_of({"t1": names[: count // 2], "t2": names[::2]})


@pytest.mark.slow
def test_many_rows_are_matched_in_linear_time(campaign: Campaign) -> None:
    made = {count: many_rows(campaign, count) for count in (25_000, 100_000)}
    grown = growth(lambda count: predictions.grades_for(*made[count]), 25_000)
    assert grown < LINEAR
    row, pool = made[100_000]
    expected = [int(docno[4:]) % 4 for docno in pool.docno.tolist()]
    assert predictions.grades_for(row, pool).tolist() == expected
    assert predictions.model_for(row, pool, 3).probability.argmax(axis=1).tolist() == expected


# ------------------------------------------------------------------------------------ pages and API


def test_the_page_says_what_they_brought(campaign: Campaign) -> None:
    client = Client()
    client.force_login(campaign.created_by)
    lines = [f"t1 d{n} 1" for n in range(1234)] + [f"t9 d{n} 1" for n in range(56)]
    upload(campaign, "\n".join(lines).encode(), "<judge>.tsv")

    page = client.get(reverse("material", args=[campaign.slug])).content.decode()

    assert "1,234 predicted grades, 56 pairs of unknown topics left out" in page
    assert '<option value="predictions">Predicted grades or costs</option>' in page
    assert "Predicted grades: topic, docno, grade or probabilities" in page
    assert "&lt;judge&gt;.tsv" in page


@pytest.mark.slow
@pytest.mark.on_both
def test_a_drawn_round_does_not_take_their_remove_button_away() -> None:
    made = evaluation.with_material()
    evaluation.drawn(made)
    row = prediction(made, b"t1 d1 1\n").upload
    client = Client()
    client.force_login(made.created_by)
    page = client.get(reverse("upload-detail", args=[made.slug, row.pk])).content.decode()
    assert "in use" not in page
    assert "1 predicted grade<" in page
    there = reverse("upload-remove", args=[made.slug, row.pk])
    assert there in page
    assert "judge.tsv is removed" in client.post(there, follow=True).content.decode()
    assert not Prediction.objects.exists()


@pytest.mark.slow
@pytest.mark.on_both
def test_programs_upload_and_remove_them() -> None:
    organizer = rest.client_of(User.objects.create_user("olga", is_organizer=True))
    organizer.post("/api/campaigns/", {"name": "news"}, format="json")
    there = "/api/campaigns/news/uploads/"
    grades = rest.file("j.tsv", "q1 d1 1.5\nq7 d1 1\n")
    body: dict[str, Any] = {"files": [rest.topics_file(), grades]}
    sent = organizer.post(there, body, format="multipart")
    assert [row["kind"] for row in sent.json()] == ["topics", "predictions"]
    bad = {"files": [rest.file("bad.tsv", "q1 d1 7\nq1 d2 2\n")], "kind": "predictions"}
    refused = organizer.post(there, bad, format="multipart").json()[0]
    rest.work()

    row = organizer.get(f"{there}{sent.json()[1]['id']}/").json()
    assert (row["state"], row["kind"]) == ("accepted", "predictions")
    assert row["summary"] == {"predictions": 1, "pairs_left_out": 1}
    row = organizer.get(f"{there}{refused['id']}/").json()
    assert row["state"] == "rejected"
    assert [(e["line"], e["field"]) for e in row["errors"]] == [(1, "grade")]
    assert organizer.delete(f"{there}{sent.json()[1]['id']}/").status_code == 204
    assert not Prediction.objects.exists()
