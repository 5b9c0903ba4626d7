"""Signature queries over serial GAT v3.50, pure.

Whatever a device reports of its own programs is its word and no proof: a changed device can report any hash.
"""
