"""The services of the reviews: every change of findings, packages, signatures, decisions and what follows."""

from pocs.reviews.services.decisions import (
    ConditionInput,
    condition_close,
    decision_confirm,
    decision_propose,
    decision_revoke,
)
from pocs.reviews.services.findings import business_result_save, conclusion_save
from pocs.reviews.services.follow_through import (
    observation_close,
    observation_read,
    observation_set,
    task_done,
    task_set,
)
from pocs.reviews.services.packages import package_freeze
from pocs.reviews.services.signoffs import signoff_sign, signoff_withdraw
from pocs.reviews.services.waivers import (
    waiver_grant,
    waiver_refuse,
    waiver_request,
    waiver_revoke,
    waivers_expire,
)

__all__ = [
    "ConditionInput",
    "business_result_save",
    "conclusion_save",
    "condition_close",
    "decision_confirm",
    "decision_propose",
    "decision_revoke",
    "observation_close",
    "observation_read",
    "observation_set",
    "package_freeze",
    "signoff_sign",
    "signoff_withdraw",
    "task_done",
    "task_set",
    "waiver_grant",
    "waiver_refuse",
    "waiver_request",
    "waiver_revoke",
    "waivers_expire",
]
