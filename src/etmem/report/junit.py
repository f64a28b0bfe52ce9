"""A verdict as JUnit XML: one test case per limit, so that any CI shows which one was passed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from etmem.analysis.budget_model import Outcome, Status, Verdict
from etmem.report.units import clean
from etmem.report.verdict import title


def to_junit(verdicts: tuple[Verdict, ...]) -> str:
    """``testsuites`` with one suite per target; over budget is a failure, what cannot be told an error."""
    root = ET.Element("testsuites", _counts([o for verdict in verdicts for o in verdict.outcomes]), name="etmem check")
    for verdict in verdicts:
        suite = ET.SubElement(root, "testsuite", _counts(list(verdict.outcomes)), name=clean(verdict.target))
        for outcome in verdict.outcomes:
            _case(suite, verdict.target, outcome)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(outcomes: list[Outcome]) -> dict[str, str]:
    return {
        "tests": str(len(outcomes)),
        "failures": str(sum(outcome.status is Status.OVER for outcome in outcomes)),
        "errors": str(sum(outcome.status is Status.ERROR for outcome in outcomes)),
    }


def _case(suite: ET.Element, target: str, outcome: Outcome) -> None:
    case = ET.SubElement(suite, "testcase", classname=clean(target), name=title(outcome.limit))
    if outcome.status is Status.OK:
        ET.SubElement(case, "system-out").text = clean(outcome.message)
        return
    kind = "failure" if outcome.status is Status.OVER else "error"
    found = ET.SubElement(case, kind, message=clean(outcome.message), type=outcome.status.value)
    found.text = "\n".join(f"{size:,} B {clean(name)}" for name, size in outcome.breakdown)
