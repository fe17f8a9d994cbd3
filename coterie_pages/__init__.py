"""Models and pages that people read, print and sign.

A model (:mod:`.models`) is serialised as JSON, or rendered as a self-contained HTML
file without scripts (:func:`.pages.render_html`). The SDK and the analyst import this
package. It imports neither of them, and opens only its own files.
"""
