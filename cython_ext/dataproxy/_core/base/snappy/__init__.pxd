"""Blocks that snappy has packed.

What lives here.  ``compress``: packs a block with libsnappy, and unpacks one, always with a limit on what comes out.
``blockmap``: where each part of a packed block comes from, so that it can be read in place.  ``blockread``: reads from
one by such a map.

Threads and locks: as in ``base``.
"""
