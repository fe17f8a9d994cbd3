"""What both shells say in HTTP: headers of waiting, of receipts and of uploads in pieces.

Both also ask which addresses are public.

Service and SDK never import each other; what they have to spell alike stands here.
"""
