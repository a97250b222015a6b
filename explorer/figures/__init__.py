"""Figures: numpy arrays and strings in, a plotly figure (or words) out."""
