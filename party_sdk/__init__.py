"""The party SDK: take part in a session, or coordinate one.

Programs import its public names from :mod:`coterie`.
"""
