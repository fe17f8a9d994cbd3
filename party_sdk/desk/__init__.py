"""The desk: a web interface that one person uses on the machine where it runs.

It contains no protocol logic, and calls the same functions as the commands. Orders,
which run parties in the background, belong to :mod:`party_sdk.supervisor`: the desk
shows them and stores a person's answers to their questions.

``visits`` and ``gate`` authenticate the visitor and validate requests, ``responses``
renders pages, ``form_answers`` stores the responses to forms, ``sections``
lists all routes, and ``server`` is the process.

This is the only package of the SDK that imports a web server (extra ``ui``).
"""
