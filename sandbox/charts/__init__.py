"""The three Helm charts that the program installs, as far as they decide where pods run, for machines without a way to them."""
