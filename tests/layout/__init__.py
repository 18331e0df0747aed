"""The shape of the project itself: folders, links and who imports whom."""
