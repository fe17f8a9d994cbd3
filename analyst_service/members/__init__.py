"""Members: invitations, previews and joining."""
