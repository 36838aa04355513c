"""The errors refetch raises on purpose: one root, one leaf for each thing a user would do next."""

from __future__ import annotations


class RefetchError(Exception):
    """Root of every error a user can act on; the message says what was found and what to do."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in a notebook: the message alone, as the command line does."""
        return [f"refetch: {self}"]


class CaptureError(RefetchError):
    """A capture cannot be opened, is of no known format, changed while it was read, or does not tell what is asked."""


class AlienError(CaptureError):
    """A file's content is none that refetch reads, or cannot be opened as what it begins like."""


class ArgumentError(RefetchError):
    """A command-line argument is unknown, malformed, or names something that is not there."""


class SetupError(RefetchError):
    """The machine lacks what refetch runs on: Python, Java, a package, a jar."""


class LakeError(RefetchError):
    """The lake cannot be read or written, or holds a table this version cannot use."""


class FrameError(RefetchError):
    """A function is asked for that decodes no frames: its message is not declared, or bears credentials."""


class SparkError(RefetchError):
    """Spark failed; the message has the root cause and where its log is."""


class GateError(RefetchError):
    """A gate refused the tables of a run; the message has the rule, the count and examples."""


class FaultsError(RefetchError):
    """Several faults of one input, found in one pass and told at once."""

    def __init__(self, subject: str, faults: tuple[str, ...]) -> None:
        """subject: what is at fault, e.g. a file; faults: one line each."""
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
    """Rules of gates have unknown keys, tables or columns, or expressions that Spark cannot read."""


class EvaluationError(RefetchError):
    """A rule of a gate could be read, and not be applied to the tables, which are written by then."""
