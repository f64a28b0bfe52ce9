"""A Llama-shaped decoder with random weights and a static KV cache, lowered to XNNPACK: 24 delegates."""

from __future__ import annotations

import json
import string
from typing import Any

from tests.models.lowering import lower, xnnpack

LAYERS = 4
KV_HEADS = 4
HEAD_WIDTH = 32
CONTEXT = 128
VOCABULARY = 512
KV_CACHE_BYTES = LAYERS * 2 * KV_HEADS * CONTEXT * HEAD_WIDTH * 4
"""float32 keys and values of all positions: they live in planned memory."""


def llama(**larger: int) -> Any:
    """``larger``: fields of LlamaConfig to change, for benchmarks."""
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
    from transformers.integrations.executorch import convert_and_export_with_cache

    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 256,
        "intermediate_size": 688,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 8,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_WIDTH,
    }
    config = LlamaConfig(
        **(shape | larger),
        max_position_embeddings=CONTEXT,
        attn_implementation="sdpa",
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).eval()
    model.generation_config = GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        max_length=CONTEXT,
        cache_config={"batch_size": 1, "max_cache_len": CONTEXT},
    )
    # Strict: without it the cache's buffers alias and the exporter's decompositions refuse the graph.
    program = convert_and_export_with_cache(model, strict=True)
    return lower(
        program,
        xnnpack(),
        constant_methods={
            "get_vocab_size": VOCABULARY,
            "get_max_seq_len": CONTEXT,
            "get_max_context_len": CONTEXT,
            "get_bos_id": 1,
            "get_eos_ids": [2],
            "use_kv_cache": True,
            "use_sdpa_with_kv_cache": False,
            "enable_dynamic_shape": False,
        },
    )


def tokenizer() -> bytes:
    """A tokenizer of the model's vocabulary: one token per character; every token is ASCII, so any output decodes."""
    special = ["<unk>", "<s>", "</s>"]
    letters = [*string.ascii_letters, *string.digits, "\u0120"]  # U+0120 is a byte-level tokenizer's space
    filler = [f"t{index}" for index in range(VOCABULARY - len(special) - len(letters))]
    data = {
        "version": "1.0",
        "added_tokens": [
            {
                "id": index,
                "content": content,
                "special": True,
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
            }
            for index, content in enumerate(special)
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {token: index for index, token in enumerate(special + letters + filler)},
            "merges": [],
        },
    }
    return json.dumps(data).encode()


MODELS = {"llama.pte": llama, "llama_tokenizer.json": tokenizer}
