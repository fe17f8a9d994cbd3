"""What a home has disclosed about its tables, and to whom, in all its sessions."""
