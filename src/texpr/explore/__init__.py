"""A page on which a program, its forms, its proof and its pictures stand side by side.

`asked`: what a reader wants to see, from untrusted data. `look`: the compiler's answer to it. `panes`: that answer as parts of
a page, `page` writes them as HTML, `worker` does so in a process of its own, and `server`, which alone imports Starlette,
serves them to a browser on this machine.
"""
