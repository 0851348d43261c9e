"""Names of the fields of records that hold conversations, or lie beside them."""

CONVERSATION = ("messages", "conversations", "prompt", "completion")
"""Fields that hold conversations, if no field is named."""
TOOLS = (
    *("tools", "functions", "tool_defs", "tool_definitions", "available_tools"),
    *("tool_list", "tool_schemas", "function_list", "api_list"),
)
"""Fields beside a conversation that say which functions may be called."""
SYSTEM = ("system", "system_prompt", "systemInstruction", "system_instruction")
"""Fields beside a conversation that hold the text of the system."""
MEDIA = (
    *("image", "images", "image_path", "image_paths", "image_url", "image_urls"),
    *("video", "videos", "video_path", "audio", "audios", "audio_path"),
)
"""Fields beside a conversation that hold what is no text."""
PREFERENCE = ("chosen", "rejected")
"""Fields of a preference pair."""
TRAINING = ("train", "training", "trainable", "loss", "weight", "label", "kto_tag")
"""Fields beside a conversation that may say that it is not one to train on."""
BESIDE = (*TOOLS, *SYSTEM, *MEDIA, *PREFERENCE, *TRAINING, "chat_template_kwargs")
"""Fields that may say more of a conversation, or that it is not one to train on."""
