"""The page, served to browsers on this machine; the only folder that imports Starlette and uvicorn.

`guard`: who may ask. `crew`: the process that compiles. `app`: what is asked and answered. `serve` does it until it is stopped.
"""

from texpr.explore.server.serve import serve

__all__ = ["serve"]
