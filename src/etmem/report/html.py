"""The HTML page: one file that needs no network, with the data of one run in it."""

from __future__ import annotations

import base64
import html
import json
import zlib
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import Any

from etmem.report.data import report_data
from etmem.report.view import View

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This report needs JavaScript. The figures are in: {command}</noscript>
<main id="report"></main>
<script type="application/octet-stream" id="etmem-data">{data}</script>
<script>{script}</script>
</body>
</html>
"""
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""The page cannot reach the network, whatever stands in it."""


def render(view: View) -> bytes:
    data = report_data(view)
    return page(data, data.title, f"etmem report {data.trace} --full").encode()


def page(data: object, title: str, command: str) -> str:
    """The same data gives the same text. ``command`` prints the figures where there is no script."""
    return _PAGE.format(
        policy=_POLICY,
        title=html.escape(f"{title} - etmem"),
        command=html.escape(command),
        style=_asset("report.css"),
        data=pack(data),
        script=_asset("report.js"),
    )


def pack(data: object) -> str:
    """JSON under zlib under base64: a fifth of its size, and no name in it can be taken for markup."""
    # ASCII: a path that is not valid UTF-8 (surrogates) survives.
    text = json.dumps(data, default=_fields, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")


def _fields(value: Any) -> dict[str, object]:
    """A dataclass; everything else in the data is JSON already, and columns of a hundred thousand numbers are."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


@cache
def _asset(name: str) -> str:
    return resources.files("etmem.report").joinpath("assets", name).read_text(encoding="utf-8")
