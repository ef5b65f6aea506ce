"""What a topic's title has in common with a text, in scripts that do not part words by blanks."""

import pytest

from judging.models import Topic
from judging.templatetags.assessing import marked
from judging.terms import TITLE_READ, terms_of
from tests.support.growth import LINEAR, growth

HAN = "".join(map(chr, range(0x4E00, 0x4E00 + TITLE_READ)))


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("东京大学的历史", "东京大学与历史学", "<mark>东京大学</mark>与<mark>历史</mark>学"),
        ("東京の大学", "東京大学", "<mark>東京大学</mark>"),
        ("人工智能是什么", "什么是人工智能?", "什么是<mark>人工智能</mark>?"),
        ("茶 的", "茶碗的历史", "<mark>茶</mark>碗的历史"),
        ("かばんです", "あかばんです", "あ<mark>かばんで</mark>す"),
        ("コンピュータ", "パソコン、コンピューター", "パソコン、<mark>コンピュータ</mark>ー"),
        ("한국 경제", "한국의 경제는 물가", "<mark>한국</mark>의 <mark>경제</mark>는 물가"),
        ("ประวัติศาสตร์ไทย", "เมืองไทย การ", "เมือง<mark>ไทย</mark> การ"),
        ("การศึกษา", "การเมือง", "การเมือง"),
        ("か\u3099くせい", "か\u3099く", "<mark>か\u3099く</mark>"),
        ("Python関数", "Pythonの関数&", "<mark>Python</mark>の<mark>関数</mark>&amp;"),
        ("AI", "AI가, MAI", "<mark>AI</mark>가, MAI"),
        ("的 の", "的の", "的の"),
    ],
)
def test_pieces_of_the_title_are_marked(title: str, text: str, expected: str) -> None:
    """They were taken for one word, which no text has."""
    assert marked(text, Topic(title=title)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "text"),
    [
        (HAN, "\u4e00\u4e01"),
        (HAN, "\u4e00\u4e02"),
        (HAN[::2], HAN[1::2]),
        ("a\u4e00" * TITLE_READ, "a\u4e00"),
        ("ประวัติศาสตร์" * TITLE_READ, "ประวัติ"),
        ("\u4e00\u0301" * TITLE_READ, "\u0301"),
        ("\u4e00\u4e01", "\u4e00" + "\u0301" * 500),
        ("word " * TITLE_READ, "word\u4e00"),
    ],
)
def test_hostile_runs_take_no_longer_than_their_length(title: str, text: str) -> None:
    terms = terms_of(title)

    def look(size: int) -> object:
        return sum(1 for _ in terms.found(text * (size // len(text)) + "x"))

    assert growth(look, 40_000) < LINEAR
