"""Firmware over SMP: what an image file is, and the host side of list, upload, confirm and reset."""
