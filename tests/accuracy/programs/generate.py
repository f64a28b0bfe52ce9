"""Generates tokens with ExecuTorch's own LLM runner: MODEL TOKENIZER TOKENS. The prompt is two tokens."""

import sys

from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

model, tokenizer, tokens = sys.argv[1:]
said: list[str] = []
runner = TextLLMRunner(model, tokenizer)
config = GenerationConfig(max_new_tokens=int(tokens), temperature=0.0, echo=False)
runner.generate("me", config, token_callback=said.append)
if len(said) != int(tokens):
    sys.exit(f"generated {len(said)} tokens, not {tokens}")
