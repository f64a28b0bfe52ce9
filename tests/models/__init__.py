"""Models that the tests profile, exported here with seeded random weights and cached."""
