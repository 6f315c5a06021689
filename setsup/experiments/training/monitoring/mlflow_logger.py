"""Lightning's logger of MLflow, made to resume: one MLflow run for a run folder, and every step once."""

from collections.abc import Mapping
from typing import Any

from lightning.pytorch.loggers import MLFlowLogger
from lightning.pytorch.utilities import rank_zero_only

__all__ = ["ResumedMLFlowLogger"]

_TAG = "setsup.identity"
_EXPERIMENT = "setsup"


class ResumedMLFlowLogger(MLFlowLogger):
    """Logs into the MLflow run that has the identity of a run as a tag, or a new one.

    MLflow keeps the values of a step that is logged twice, and refuses a parameter that changes. So steps that were
    logged before a run was killed are left out when they are trained again, and so are settings that the run has.
    """

    def __init__(self, uri: str, title: str, identity: str) -> None:
        super().__init__(_EXPERIMENT, run_name=title, tracking_uri=uri, tags={_TAG: identity})
        self._logged, self._settings = -1, frozenset[str]()
        self._resume(identity)

    @rank_zero_only
    def _resume(self, identity: str) -> None:
        client = self._mlflow_client
        experiment = client.get_experiment_by_name(_EXPERIMENT)
        if experiment is None:
            return
        runs = client.search_runs([experiment.experiment_id], f"tags.`{_TAG}` = '{identity}'", max_results=1)
        for run in runs:
            self._run_id = run.info.run_id
            self._settings = frozenset(run.data.params)
            histories = (client.get_metric_history(self._run_id, name) for name in run.data.metrics)
            self._logged = max((metric.step for history in histories for metric in history), default=-1)
            client.update_run(self._run_id, status="RUNNING")

    @rank_zero_only
    def log_hyperparams(self, params: Any) -> None:
        """Log the settings that the run does not have."""
        super().log_hyperparams({name: value for name, value in dict(params).items() if name not in self._settings})

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log the metrics of a step, unless the run has it."""
        if metrics and (step is None or step > self._logged):
            super().log_metrics(metrics, step)
