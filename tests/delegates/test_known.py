"""Where descriptions are found, which of two holds, and what is said of a wrong one."""

from __future__ import annotations

import os
import sys
from importlib.metadata import EntryPoint

import pytest

from etmem.capture.attached import Recording
from etmem.delegates import descriptions, given, known, stack_backends
from etmem.delegates.estimating import load
from etmem.model.errors import InputError
from etmem.model.words import Category
from tests.delegates.test_descriptions import FORM


@pytest.fixture
def write(tmp_path):
    def write(name, category="workspace", backend="B"):
        path = tmp_path / name
        path.write_text(FORM.replace("workspace", category).replace('"B"', f'"{backend}"'))
        return path

    return write


@pytest.fixture
def package(tmp_path, monkeypatch, write):
    """An installed package with a description of B, as pip leaves it."""
    folder = tmp_path / "site"
    (folder / "b_delegate").mkdir(parents=True)
    write("package.toml", "packed_weights").rename(folder / "b_delegate/memory.toml")
    (folder / "b_delegate/__init__.py").write_text(
        "from importlib.resources import files\nDESCRIPTION = files(__name__) / 'memory.toml'\nNOTHING = 3\n"
    )
    info = folder / "b_delegate-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: b-delegate\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[etmem.delegates]\nb = b_delegate:DESCRIPTION\n")
    monkeypatch.syspath_prepend(str(folder))
    known._of_packages.cache_clear()
    yield info / "entry_points.txt"
    known._of_packages.cache_clear()
    sys.modules.pop("b_delegate", None)


def category(*files):
    return descriptions(files)["B"].category(["f"], "malloc")


def test_a_file_an_environment_variable_and_a_package(write, package, monkeypatch):
    """GIVEN all three THEN the option holds over the variable, and the variable over the package."""
    assert category() is Category.PACKED_WEIGHTS
    first, second = write("first.toml", "workspace"), write("other.toml", "metadata", backend="Other")
    monkeypatch.setenv("ETMEM_DESCRIBE", f"{first}:{second}")
    assert category() is Category.WORKSPACE
    assert category(write("option.toml", "operator_buffers")) is Category.OPERATOR_BUFFERS
    assert {"B", "Other", "XnnpackBackend"} <= set(descriptions())
    assert set(given()) == {"B", "Other"}


def test_a_user_s_description_replaces_etmem_s_own_as_a_whole(write):
    found = descriptions([write("xnnpack.toml", backend="XnnpackBackend")])["XnnpackBackend"]
    assert found.category(["xnn_plan_memory"], "posix_memalign") is Category.METADATA
    assert found.estimate is None
    assert "B" in stack_backends([write("b.toml")])


def test_two_of_one_backend_at_one_place(write, monkeypatch):
    pair = [write("a.toml"), write("b.toml")]
    with pytest.raises(InputError, match=r"b.toml: a second description of B, beside .*a.toml"):
        descriptions(pair)
    monkeypatch.setenv("ETMEM_DESCRIBE", ":".join(map(str, pair)))
    with pytest.raises(InputError, match=r"b.toml: a second description of B"):
        descriptions()
    monkeypatch.setenv("ETMEM_DESCRIBE", str(pair[0]))
    assert category(pair[1]) is Category.WORKSPACE


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ("b = b_delegate:ABSENT", "entry point b = b_delegate:ABSENT: AttributeError"),
        ("b = absent_package:X", "entry point b = absent_package:X: ModuleNotFoundError"),
        ("b = b_delegate:NOTHING", "entry point b = b_delegate:NOTHING is not the path of a description"),
        ("a = b_delegate:DESCRIPTION\nb = b_delegate:DESCRIPTION", "a second description of B, beside entry point a"),
    ],
)
def test_a_package_s_wrong_entry_point_is_named(package, points, words):
    package.write_text(f"[etmem.delegates]\n{points}\n")
    with pytest.raises(InputError) as caught:
        descriptions()
    assert words in caught.value.message
    assert caught.value.hint


def test_entry_points_name_paths_too(tmp_path, write):
    path = str(write("b.toml"))
    sys.modules["paths_of_b"] = type(sys)("paths_of_b")
    sys.modules["paths_of_b"].PATH = path
    try:
        assert known._resolve(EntryPoint("b", "paths_of_b:PATH", known.ENTRY_POINTS))[1].read_text() == FORM
    finally:
        del sys.modules["paths_of_b"]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"absent.toml cannot be read: No such file"):
        descriptions([tmp_path / "absent.toml"])
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        descriptions([tmp_path])
    (tmp_path / "latin.toml").write_bytes(b'backend = "\xe4"')
    with pytest.raises(InputError, match=r"latin.toml is not TOML: it is not UTF-8"):
        descriptions([tmp_path / "latin.toml"])


@pytest.mark.parametrize("reference", ["absent_package.sizes:estimate", "etmem.delegates:absent"])
def test_an_estimate_that_is_not_there(reference):
    with pytest.raises(InputError, match=f"the estimate {reference} cannot be imported"):
        load(reference)


def test_a_recording_asks_for_the_stacks_of_what_it_is_given(write, monkeypatch, tmp_path):
    """GIVEN a description for ``etmem.trace`` THEN its backend's stacks are recorded, and the hooks are told."""
    monkeypatch.setenv("ETMEM_STACKS", "")
    recording = Recording(tmp_path / "run.etmem", describe=write("b.toml"))
    assert "B" in recording._options().stacks.decode().split(",")
    assert "B" in os.environ["ETMEM_STACKS"].split(",")
