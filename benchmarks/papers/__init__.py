"""What papers print, run again."""
