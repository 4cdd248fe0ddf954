"""The report of a release as one HTML page: a typed view, its figures and its template.

Data flow one way: stored facts (``facts``) -> typed view (``build``) -> figures and page
(``render``). The card of a release is written from the same view.
"""
