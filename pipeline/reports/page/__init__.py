"""``report``: one HTML page about a store, a result, a batch or a bench, whole in itself.

markup, numbers, scales, charts and tables know nothing of graphs, and page says what each page has.
store, result, batch and bench make a page of their subject; run and levels the sections that
several have. write finds the subject and lets the page appear.
"""
