"""The WSGI entry point: ``gunicorn evalsite.wsgi``."""

import os
from typing import Any

import django
import numpy.ma  # noqa: F401 (`np.unique` asks for it: else within the first request)
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.utils.http import parse_header_parameters

from evalsite import allocator

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
os.environ.setdefault("DATABASE_SECONDS", "10")  # people wait for the answer


class Request(WSGIRequest):
    """Text is UTF-8, whatever charset a Content-Type names: some codecs are not of text at all."""

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        self.content_type = content_type


class Handler(WSGIHandler):
    request_class = Request


allocator.share()
django.setup(set_prefix=False)
application = Handler()
