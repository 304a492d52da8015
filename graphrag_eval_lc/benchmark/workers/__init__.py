"""Workers: processes, or actors on other machines, that ask the agent for the driver.

The driver is the process in which the run was started. It alone decides what is asked and when, keeps the limits and
the budgets, writes the files and has the judges asked. A worker loads the agent, asks it what the driver sends, and
sends back what came of it.
"""
