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
MARKS = ("train", "training", "trainable", "loss", "weight")
"""Fields of a record, a message, a part or a call that say whether it trains: true or false, or 1 or 0."""
LOSS_MASKS = (
    *("loss_mask", "loss_masks", "loss_weights", "mask", "masks", "weights", "message_weights"),
    *("train_mask", "trains", "assistant_mask", "assistant_masks"),
)
"""Fields beside messages with a list of marks, one for each message."""
LABEL = ("label", "kto_tag")
"""Fields of an unpaired preference that are false where its answer is a bad one."""
BESIDE = (*TOOLS, *SYSTEM, *MEDIA, *PREFERENCE, *MARKS, *LOSS_MASKS, *LABEL, "chat_template_kwargs")
"""Fields that may say more of a conversation, or that it is not one to train on."""
