"""Causal language models of Transformers by kind, built tiny from configurations, with random weights."""

from __future__ import annotations

from typing import Any

SMALL = {
    "vocab_size": 8192,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
}
WITHOUT_HEAD_DIM = ("falcon", "deepseek_v3", "xlstm", "kimi_linear", "rwkv")
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 512}
WINDOW = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 16}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
SHARED = {**EXPERTS, "shared_expert_intermediate_size": 16}
LATENT = {
    "first_k_dense_replace": 1,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "n_shared_experts": 1,
}
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1}
DELTA = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_value_heads": 2,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
KINDS: dict[str, dict[str, Any]] = {
    # attention
    "llama": {},
    "mistral": {"sliding_window": 16},
    "qwen2": {},
    "qwen3": {},
    "gemma2": WINDOW,
    "gemma3_text": WINDOW,
    "gemma3n_text": {
        **WINDOW,
        "vocab_size_per_layer_input": 8192,
        "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 0,
        "laurel_rank": 4,
    },
    "gemma4_text": WINDOW,
    "phi3": {"pad_token_id": 0},
    "olmo2": {},
    "olmo3": WINDOW,
    "gpt2": GPT,
    "gpt_neox": {},
    "gptj": {**GPT, "rotary_dim": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "num_layers": 2, "num_heads": 2, "window_size": 16},
    "gpt_bigcode": GPT,
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "bloom": {"n_layer": 2, "n_head": 2},
    "xglm": {"d_model": 32, "attention_heads": 2, "ffn_dim": 64, "num_layers": 2},
    "biogpt": {},
    "mpt": {"d_model": 32, "n_heads": 2, "n_layers": 2, "max_seq_len": 512},
    "falcon": {},
    "falcon_alibi": {"kind": "falcon", "alibi": True},
    "starcoder2": {},
    "stablelm": {},
    "cohere2": WINDOW,
    "granite": {},
    "smollm3": {},
    "glm4": {},
    "exaone4": WINDOW,
    "nanochat": {},
    "modernbert-decoder": {},
    "llama4_text": {
        "layer_types": ["chunked_attention", "full_attention"],
        "attention_chunk_size": 16,
        "num_local_experts": 4,
        "num_experts_per_tok": 1,
        "intermediate_size_mlp": 64,
        "interleave_moe_layer_step": 2,
    },
    # experts
    "mixtral": EXPERTS,
    "qwen3_moe": EXPERTS,
    "qwen2_moe": SHARED,
    "olmoe": EXPERTS,
    "gpt_oss": {**EXPERTS, **WINDOW},
    "deepseek_v2": {**LATENT, "topk_method": "greedy"},
    "deepseek_v3": LATENT,
    "glm4_moe": LATENT,
    "minimax_m2": EXPERTS,
    "afmoe": {**EXPERTS, **WINDOW, "num_dense_layers": 1},
    "granitemoe": EXPERTS,
    "phimoe": EXPERTS,
    # layers that are not attention
    "qwen3_5_text": DELTA,
    "qwen3_5_moe_text": {**DELTA, **SHARED},
    "qwen3_next": {**DELTA, **SHARED, "mlp_only_layers": [0, 1]},
    "olmo_hybrid": DELTA,
    "kimi_linear": {**EXPERTS, "layer_types": ["linear_attention", "full_attention"]},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_ff_dim": 64},
    "lfm2_moe": {**EXPERTS, "layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "falcon_h1": {**MAMBA, "mamba_d_ssm": 64},
    "bamba": {**MAMBA, "mamba_expand": 2, "attn_layer_indices": [1]},
    "granitemoehybrid": {
        **MAMBA,
        "mamba_expand": 2,
        "layer_types": ["mamba", "attention"],
        "num_local_experts": 0,
        "shared_intermediate_size": 32,
    },
    "nemotron_h": {
        "layers_block_type": ["mamba", "attention"],
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "ssm_state_size": 8,
        "n_groups": 1,
    },
    "zamba2": {
        "layers_block_type": ["mamba", "hybrid"],
        "mamba_d_state": 8,
        "n_mamba_heads": 4,
        "mamba_headdim": 16,
        "mamba_ngroups": 1,
        "use_mem_rope": True,
        "num_mem_blocks": 1,
        "hybrid_layer_ids": [1],
    },
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "num_experts": 1,
        "mamba_d_state": 8,
        "use_mamba_kernels": False,
    },
    "recurrent_gemma": {"block_types": ["recurrent", "attention"], "lru_width": 32, "attention_window_size": 64},
    "minimax": {**EXPERTS, "layer_types": ["linear_attention", "full_attention"], "block_size": 16},
    "mamba": {"state_size": 8},
    "falcon_mamba": {"state_size": 8},
    "mamba2": {"num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 1, "expand": 2},
    "rwkv": {"attention_hidden_size": 32},
    "xlstm": {"num_blocks": 2, "num_heads": 2},
}
"""Options of the configuration of each kind, whose name in Transformers is `kind`, where the name here is another."""


def make_model(name: str, attention: str = "sdpa", **more: Any) -> Any:
    """Build a model of a kind: two layers, of each sort of layer one, the same weights each time.

    Args:
        attention: as Transformers names it; models that don't know it attend by ``eager``.
        more: options of the configuration.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    options = {**SMALL, **KINDS[name], **more}
    kind = options.pop("kind", name)
    if kind in WITHOUT_HEAD_DIM:
        del options["head_dim"]
    config = CONFIG_MAPPING[kind](**options)
    config.pad_token_id = 0
    torch.manual_seed(0)
    try:
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    except ValueError:
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for part, parameter in model.float().named_parameters():  # states that last, as those of trained models do
        if part.endswith("A_log"):
            parameter.data.fill_(-3.0)
        elif part.endswith("dt_bias"):
            parameter.data.zero_()
    return model


def make_batch(lengths: tuple[tuple[int, ...], ...] = ((37, 50, 41), (60, 8, 35, 25))) -> dict[str, Any]:
    """Make rows of documents of random tokens, of these lengths; the last one of the last row is padding."""
    import torch

    ids = torch.randint(100, 8000, (len(lengths), sum(lengths[0])), generator=torch.Generator().manual_seed(1))
    positions = torch.stack([torch.cat([torch.arange(length) for length in row]) for row in lengths])
    ids[-1, -lengths[-1][-1] :] = 0
    labels = ids.where(ids > 0, -100)
    labels[:, 0] = -100
    return {"input_ids": ids, "labels": labels, "position_ids": positions}
