"""The parts of the stack: one ComponentResource a module, and beside them plain modules named for what they know."""

PACKAGE = "ray-llm-eks"
"""The package in every type token (``ray-llm-eks:index:<Component>``) and the project in every required tag."""
