"""Which status somebody gets at an address: who is not signed in, an assessor, the organizer of
another campaign, the organizer, and an admin."""

Statuses = tuple[int, int, int, int, int]
CAMPAIGN = "c/<slug:slug>/"


def everybody(status: int = 200) -> Statuses:
    """Who is not signed in is sent to do so."""
    return (302, status, status, status, status)


def organizing(status: int = 200) -> Statuses:
    """What organizers get; assessors are told no, and others that there is nothing."""
    return (302, 403, 404, status, status)


def assessing(status: int = 200) -> Statuses:
    return (302, status, 404, 403, 403)


def belonging(status: int = 200) -> Statuses:
    """What organizers get, and who takes part."""
    return (302, status, 404, status, status)


def administering(status: int = 200) -> Statuses:
    """What admins get; everybody else is told no."""
    return (302, 403, 403, 403, status)


def all_alike(status: int = 200) -> Statuses:
    return (status, status, status, status, status)


NO = everybody(405)
