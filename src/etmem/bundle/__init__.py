"""Results that are kept: what a run left behind, as a bundle, a trace or a summary."""
