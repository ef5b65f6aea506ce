"""Run by `benchmarks.labels` in an environment without evalsite: what other packages say of rows.

A question comes as JSON by standard input, and the answer goes to standard output. Agreement that
is weighted by the draw, which no package has, is summed over every two judgments of each pair.
"""

import json
import sys
import warnings
from collections import defaultdict
from itertools import combinations, permutations

import krippendorff
import numpy as np

METRICS = ("nominal", "ordinal", "interval")
GRADES = 4
LEAST_COUPLE = 10


def of_crowd(rows, steps, **_):
    import pandas as pd
    from crowdkit.aggregation import DawidSkene, MajorityVote

    votes = pd.DataFrame(rows, columns=["task", "worker", "label"])
    shares = MajorityVote().fit_predict_proba(votes).sort_index()[[0, 1]]
    model = DawidSkene(n_iter=steps, tol=-np.inf).fit(votes)
    counts = votes.groupby(["task", "label"]).size().unstack(fill_value=0).sort_index()
    errors = model.errors_.reindex(
        pd.MultiIndex.from_product(
            [range(votes.worker.max() + 1), [0, 1]], names=["worker", "label"]
        ),
        fill_value=np.float_power(10, -10),
    )[[0, 1]]
    said = errors.to_numpy().reshape(-1, 2, 2)  # worker, what they say, what is true
    said = said / said.sum(axis=1, keepdims=True)
    return {
        "mean": shares[1].tolist(),
        "majority": MajorityVote().fit_predict(votes).sort_index().tolist(),
        "prior": model.priors_[[0, 1]].tolist(),
        "posterior": model.probas_.sort_index()[[0, 1]].to_numpy().tolist(),
        "confusion": said.transpose(0, 2, 1).tolist(),
        **{each: alpha(counts.to_numpy(), each) for each in METRICS},
    }


def of_page(rows, pairs, **_):
    given = defaultdict(dict)
    for pair, who, grade in rows:
        given[str(pair)][who] = grade
    names = list(given)
    counts = np.array([np.bincount(list(given[name].values()), minlength=GRADES) for name in names])
    weight = np.array([1.0 / pairs[name][2] for name in names])
    return {
        "counts": [len(rows), len(names)],
        "plain": {each: alpha(counts, each) for each in METRICS},
        "drawn": {each: weighted_alpha(counts, weight, each) for each in METRICS},
        "topics": groups(counts, weight, [pairs[name][0] for name in names]),
        "batches": groups(counts, weight, [pairs[name][1] for name in names]),
        "grades": {
            "alpha": [alpha(is_it(counts, grade), "nominal") for grade in range(GRADES)],
            "drawn": [
                weighted_alpha(is_it(counts, grade), weight, "nominal") for grade in range(GRADES)
            ],
        },
        "couples": couples(given, pairs),
    }


def is_it(counts, grade):
    return np.column_stack([counts.sum(axis=1) - counts[:, grade], counts[:, grade]])


def groups(counts, weight, group):
    found = {}
    for each in sorted(set(group)):
        rows = [at for at, of in enumerate(group) if of == each]
        some = counts[rows], weight[rows]
        values = {"alpha": alpha(some[0], "ordinal"), "drawn": weighted_alpha(*some, "ordinal")}
        found[str(each)] = values
    return found


def alpha(counts, metric):
    """Of the package; None where there is one grade only, which it refuses."""
    several = counts[counts.sum(axis=1) > 1]
    if np.count_nonzero(several.sum(axis=0)) < 2:
        return None
    return float(krippendorff.alpha(value_counts=several, level_of_measurement=metric))


def weighted_alpha(counts, weight, metric):
    """One minus disagreement within pairs over that of any two judgments; as many as there are."""
    of_pairs = [
        ([grade for grade, often in enumerate(row) for _ in range(often)], heavy)
        for row, heavy in zip(counts.tolist(), weight.tolist(), strict=True)
        if sum(row) > 1
    ]
    if len({grade for given, _ in of_pairs for grade in given}) < 2:
        return None
    total = sum(len(given) for given, _ in of_pairs)
    scale = total / sum(len(given) * heavy for given, heavy in of_pairs)
    often = np.zeros(counts.shape[1])
    for given, heavy in of_pairs:
        for grade in given:
            often[grade] += heavy * scale

    def apart(one, other):
        if metric == "nominal":
            return float(one != other)
        if metric == "interval":
            return float((one - other) ** 2)
        low, high = min(one, other), max(one, other)
        return float((often[low : high + 1].sum() - (often[low] + often[high]) / 2) ** 2)

    within = sum(
        heavy * scale / (len(given) - 1) * sum(apart(*two) for two in permutations(given, 2))
        for given, heavy in of_pairs
    )
    grades = range(len(often))
    between = sum(
        often[one] * often[other] * apart(one, other) for one in grades for other in grades
    )
    return float(1.0 - (total - 1.0) * within / between)


def couples(given, pairs):
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    both = defaultdict(list)
    for name, said in given.items():
        for one, other in combinations(sorted(said), 2):
            both[f"{one} {other}"].append((said[one], said[other], 1.0 / pairs[name][2]))
    labels, found = list(range(GRADES)), {}
    for two, rows in both.items():
        if len(rows) < LEAST_COUPLE:
            continue
        one, other, weight = zip(*rows, strict=True)
        same = {"labels": labels, "weights": "quadratic"}
        found[two] = {
            "linear": float(cohen_kappa_score(one, other, labels=labels, weights="linear")),
            "quadratic": float(cohen_kappa_score(one, other, **same)),
            "drawn": float(cohen_kappa_score(one, other, sample_weight=weight, **same)),
            "counts": confusion_matrix(one, other, labels=labels).tolist(),
        }
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    question = json.load(sys.stdin)
    answer = {"crowd": of_crowd, "page": of_page}[question.pop("what")](**question)
    json.dump(answer, sys.stdout)
