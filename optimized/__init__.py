"""The fast manager, with the interface and the observations of the plain one."""
