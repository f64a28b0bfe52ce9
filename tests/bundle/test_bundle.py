"""Bundles: what they hold, that damage is told, that nothing of the machine is left in a redacted one."""

from __future__ import annotations

import getpass
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import etmem
from etmem.bundle.comparing import compare_as_page, compare_runs
from etmem.bundle.redaction import machine_names, redact
from etmem.bundle.sources import load
from etmem.bundle.writing import write_bundle
from etmem.cli.main import run
from etmem.model.errors import EtmemError, InputError
from etmem.model.summary import Issue
from etmem.model.words import IssueCode, Severity
from tests.report import samples

FILES = {"manifest.json", "summary.json", "blocks.json", "environment.json", "command.json", "plan.json", "trace.etmem"}


def test_a_bundle_holds_everything_and_is_whole(folder, archive, trace, capsys):
    assert {path.name for path in folder.iterdir()} == FILES
    assert set(zipfile.ZipFile(archive).namelist()) == FILES
    assert (folder / "trace.etmem").read_bytes() == trace.read_bytes()
    for bundle in (folder, archive):
        assert run(["verify", str(bundle)]) == 0
        assert capsys.readouterr().out.startswith("whole  6 files, ")


def test_a_bundle_is_compared_as_its_trace_is(folder, archive, trace):
    for bundle in (folder, archive):
        found = compare_runs(bundle, trace)
        assert found.empty
        assert found.blocks_compared == "all"
    assert load(archive).summary == etmem.load(trace).summary


def test_a_bundle_has_its_trace_s_timeline_and_a_redacted_one_its_summary_s(archive, trace, tmp_path):
    write_bundle(tmp_path / "plain.zip", trace, redacted=True)
    pages = [load(path, page=True).page for path in (trace, archive, tmp_path / "plain.zip")]
    assert pages[0].samples == pages[1].samples
    assert len(pages[2].samples.stamps) == 3 * len(pages[2].summary.phases) < len(pages[1].samples.stamps)
    found, html = compare_as_page(archive, tmp_path / "plain.zip")
    assert found.empty
    assert html.count("</script>") == 2


def test_the_same_run_gives_the_same_archive(archive, trace, tmp_path):
    write_bundle(tmp_path / "again.zip", trace)
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_the_plan_tells_the_file_s_figures(folder):
    (program,) = json.loads((folder / "plan.json").read_text())
    planned = [figure for figure in program["figures"] if figure["what"] == "planned"]
    assert [figure["value"] for figure in planned] == [9_175_104]


@pytest.mark.parametrize("name", sorted(FILES - {"manifest.json"}))
def test_one_changed_byte_is_told(folder, name, capsys):
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    assert run(["verify", str(folder), "--json", "-"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem.startswith(f"{name} has been changed")
    with pytest.raises(InputError, match="has been changed"):
        load(folder)


def test_a_missing_a_longer_and_a_foreign_file_are_told(folder, capsys):
    (folder / "plan.json").unlink()
    with (folder / "command.json").open("a") as file:
        file.write("\n")
    (folder / "more.txt").write_text("x")
    assert run(["verify", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "NOT WHOLE" in out
    assert "plan.json is missing" in out
    assert "command.json has" in out
    assert "'more.txt' is not in the manifest" in out


def test_a_manifest_cannot_lead_out_of_the_bundle(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"].append({"name": "../secret", "bytes": 1, "sha256": "0" * 64})
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="is no file of a bundle"):
        load(folder)


def test_an_archive_with_other_members_or_lying_sizes_is_refused(archive, tmp_path):
    bad = tmp_path / "bad.zip"
    shutil.copyfile(archive, bad)
    with zipfile.ZipFile(bad, "a") as file:
        file.writestr("../evil", b"x")
    with pytest.raises(InputError, match="is no file of a bundle"):
        load(bad)
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name) if name != "plan.json" else b" " * 50_000_000)
    with pytest.raises(InputError, match=r"plan\.json has"):
        load(bad)


@pytest.mark.parametrize("cut", [0, 10, 1000])
def test_a_torn_archive_is_refused_in_words(archive, tmp_path, capsys, cut):
    torn = tmp_path / "torn.zip"
    torn.write_bytes(archive.read_bytes()[:cut])
    assert run(["verify", str(torn)]) == 1
    assert capsys.readouterr().err.startswith("etmem: error: ")


def test_only_a_bundle_is_replaced(folder, trace, tmp_path):
    write_bundle(folder, trace)
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("x")
    file = tmp_path / "file.zip"
    file.write_text("x")
    for target in (precious, file):
        with pytest.raises(EtmemError, match="is no bundle"):
            write_bundle(target, trace)
    assert (precious / "thesis.txt").read_text() == "x"
    assert file.read_text() == "x"


def test_a_redacted_bundle_names_no_folder_and_no_user(model, tmp_path, monkeypatch):
    home = tmp_path / "alice" / "work"
    home.mkdir(parents=True)
    program = home / "convs.pte"
    shutil.copyfile(model("convs"), program)
    monkeypatch.setattr("etmem.bundle.redaction.machine_names", lambda: [("alice", "<user>")])
    code = run(
        ["profile", str(program), "-q", "-o", str(home / "t.etmem"), "--bundle", str(tmp_path / "b"), "--redact"]
    )
    assert code == 0
    assert not (tmp_path / "b" / "trace.etmem").exists()
    for path in (tmp_path / "b").iterdir():
        text = path.read_text()
        assert "alice" not in text
        assert str(tmp_path) not in text
        assert str(Path.cwd()) not in text
    found = compare_runs(tmp_path / "b", home / "t.etmem")
    assert found.empty
    assert found.blocks_compared == "all"


def test_redaction_keeps_file_names_and_the_vocabulary():
    issue = Issue(
        IssueCode.PROGRAM_FAILED, Severity.WARNING, "cannot open /home/bob/my models/mlp.pte: bob may not",
        "see /var/log/x.log, ~/y and bob@lab", {"path": ["/home/bob/z.so"], "count": 3},
    )  # fmt: skip
    base = samples.mlp()
    summary = replace(
        base,
        issues=(issue,),
        programs=(replace(base.programs[0], path="/home/bob/my models/mlp.pte"),),
        environment=replace(base.environment, command=("etmem", "--ptd=/home/bob/a.ptd", "bob/m.pte", "load")),
    )
    # A user called "load": the summary's own words are no place for names.
    found = redact(summary, [("bob", "<user>"), ("lab", "<host>"), ("load", "<user>")])
    assert found.programs[0].path == "mlp.pte"
    assert found.environment.command == ("etmem", "--ptd=a.ptd", "m.pte", "<user>")
    assert found.issues[0].message == "cannot open mlp.pte: <user> may not"
    assert found.issues[0].hint == "see x.log, y and <user>@<host>"
    assert found.issues[0].detail == {"path": ["z.so"], "count": 3}
    assert found.peaks == base.peaks
    assert found.balances == base.balances


def test_this_user_is_among_the_names_taken_out():
    assert getpass.getuser() in [name for name, _ in machine_names()]
