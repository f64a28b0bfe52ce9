"""What ``etmem profile --cycles N`` prints instead of the first screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etmem.cli.console import text_width, write_file, write_text
from etmem.cli.exits import FAILURE, OK, WRONG_FIGURE
from etmem.cli.output import OutputOptions, show_log
from etmem.model.errors import CaptureError
from etmem.model.words import Severity

if TYPE_CHECKING:
    from etmem.capture.options import Capture


def present_cycles(captured: Capture, asked: int, options: OutputOptions) -> int:
    """Exit code 0 whether or not something leaks: --json has ``leaked_bytes_per_cycle``."""
    from etmem.analysis.cycles import cycles
    from etmem.api import analyze_trace
    from etmem.report.cycles import render, to_json

    summary, context = analyze_trace(captured.trace_path, captured.describe)
    found = cycles(context, asked)
    wrong = any(issue.severity is Severity.ERROR for issue in summary.issues)
    show_log(captured.log_path, every=options.verbose, failed=wrong or captured.exit_status != 0)
    if found is None:
        hint = "the log, and etmem report on the trace, tell what went wrong"
        raise CaptureError("the program ended before its first cycle did", hint)
    if options.json is not None:
        write_file(to_json(found), options.json)
    if not options.quiet and options.json != "-":
        write_text(render(found, name=captured.programs[0].name, width=text_width(), full=options.full))
    if wrong:
        return WRONG_FIGURE
    return OK if captured.exit_status == 0 else FAILURE
