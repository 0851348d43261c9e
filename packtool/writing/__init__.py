"""From a plan and an order to shards on disk."""
