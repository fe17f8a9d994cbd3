"""The OpenAPI document: what the framework writes, and what readers and generators miss."""

from analyst_service.openapi.document import describe

__all__ = ["describe"]
