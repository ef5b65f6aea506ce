"""The error of the user: something the caller can mend. All other exceptions are bugs."""

from collections.abc import Mapping
from typing import Any


class UserError(Exception):
    """Becomes a message on a page, a 4xx answer, or a line error on an upload.

    Parameters
    ----------
    code : short stable word for programs, e.g. ``"pair_full"``.
    message : one or two sentences for people: what is wrong and how to mend it.
    status : the HTTP status that fits (400, 403, 404, 409, 413 or 422; 507 if the disk is full).
    field : the input field at fault, if one is.
    data : further values for programs.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        field: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.field = field
        self.data = dict(data or {})
