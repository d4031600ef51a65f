"""The services of the reviews: every change of findings, packages, signatures, decisions and what follows."""

from pocs.reviews.services.decisions import (
    ConditionInput,
    condition_close,
    decision_confirm,
    decision_propose,
    decision_revoke,
)
from pocs.reviews.services.findings import business_result_save, conclusion_save
from pocs.reviews.services.follow_through import task_done, task_set
from pocs.reviews.services.handover import duties_hand_over
from pocs.reviews.services.objections import (
    objection_answer,
    objection_raise,
    objection_rule,
    objection_withdraw,
)
from pocs.reviews.services.observation import observation_close, observation_read, observation_set
from pocs.reviews.services.overdue import overdue_escalate
from pocs.reviews.services.packages import package_freeze
from pocs.reviews.services.policy import policy_save
from pocs.reviews.services.requests import signoff_ask_again, signoffs_expire
from pocs.reviews.services.schedules import schedule_set, schedules_run
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
    "duties_hand_over",
    "objection_answer",
    "objection_raise",
    "objection_rule",
    "objection_withdraw",
    "observation_close",
    "observation_read",
    "observation_set",
    "overdue_escalate",
    "package_freeze",
    "policy_save",
    "schedule_set",
    "schedules_run",
    "signoff_ask_again",
    "signoff_sign",
    "signoff_withdraw",
    "signoffs_expire",
    "task_done",
    "task_set",
    "waiver_grant",
    "waiver_refuse",
    "waiver_request",
    "waiver_revoke",
    "waivers_expire",
]
