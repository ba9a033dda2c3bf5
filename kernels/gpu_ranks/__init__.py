"""A rank of several GPUs: what it calls vertices, its rows, its mail, its searches.

``delegate_*`` is the layout of delegates, ``grid_*`` the layouts 2d and 1d.
"""
