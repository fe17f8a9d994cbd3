"""The party SDK: take part in a session, or coordinate one.

Programs import its public names from :mod:`coterie`.
"""

from party_sdk.home.own_packages import offer_own_packages

# Whichever part of the SDK a program begins with, its home's policy names the packages
offer_own_packages()
