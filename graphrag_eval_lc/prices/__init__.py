"""What calls of models cost, in USD."""

from graphrag_eval_lc.prices.dollars import dollars
from graphrag_eval_lc.prices.pricing import Pricing, lacks_costs, unpriced_warning
from graphrag_eval_lc.prices.response_costs import priced_response

__all__ = ["Pricing", "dollars", "lacks_costs", "priced_response", "unpriced_warning"]
