"""The kinds of plan that strategies make, and the windows of documents they are made for."""
