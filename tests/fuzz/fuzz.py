"""Coverage-guided fuzzing, for as long as you like: TARGET [options of libFuzzer]. New finds go into build/fuzz."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

SOURCES = Path(__file__).resolve().parents[2] / "src"
# An editable install imports by a finder of its own, behind which atheris instruments nothing: no coverage, no guide.
sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("_editable")]
sys.path.insert(0, str(SOURCES))

with atheris.instrument_imports(include=["etmem"]):
    import etmem.analysis.summarize
    import etmem.delegates.ethos_u
    import etmem.delegates.xnnpack.estimate
    import etmem.planning
    import etmem.report.plan
    import etmem.report.text
    import etmem.trace.packed
    import etmem.trace.reader
    from tests.fuzz.targets import CORPUS, TARGETS


def main() -> None:
    assert Path(etmem.__file__).is_relative_to(SOURCES)
    name, *options = sys.argv[1:]
    found = Path("build/fuzz") / name
    found.mkdir(parents=True, exist_ok=True)
    atheris.Setup([sys.argv[0], *options, str(found), str(CORPUS / name)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
