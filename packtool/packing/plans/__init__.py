"""Kinds of plan that strategies make, and the windows of documents that they are made for."""
