"""The plain manager and the plain worker: short, obvious and slow, the text one learns from."""
