"""A search for the schedule by which a function is fastest: points of a space are measured one by one, and all is kept.

A *problem* (`problem`) is a function for a target at its sizes, and an objective. Its *space* (`space`) has a dimension for
each const that only the schedule uses or, without a schedule, for each nest for which the planner has several candidates. A
*study* (`study`) keeps each trial in a database as soon as it is over, so that a search can be stopped at any time and goes on
where it was. Points are measured by *crews* (`crews`): processes here, or a cluster. How, is the caller's: by a function from a
task to an outcome, named by its module, both text.
"""
