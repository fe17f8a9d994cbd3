"""Stages that several protocols share; they follow the contract of any other stage."""
