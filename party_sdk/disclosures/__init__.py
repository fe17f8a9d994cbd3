"""What the tables of a home showed to whom, over all its sessions."""
