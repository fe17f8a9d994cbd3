"""The desk at home: pages for one person, served on this machine alone.

Orders run without it (:mod:`party_sdk.supervisor`): the desk shows them, and passes on a
person's answers to their questions. It has no logic of protocols, and calls the same
functions as the commands.

``visits`` and ``gate`` admit one visitor and check every request, ``responses`` has the
frame and the forms of pages, ``form_answers`` redirects from a form to its page,
``sections`` lists all pages, and ``server`` is the process.

This is the only package of the SDK that imports a web server (extra ``ui``).
"""
