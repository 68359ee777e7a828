// Only its name matters.
