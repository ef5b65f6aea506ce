"""How many labels choosing the topics saves, on fully judged learning-to-rank data.

The experiment of Sawade et al. 2013, section 5, on other data: the error of the estimate against
the labels that were paid for, for passive sampling (uniform over topics), active sampling with a
grade model learned from features of other topics, and its two variants: costs not considered
(uniC), and no grade model (uniD). The last column is the unbiased estimator, with topics that were
drawn for it.

    python -m benchmarks.query_sampling FOLDER [--repeats 2000] [--measures AP nDCG@10]

FOLDER holds runs/*.run.gz, a complete qrels.txt and features/*.svmlight.gz (lines in the order of
qrels.txt).
"""

import argparse
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import optimize

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import rank_lines
from estimation.core.estimates.complete import complete_values
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import Estimator, QueryDesign, Rule
from estimation.core.rounds.topics.draws import draw_queries
from estimation.core.rounds.topics.estimators import ratio_estimate, unbiased_estimate
from estimation.core.rounds.topics.grade_models import GradeModel, predicted_grades, uniform_grades
from estimation.core.sampling import goals
from estimation.core.sampling.goals import Goal

FOLDS, PENALTY = 5, 100.0
SINGLE, PAIR = "lambdarank", ("lambdarank", "rf_200")
BUDGETS = (200, 300, 450, 700, 1000, 1500)
PASSIVE_BUDGETS = (140, *BUDGETS, 2000, 2500, 3000)
MEASURES = ("DCG(dcg='exp-log2')", "ERR")


@dataclass(frozen=True, eq=False)
class JudgedCollection:
    """A pool whose every pair has a grade, and a grade model that never saw the pair's topic."""

    pool: Pool
    grades: np.ndarray
    learned: GradeModel

    @property
    def max_grade(self) -> int:
        return self.learned.max_grade

    @property
    def labels(self) -> LabelRows:
        return LabelRows(np.arange(len(self.pool)), self.grades)


# --------------------------------------------------------------------- the learned grade model


def fit_ordered_logit(features: np.ndarray, grades: np.ndarray, penalty: float) -> np.ndarray:
    """Fit p(grade > c) = sigmoid(x beta - theta_c), theta increasing; return the parameters.

    A quadratic penalty on beta makes it the MAP ordered logistic regression of McCullagh 1980.
    """
    cuts, width = int(grades.max()), features.shape[1]

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        beta, theta = parameters[:width], _cutpoints(parameters[width:])
        score = features @ beta
        exceeds = _sigmoid(score[:, None] - np.concatenate([[-np.inf], theta, [np.inf]]))
        rows = np.arange(len(grades))
        above, below = exceeds[rows, grades], exceeds[rows, grades + 1]
        chance = np.maximum(above - below, 1e-300)
        slopes = np.zeros_like(exceeds)
        slopes[rows, grades] = above * (1 - above) / chance
        slopes[rows, grades + 1] -= below * (1 - below) / chance
        by_theta = slopes[:, 1:-1].sum(axis=0)
        later = np.cumsum(by_theta[::-1])[::-1]
        by_raw = np.concatenate([later[:1], later[1:] * np.exp(parameters[width + 1 :])])
        gradient = -features.T @ slopes.sum(axis=1) + penalty * beta
        value = -np.log(chance).sum() + 0.5 * penalty * beta @ beta
        return float(value), np.concatenate([gradient, by_raw])

    start = np.zeros(width + cuts)
    return optimize.minimize(loss, start, jac=True, method="L-BFGS-B").x


def predict_ordered_logit(parameters: np.ndarray, features: np.ndarray) -> np.ndarray:
    width = features.shape[1]
    theta = _cutpoints(parameters[width:])
    score = features @ parameters[:width]
    exceeds = _sigmoid(score[:, None] - np.concatenate([[-np.inf], theta, [np.inf]]))
    return exceeds[:, :-1] - exceeds[:, 1:]


def _cutpoints(raw: np.ndarray) -> np.ndarray:
    return np.cumsum(np.concatenate([raw[:1], np.exp(raw[1:])]))


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * values))


def out_of_fold(topic: np.ndarray, features: np.ndarray, grades: np.ndarray) -> np.ndarray:
    """Predict the grades of every topic from the other folds' topics."""
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    fold = np.unique(topic, return_inverse=True)[1] % FOLDS
    chances = np.empty((len(grades), int(grades.max()) + 1))
    for each in range(FOLDS):
        held = fold == each
        parameters = fit_ordered_logit(scaled[~held], grades[~held], PENALTY)
        chances[held] = predict_ordered_logit(parameters, scaled[held])
    return chances


# ---------------------------------------------------------------------------------- the data


def read_features(path: Path) -> np.ndarray:
    with gzip.open(path, "rt") as lines:
        rows = [[cell.split(":") for cell in line.split()[2:]] for line in lines]
    width = 1 + max(int(cell[0]) for row in rows for cell in row)
    table = np.zeros((len(rows), width))
    for number, row in enumerate(rows):
        for column, value in row:
            table[number, int(column)] = float(value)
    return table


def read_collection(folder: Path, tags: Sequence[str]) -> JudgedCollection:
    qrels = np.array((folder / "qrels.txt").read_bytes().split(), dtype=np.bytes_).reshape(-1, 4)
    topic, docno, grade = qrels[:, 0], qrels[:, 2], qrels[:, 3].astype(np.int64)
    runs = {}
    for tag in tags:
        with gzip.open(folder / "runs" / f"{tag}.run.gz", "rb") as lines:
            cells = np.array(lines.read().split(), dtype=np.bytes_).reshape(-1, 6)
        runs[tag] = rank_lines(cells[:, 0], cells[:, 2], cells[:, 4].astype(np.float64))
    pool = build_pool([name.decode() for name in np.unique(topic)], runs, depth=1000)
    features = read_features(next((folder / "features").glob("*.svmlight.gz")))
    chances = out_of_fold(topic, features, grade)
    place = {key: row for row, key in enumerate(zip(topic.tolist(), docno.tolist(), strict=True))}
    names = [pool.topics[each].encode() for each in pool.topic]
    rows = [place[key] for key in zip(names, pool.docno.tolist(), strict=True)]
    best = chances.shape[1] - 1
    every, probability = np.arange(len(pool)), chances[rows]
    model = predicted_grades(pool, pairs=every, probability=probability, max_grade=best)
    return JudgedCollection(pool, grade[rows], model)


# ------------------------------------------------------------------------------ the experiment


@dataclass(frozen=True)
class Setting:
    """What is to be estimated."""

    goal: Goal
    measure: Measure

    @property
    def contrast(self) -> np.ndarray:
        return np.array([1.0]) if self.goal.kind == "single" else np.array([1.0, -1.0])


def designs(data: JudgedCollection, setting: Setting, budget: float) -> dict[str, QueryDesign]:
    flat = uniform_grades(data.pool, max_grade=data.max_grade)
    kinds: Mapping[str, tuple[Rule, GradeModel, Estimator]] = {
        "passive": ("uniform", flat, "ratio"),
        "active": ("active", data.learned, "ratio"),
        "uniC": ("uniC", data.learned, "ratio"),
        "uniD": ("active", flat, "ratio"),
        "unbiased": ("active", data.learned, "unbiased"),
    }
    return {
        name: make_query_design(
            data.pool,
            goal=setting.goal,
            measure=setting.measure,
            model=model,
            budget=budget,
            rule=rule,
            estimator=estimator,
        )
        for name, (rule, model, estimator) in kinds.items()
    }


def root_mean_square_error(
    data: JudgedCollection, setting: Setting, design: QueryDesign, *, repeats: int
) -> float:
    """Error of the design's estimator over seeded repetitions."""
    estimate = ratio_estimate if design.estimator == "ratio" else unbiased_estimate
    wanted = true_contrast(data, setting)
    truth = wanted.mean()
    errors = np.empty(repeats)
    for number in range(repeats):
        sample = draw_queries(data.pool, design, seed=f"query-sampling-{number}")
        topic, counts = np.unique(sample.draws, return_counts=True)
        weight = 1.0 / (len(wanted) * design.probability[topic])
        found = estimate(wanted[topic, None], weight=weight, counts=counts)
        errors[number] = found.value[0] - truth
    return float(np.sqrt(np.mean(errors**2)))


def saved(
    budget: float, error: float, *, budgets: Sequence[float], passive: Sequence[float]
) -> float:
    """Share of labels saved: 1 - budget / (what passive sampling needs for the same error).

    The passive curve is interpolated on log scales; nan beyond its ends.
    """
    needed = np.exp(
        np.interp(
            -np.log(error), -np.log(passive), np.log(budgets), left=float("nan"), right=float("nan")
        )
    )
    return float(1.0 - budget / needed)


def saved_in_the_limit(data: JudgedCollection, setting: Setting) -> dict[str, float]:
    """Share of labels that each design saves in large samples (Lemma 1 with the true values).

    "best" is the q that knows every value: no other saves more with the self-normalized estimator.
    """
    wanted = true_contrast(data, setting)
    squares = (wanted - wanted.mean()) ** 2
    found = designs(data, setting, BUDGETS[0])
    cost = found["passive"].cost
    chances = {name: design.probability for name, design in found.items()}
    best = np.maximum(np.sqrt(squares / cost), 1e-12)
    chances["best"] = best / best.sum()
    variances = {name: np.sum(squares / q) * np.sum(cost * q) for name, q in chances.items()}
    q = chances["unbiased"]
    variances["unbiased"] = (np.sum(wanted**2 / q) - np.sum(wanted) ** 2) * np.sum(cost * q)
    return {name: 1.0 - float(each / variances["passive"]) for name, each in variances.items()}


def true_contrast(data: JudgedCollection, setting: Setting) -> np.ndarray:
    """The value, or the difference, that is to be estimated, topic by topic."""
    values = complete_values(
        data.pool, grades=data.grades, measures=[setting.measure], max_grade=data.max_grade
    )[0]
    columns = [data.pool.run_index(tag) for tag in setting.goal.all_runs]
    return values[:, columns] @ setting.contrast


def print_table(data: JudgedCollection, setting: Setting, repeats: int) -> None:
    print(f"\n{setting.goal.kind} {' '.join(setting.goal.all_runs)}, {setting.measure}")
    passive = []
    for budget in PASSIVE_BUDGETS:
        design = designs(data, setting, budget)["passive"]
        passive.append(root_mean_square_error(data, setting, design, repeats=repeats))
    names = [name for name in designs(data, setting, BUDGETS[0]) if name != "passive"]
    heads = "".join(f"{name:>10}" for name in names)
    print(f"budget   passive{heads}   saved by{heads}")
    for budget in BUDGETS:
        known = designs(data, setting, budget)
        row = [
            root_mean_square_error(data, setting, known[name], repeats=repeats) for name in names
        ]
        shares = [saved(budget, error, budgets=PASSIVE_BUDGETS, passive=passive) for error in row]
        errors = [passive[PASSIVE_BUDGETS.index(budget)], *row]
        print(f"{budget:6}" + "".join(f"{error:10.5f}" for error in errors) + _percent(shares, 11))
    limit = saved_in_the_limit(data, setting)
    print(f"in large samples (active at best {100 * limit['best']:.0f}%)".ljust(66), end=" ")
    print(_percent([limit[name] for name in names], 0))


def _percent(shares: Sequence[float], indent: int) -> str:
    return " " * indent + "".join(f"{100 * share:9.0f}%" for share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--measures", nargs="+", default=MEASURES, metavar="MEASURE")
    options = parser.parse_args()
    data = read_collection(options.folder, PAIR)
    print(f"{len(data.pool.topics)} topics, {len(data.pool)} pairs, {options.repeats} repeats;")
    print("error: root mean square; saved: labels, against passive sampling with this error")
    for goal in (goals.single(SINGLE), goals.pair(*PAIR)):
        for text in options.measures:
            print_table(data, Setting(goal, parse_measure(text)), options.repeats)


if __name__ == "__main__":
    main()
