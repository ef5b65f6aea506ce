"""Files of columns: whole under the names of their content, mapped, and checked when asked for."""

import hashlib
import tracemalloc

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from estimation.core.archives import write_archive
from estimation.models import Round
from estimation.services import files, pools
from judging.models import Campaign
from tests.core.mapped import is_mapped
from tests.support import evaluation


def test_a_pool_is_mapped_also_by_who_has_built_it(campaign: Campaign) -> None:
    row, built = pools.ensure(campaign)
    found, again = pools.ensure(campaign)
    assert found == row
    for pool in (built, again, pools.load(row)):
        assert all(is_mapped(getattr(pool, name)) for name in ("docno", "indptr", "run", "rank"))
        assert pool.digest == built.digest


def test_a_pool_that_is_kept_has_the_digest_of_its_content(campaign: Campaign) -> None:
    _, pool = pools.ensure(campaign)
    told = pool.digest
    vars(pool).pop("digest")
    assert pool.digest == told


def test_what_is_kept_is_named_by_its_content_and_kept_once() -> None:
    name = files.keep("some", b"content")
    assert name == f"some/{hashlib.sha256(b'content').hexdigest()}"
    first = files.path_of(name).stat()
    assert files.keep_written("some", lambda file: file.write(b"content")) == name
    assert files.path_of(name).stat().st_ino == first.st_ino, "who has mapped it has this one"
    assert [path.name for path in files.path_of("some").iterdir()] == [files.path_of(name).name]


def test_a_file_that_cannot_be_written_to_its_end_leaves_nothing() -> None:
    def write(file):  # type: ignore[no-untyped-def]
        file.write(b"half")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        files.keep_written("broken", write)
    assert not list(files.path_of("broken").iterdir())


@pytest.mark.slow
def test_columns_go_into_their_file_without_a_second_copy_in_memory() -> None:
    column = np.arange(8_000_000)
    tracemalloc.start()
    try:
        files.keep_written("large", lambda file: write_archive(file, "f", {}, {"column": column}))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.6 * column.nbytes, "pieces of 16 MB, whatever there is to write"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["pool", "design", "sample"])
def test_recompute_tells_which_file_of_a_round_is_damaged_or_missing(
    campaign: Campaign, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = evaluation.drawn(campaign)
    call_command("recompute")
    name = row.pool.file if what == "pool" else getattr(row, f"{what}_file")
    path, whole = files.path_of(name), files.path_of(name).read_bytes()
    assert path.is_relative_to(settings.MEDIA_ROOT)
    for damage in (whole[:-1] + bytes([whole[-1] ^ 1]), None):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        with pytest.raises(CommandError):
            call_command("recompute")
        assert f"the file of its {what}, {name}, is damaged or missing" in capsys.readouterr().out
    assert Round.objects.get() == row
