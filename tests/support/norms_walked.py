"""The addresses of norming: who gets which status, what is sent there, and what is behind them."""

from judging.models import Campaign, NormingPair, User
from judging.services import norming
from tests.support import norms
from tests.support.walking import CAMPAIGN, NO, Statuses, assessing, belonging, organizing

WALKED: dict[str, tuple[Statuses, Statuses]] = {
    f"{CAMPAIGN}norming/": (assessing(), NO),
    f"{CAMPAIGN}norming/<int:pk>/": (assessing(302), assessing(302)),
    f"{CAMPAIGN}norming/<int:pk>/discussion/": (belonging(), NO),
    f"{CAMPAIGN}norming/<int:pk>/pairs/<int:pair>/": (belonging(), NO),
    f"{CAMPAIGN}norming/sessions/": (organizing(), organizing(302)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/": (organizing(), NO),
    f"{CAMPAIGN}norming/sessions/<int:pk>/add/": (NO, organizing(400)),  # it has begun
    f"{CAMPAIGN}norming/sessions/<int:pk>/file/": (organizing(), NO),
    f"{CAMPAIGN}norming/<int:pk>/pairs/<int:pair>/comment/": (NO, belonging(302)),
    f"{CAMPAIGN}norming/<int:pk>/pairs/<int:pair>/revise/": (NO, assessing(302)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/take/": (NO, organizing(302)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/people/": (NO, organizing(400)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/begin/": (NO, organizing(302)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/discuss/": (NO, organizing(302)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/close/": (NO, organizing(302)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/delete/": (NO, organizing(302)),
    f"{CAMPAIGN}norming/sessions/<int:pk>/pairs/<int:pair>/remove/": (NO, organizing(302)),
}
WALKED_BODIES: dict[str, dict[str, str]] = {
    f"{CAMPAIGN}norming/<int:pk>/": {"pair": "1", "grade": "1"},
    f"{CAMPAIGN}norming/<int:pk>/pairs/<int:pair>/comment/": {"text": "Look.", "key": "walk"},
    f"{CAMPAIGN}norming/<int:pk>/pairs/<int:pair>/revise/": {"grade": "2"},
    f"{CAMPAIGN}norming/sessions/": {"title": "another"},
    f"{CAMPAIGN}norming/sessions/<int:pk>/add/": {"text": "topic,docno\nt2,d1\n"},
    f"{CAMPAIGN}norming/sessions/<int:pk>/people/": {},
}


def norming_pair(made: Campaign, assessor: User) -> NormingPair:
    """Of a session that is discussed."""
    session = norms.session(made, lines="topic,docno\nt1,d1\n")
    pair = session.pairs.get()
    norming.answer(session=session, by=assessor, pair=pair.pk, grade=1)
    norming.discuss(session=session, by=made.created_by)
    return pair
