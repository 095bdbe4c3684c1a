"""The protocols, and the records they leave in ``results/``."""
