"""The errors that refetch raises on purpose: a base class, and a subclass for each thing that a user would do next."""

from __future__ import annotations


class RefetchError(Exception):
    """Base class of every error on which a user can act. The message says what was found and what to do."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in a notebook: only the message, as on the command line."""
        return [f"refetch: {self}"]


class CaptureError(RefetchError):
    """A capture cannot be opened, has no known format, changed while it was read, or does not show what is needed."""


class AlienError(CaptureError):
    """A file's content is nothing that refetch reads, or is not what its beginning looks like."""


class ArgumentError(RefetchError):
    """A command-line argument is unknown or malformed, or names something that does not exist."""


class SetupError(RefetchError):
    """The machine lacks what refetch needs: Python, Java, a package, a jar."""


class LakeError(RefetchError):
    """The lake cannot be read or written, or has a table that this version cannot use."""


class FrameError(RefetchError):
    """No function decodes such frames: the message is not declared, or contains credentials."""


class SparkError(RefetchError):
    """Spark failed. The message has the root cause, and where Spark's log is."""


class GateError(RefetchError):
    """A gate refused the tables of a run. The message has the rule, the count and examples."""


class FaultsError(RefetchError):
    """Several faults of one input, found in one pass and reported together."""

    def __init__(self, subject: str, faults: tuple[str, ...]) -> None:
        """subject: what is wrong, e.g. a file; faults: one line for each."""
        super().__init__(subject, faults)
        self.subject, self.faults = subject, faults

    def __str__(self) -> str:
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        return "\n  ".join([f"{self.subject}: {count}", *self.faults])


class ScenarioError(FaultsError):
    """A scenario file, --set or --captured has unknown keys or bad values."""


class SettingError(FaultsError):
    """The catalogue of settings, conf/settings.yaml, contradicts itself."""


class RuleError(FaultsError):
    """Gate rules have unknown keys, tables or columns, or expressions that Spark cannot read."""


class EvaluationError(RefetchError):
    """A gate rule could be read, but not applied to the tables, which are already written at that time."""
