"""`dssgnn bench speed`: training steps, filters, growth and populations, measured in one run."""
