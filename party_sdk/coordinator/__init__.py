"""Coordinators: sessions opened, options read, letters written."""
