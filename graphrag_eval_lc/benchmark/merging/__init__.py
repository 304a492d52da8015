"""Parts of one run, such as its shards on several machines, put together to a run like any other."""
