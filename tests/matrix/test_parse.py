"""Matrices as text, and what becomes of their options."""

from __future__ import annotations

import pytest

from etmem.matrix.executors import Place, parse_place
from etmem.matrix.model import Matrix
from etmem.matrix.parse import arguments, entries, parse_matrix
from etmem.model.errors import InputError, UsageError

HEAD = 'schema = "etmem.matrix/1"\n'


def test_axes_are_combined_and_entries_added():
    text = (
        HEAD + 'timeout_seconds = 5\n[axes]\nload_mode = ["mmap", "file"]\nthreads = [1, 2, 4]\n[[entry]]\ndry = true\n'
    )
    matrix = parse_matrix(text)
    assert len(matrix.choices) == 7
    assert matrix.choices[1] == {"load_mode": "mmap", "threads": 2}
    assert matrix.choices[-1] == {"dry": True}
    assert matrix.timeout_seconds == 5


def test_options_as_profile_takes_them():
    options = {
        "load_mode": "file", "threads": 2, "preset": "android", "weight_cache": True, "workspace_sharing": 0,
        "shapes": ["0=1x64", "0=1x8"], "iterations": 3, "dry": False, "share_arenas": True, "arch": "aarch64",
    }  # fmt: skip
    assert " ".join(arguments(options)) == (
        "--load-mode file --threads 2 --preset android "
        "--backend-option XnnpackBackend:weight_cache_enabled=true "
        "--backend-option XnnpackBackend:workspace_sharing_mode=0 "
        "--shape 0=1x64 --shape 0=1x8 --iterations 3 --no-dry --share-arenas --arch aarch64"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "schema"),
        (HEAD, "there is nothing to run"),
        (HEAD + "[axes]\nloadmode = ['mmap']", "axes.loadmode is not known (did you mean 'load_mode'?)"),
        (HEAD + "[axes]\nthreads = 4", "axes.threads is 4, not a list"),
        (HEAD + "[axes]\nthreads = []", "axes.threads"),
        (HEAD + "[axes]\nthreads = ['4']", "axes.threads has '4', not a number"),
        (HEAD + "[axes]\nweight_cache = [1]", "not true or false"),
        (HEAD + "[axes]\nshapes = [[1, 2]]", "not texts"),
        (HEAD + "[[entry]]\npreset = 3", "entry[0].preset"),
        (HEAD + "[[entry]]\ncolour = 'red'", "entry[0].colour is not known"),
        (HEAD + "axes = 3", "axes is no table"),
        (HEAD + "timeout_seconds = -1\n[[entry]]", "timeout_seconds"),
        (HEAD + f"[axes]\nthreads = {list(range(200))}\niterations = {list(range(200))}", "combinations"),
        ("[[entry", "not TOML"),
    ],
)
def test_mistakes_are_told_with_their_place(text, place):
    with pytest.raises(InputError) as caught:
        parse_matrix(text)
    assert place in caught.value.message


def test_an_entry_is_named_by_what_it_runs(tmp_path):
    one = tmp_path / "m.pte"
    one.write_bytes(b"a")
    matrix = Matrix(({"threads": 1}, {"threads": 2}, {"threads": 1}))
    first, second = entries([one, one], matrix)
    assert first.id != second.id
    assert first.label == "threads=1"
    one.write_bytes(b"b")
    assert entries([one], matrix)[0].id != first.id


def test_programs_that_cannot_be_told_apart_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.pte").write_bytes(b"x")
    with pytest.raises(UsageError, match="two programs are called"):
        entries([tmp_path / "a/m.pte", tmp_path / "b/m.pte"], Matrix(({},)))
    with pytest.raises(InputError, match="does not exist"):
        entries([tmp_path / "none.pte"], Matrix(({},)))


def test_executors():
    assert parse_place("local:3") == Place("local", jobs=3)
    assert parse_place("local").jobs >= 1
    assert parse_place("dask://host:8786") == Place("dask", "host:8786")
    for wrong in ("", "local:0", "local:x", "dask", "dask:host", "dask://", "ssh://x"):
        with pytest.raises(UsageError):
            parse_place(wrong)
