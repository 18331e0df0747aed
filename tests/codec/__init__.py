"""The JSON form of events and observations."""
