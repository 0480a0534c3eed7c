"""Policies for prefill/decode LLM serving on EFA: rules as pure functions, policies as thin wrappers round them."""
