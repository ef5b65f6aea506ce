"""What this side has of a campaign, in the order in which it goes when the campaign is deleted."""

from estimation.models import (
    Draw,
    Estimate,
    EstimateSet,
    MachineAnswer,
    MachineJudge,
    MachinePrompt,
    Prediction,
    Report,
    Round,
    RoundBatch,
    Run,
    StoredPool,
)
from estimation.services import unnamed_files
from judging.services import deletion

ROWS: tuple[deletion.Rows, ...] = (
    (Report, "estimate_set__round__campaign"),
    (Estimate, "estimate_set__round__campaign"),
    (EstimateSet, "round__campaign"),
    (Draw, "round__campaign"),
    (RoundBatch, "round__campaign"),
    (Round, "campaign"),
    (StoredPool, "campaign"),
    (MachineAnswer, "prompt__judge__campaign"),
    (MachinePrompt, "judge__campaign"),
    (MachineJudge, "campaign"),
    (Prediction, "campaign"),
    (Run, "campaign"),
)


def register() -> None:
    """Their files go afterwards, as far as no other campaign has the same."""
    deletion.goes_first(*ROWS, afterwards=unnamed_files.request)
