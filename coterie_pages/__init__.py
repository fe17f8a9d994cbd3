"""Models and pages that people read, print and sign.

A model (:mod:`.models`) becomes JSON, or one HTML file that needs nothing else
(:func:`.pages.page`): no script, no network, pictures drawn here. SDK and analyst
import this package; it imports neither, and opens only files of its own.
"""
