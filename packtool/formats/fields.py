"""Names of the fields of records that hold conversations, or lie beside them."""

CONVERSATION = ("messages", "conversations", "prompt", "completion")
"""Fields that hold conversations, where none is named."""
TOOLS = ("tools", "functions", "tool_defs", "tool_definitions", "available_tools")
"""Fields beside a conversation that say which functions may be called."""
SYSTEM = ("system", "system_prompt")
"""Fields beside a conversation that hold the text of the system."""
MEDIA = ("image", "images", "video", "videos", "audio", "audios")
"""Fields beside a conversation that hold what is no text."""
PREFERENCE = ("chosen", "rejected")
"""Fields of a preference pair."""
BESIDE = (*TOOLS, *SYSTEM, *MEDIA, *PREFERENCE, "chat_template_kwargs", "label")
"""Fields that may say more of a conversation, or that it is not one to train on."""
