"""The party SDK: take part in a session, or coordinate one, from Python."""

from party_sdk.coordinator import Coordinator
from party_sdk.frames import Result
from party_sdk.participant import Party
from party_sdk.policy import Policy

__all__ = ["Coordinator", "Party", "Policy", "Result"]
