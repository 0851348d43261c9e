"""Choose the documents of token stores: which may be taken (`rules`), how often each store is, and in which order."""
