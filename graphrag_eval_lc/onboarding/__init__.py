"""An agent, or graphrag-eval's files, go in; a project with its dataset, and the checks of ``doctor``, come out."""
