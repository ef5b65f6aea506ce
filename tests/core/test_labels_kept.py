"""What was selected of judgments, and made of them, is kept with them: of the same question."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelError, LabelRows, pair_labels, select_rows
from estimation.core.measures.table import parse_measure


def test_what_is_kept_with_rows_is_of_the_same_question() -> None:
    rows = LabelRows(np.array([4, 2, 2, 7]), np.array([1, 2, 0, 1]))
    asked = [([2, 4, 7], [2, 4, 7], 2), ([2, 4, 7], [2, 4], 2), ([2, 4, 5, 7], [2, 4, 5, 7], 2)]
    for sampled, prefix, most in [*asked[:2], *asked[:2]]:
        known = {"sampled": np.array(sampled), "prefix": np.array(prefix), "max_grade": most}
        chosen = select_rows(rows, **known)
        fresh = select_rows(LabelRows(rows.pair, rows.grade), **known)
        assert chosen.pair.tolist() == fresh.pair.tolist()
        assert select_rows(rows, **known) is chosen
        for text in ("P@2", "DCG@2", "RBP(p=0.8)", "DCG(dcg='exp-log2')@2"):
            found = pair_labels(chosen, pairs=len(prefix), measure=parse_measure(text))
            alone = LabelRows(chosen.pair, chosen.grade)
            again = pair_labels(alone, pairs=len(prefix), measure=parse_measure(text))
            assert found.mean.tolist() == again.mean.tolist()
    with pytest.raises(LabelError, match="no label"):
        select_rows(rows, sampled=np.array(asked[2][0]), prefix=np.array(asked[2][1]), max_grade=2)
    with pytest.raises(LabelError, match="does not lie between"):
        select_rows(rows, sampled=np.array([2, 4, 7]), prefix=np.array([2, 4]), max_grade=1)
