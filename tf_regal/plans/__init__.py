"""`Plan`: the decision, its predicted figures and its provenance; the file format, the cache, reports, and exports."""

from tf_regal.plans.cache import PlanCache
from tf_regal.plans.plan import Bounds, Figures, Plan, SearchInfo, load_plan
from tf_regal.plans.report import Applied, Report

__all__ = ["Applied", "Bounds", "Figures", "Plan", "PlanCache", "Report", "SearchInfo", "load_plan"]
