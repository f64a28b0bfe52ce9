"""Small C programs that tests start under the agent."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCES = {
    "plain": "#include <stdlib.h>\nint main(void) { free(malloc(12345)); return 7; }\n",
    "killed": "#include <signal.h>\n#include <stdlib.h>\nint main(void) { malloc(54321); raise(SIGKILL); }\n",
    "waits": """#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t seen;
static void handle(int number) { seen = number; }
int main(void) {
  signal(SIGTERM, handle);
  signal(SIGINT, handle);
  fputs("ready\\n", stderr);
  for (int i = 0; i < 200 && !seen; ++i) usleep(50000);
  return seen;
}
""",
    "runtime_inside": "int _ZN10executorch7runtime6Method7executeEv(void) { return 0; }\n"
    "int main(void) { return _ZN10executorch7runtime6Method7executeEv(); }\n",
}


def build(name: str, folder: Path, *flags: str) -> Path:
    """One of the programs above, compiled."""
    source = folder / f"{name}.c"
    source.write_text(SOURCES[name])
    subprocess.run(["gcc", "-O0", source, "-o", folder / name, *flags], check=True)
    return folder / name
