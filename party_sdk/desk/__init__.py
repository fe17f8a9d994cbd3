"""The desk at home: pages that one person looks at, on this machine alone.

What runs, runs without them: the desk shows orders and what they ask
(:mod:`party_sdk.supervisor`), and answers for the person before it. It holds no logic of
protocols, and does nothing that the command line does not do by the same functions.

``visits``, ``gate``
    Who may look: a link that opens once, a cookie, and what every request is held
    against.
``answers``
    What each page is made with: its frame, a form's fields, refusals as pages.
``app``
    All pages: a list of rooms. A room is a way in the frame, and routes below it.
``serving``
    The process: the pages, and the supervisor beside them.

This is the only place of the SDK that imports a web server (extra ``ui``).
"""
