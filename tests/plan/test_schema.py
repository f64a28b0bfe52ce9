"""Plans against the published schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from etmem.planning import PlanOptions, plan
from tools import gen_plan_schema


def test_the_published_schema_is_up_to_date():
    assert gen_plan_schema.PATH.read_text() == gen_plan_schema.text()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("convs_three_delegates", {"budget_bytes": 1 << 20}),
        ("mlp_dynamic", {"shapes": {(None, 0): (1, 2048)}}),
        ("unknown_backend", {}),
        ("mlp_portable", {"target": "armv7m", "budget_bytes": 1 << 20}),
        ("many_methods", {"preset": "android"}),
    ],
)
def test_a_plan_fits_the_schema(model, name, options):
    data = json.loads(plan(model(name), PlanOptions(**options)).to_json())
    jsonschema.validate(data, json.loads(gen_plan_schema.PATH.read_text()))
