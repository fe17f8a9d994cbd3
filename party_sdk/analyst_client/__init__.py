"""The analyst as parties and coordinators reach it: requests, patience, diagnosis."""
