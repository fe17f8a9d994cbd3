"""The party SDK: take part in a session, or coordinate one.

Programs import its public names from :mod:`coterie`.
"""

from party_sdk.home.own_packages import offer_named_packages

# here, before any other module: the home's policy names the protocol packages
offer_named_packages()
