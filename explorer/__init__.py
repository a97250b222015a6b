"""Attention Explorer: see attention in real models, computed by our own multi-head attention."""
