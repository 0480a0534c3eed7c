"""Measurements of this project through the real engine, each runnable by itself: ``python -m benchmarks.<name>``."""
