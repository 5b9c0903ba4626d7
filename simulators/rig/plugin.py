"""The pytest plugin `cutcard`: simulated devices and whole tables as fixtures, imported when used."""
