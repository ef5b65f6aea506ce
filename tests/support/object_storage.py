"""An S3 server of this machine, and what programs need to find it."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import fsspec

from tests.support.ports import free_port

BUCKET = "shards"
TRIES, PAUSE = 300, 0.1
SEEN = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
}


@contextmanager
def object_storage() -> Iterator[str]:
    """The address of an empty bucket, while this process and its children find the server."""
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(process, server)
        made = urllib.request.Request(f"{server}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made, timeout=60).close()
        with mock.patch.dict(os.environ, {**SEEN, "AWS_ENDPOINT_URL": server}):
            _forget()
            yield f"s3://{BUCKET}"
    finally:
        _forget()
        process.terminate()
        process.wait(60)


def _forget() -> None:
    """Of the server of another test: fsspec keeps what it has found while a process runs."""
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def _wait(process: "subprocess.Popen[bytes]", server: str) -> None:
    for _ in range(TRIES):
        if process.poll() is not None:
            raise RuntimeError(f"the S3 server ended with {process.returncode}")
        try:
            urllib.request.urlopen(f"{server}/moto-api/", timeout=60).close()
        except OSError:
            time.sleep(PAUSE)
        else:
            return
    raise RuntimeError("the S3 server does not answer")
