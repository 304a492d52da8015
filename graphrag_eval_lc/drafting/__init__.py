"""Drafting a reference dataset from what an agent did, for a person to check and complete."""

from graphrag_eval_lc.drafting.draft import DRAFT_TEMPLATE_ID, Draft, draft, draft_dataset

__all__ = ["DRAFT_TEMPLATE_ID", "Draft", "draft", "draft_dataset"]
