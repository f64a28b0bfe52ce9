"""A Llama-shaped model that decodes 16 tokens: in the native runner, and in the wheel's own LLM runner."""

from __future__ import annotations

import sys

import pytest

from etmem.model.summary import Summary
from tests.accuracy.captures import PROGRAMS, XNNPACK, category_bytes, phases, profile, summarized
from tests.models.llama import KV_CACHE_BYTES
from tests.models.registry import model_path

TOKENS = 16
DELEGATES = 24
PLANNED = 1_452_736


@pytest.fixture(scope="module")
def decoded() -> Summary:
    return profile("llama.pte", "--iterations", str(TOKENS))


def test_each_delegate_instance_is_told_apart(decoded: Summary) -> None:
    assert [(delegate.backend, delegate.instance) for delegate in decoded.delegates] == [
        ("XnnpackBackend", index) for index in range(DELEGATES)
    ]
    packing = [delegate for delegate in decoded.delegates if delegate.live_after_init_bytes > 256 * 256 * 4]
    assert packing, "no instance holds packed weights"


def test_the_kv_cache_is_in_planned_memory(decoded: Summary) -> None:
    """GIVEN a static cache of 512 KiB THEN planned memory holds it twice over, and nothing else grows per token."""
    planned = [arena.bytes for arena in decoded.arenas if arena.name == "planned[1]"]
    assert planned == [PLANNED]
    assert planned[0] >= 2 * KV_CACHE_BYTES
    assert decoded.peaks.steady is not None
    assert category_bytes(decoded.peaks.steady.moment, "executorch", "planned_memory") == PLANNED


def test_every_token_has_its_peak(decoded: Summary) -> None:
    inferences = list(phases(decoded, "inference"))
    assert [phase.iteration for phase in inferences] == list(range(TOKENS))
    assert len({phase.peak.private_bytes for phase in inferences[1:]}) == 1
    assert all(phase.live_end.private_bytes == inferences[0].live_end.private_bytes for phase in inferences)


def test_constant_methods_are_named_and_not_run(decoded: Summary) -> None:
    assert "get_vocab_size" in decoded.programs[0].constant_methods
    assert {phase.method for phase in phases(decoded, "inference")} == {"forward"}


def test_every_byte_has_an_owner(decoded: Summary) -> None:
    allocated = sum(phase.allocated_bytes for phase in decoded.phases)
    assert sum(phase.unowned_bytes for phase in decoded.phases) <= 0.001 * allocated


def test_packed_weights_are_the_models_weights(decoded: Summary) -> None:
    """Linear layers: 4 layers of attention and feed-forward, and the head; XNNPACK pads, so within 5 %."""
    attention, kv, hidden, inner, vocabulary = 256 * 256, 256 * 128, 256, 688, 512
    weights = 4 * (2 * attention + 2 * kv + 3 * hidden * inner) + hidden * vocabulary
    assert decoded.peaks.steady is not None
    packed = category_bytes(decoded.peaks.steady.moment, XNNPACK, "packed_weights")
    assert packed == pytest.approx(4 * weights, rel=0.05)


def test_the_wheels_own_llm_runner() -> None:
    """GIVEN a prompt of two tokens WHEN 16 are generated THEN each execute is an iteration of one method."""
    script = PROGRAMS / "generate.py"
    summary = summarized(
        "run",
        ("--", sys.executable, script, model_path("llama.pte"), model_path("llama_tokenizer.json"), str(TOKENS)),
    )
    inferences = [phase for phase in phases(summary, "inference") if phase.method == "forward"]
    # One per prompt token, then one per generated token but the last, which is never fed back.
    assert len(inferences) == 2 + TOKENS - 1
    assert [phase.iteration for phase in inferences] == list(range(len(inferences)))
    assert {delegate.instance for delegate in summary.delegates if delegate.method == "forward"} == set(
        range(DELEGATES)
    )
    assert PLANNED in {arena.bytes for arena in summary.arenas if arena.name == "planned[1]"}
