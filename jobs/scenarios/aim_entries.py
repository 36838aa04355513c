"""Looks up and parses aims as somebody wrote them, in a scenario file or in --find. Faults are collected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from jobs.scenarios.aim_whom import resolve_whom
from jobs.scenarios.aims import DEFAULT_ROUNDS, DEFAULT_STEP, Aim, Constraint, Over, Relation, Span, parse_bound
from jobs.scenarios.located_yaml import MALFORMED, Fault, LocatedYaml, Place, Texts, TextsByKey, empty_as_mapping
from jobs.scenarios.setting_entries import Entry, look_up_settings, parse_values
from jobs.scenarios.settings import Setting, Value, algorithms, find_setting, nearest_or_all_hint, settings
from jobs.units import parse_int, parse_number
from schemas.tables.gold_memory import (
    BROKER_MEMORY,
    BROKER_MEMORY_RANGES,
    LIBRDKAFKA_QUEUE,
    PRODUCER_MEMORY,
    PRODUCER_MEMORY_RANGES,
)
from schemas.tables.outcomes import Outcome, outcomes_of
from schemas.tables.values import CONSUMER
from udfs.replay.fetch_max_bytes.quotas import PRODUCER_QUOTA, has_quota
from udfs.replay.shared.lanes import TRAFFIC

FORM = "ALGORITHM: least|most OUTCOME for client=NAME,... where OUTCOME <= BOUND and ... over SETTING=FROM..TO and ..."
LEAST = ("least", "fewest", "smallest", "lowest", "shortest", "minimise", "minimize")
MOST = ("most", "largest", "highest", "longest", "maximise", "maximize")
RELATIONS: tuple[Relation, ...] = ("<=", ">=", "<", ">", "=")
_AIM = re.compile(
    r"(\w+)\s*:\s*(\w+)\s+(\S+)(?:\s+for\s+(.+?))?(?:\s+where\s+(.+?))?(?:\s+over\s+(.+?))?\s*", re.DOTALL
)
_CONSTRAINT = re.compile(r"\s*(\S+?)\s*(<=|>=|<|>|=)\s*([^=\s].*?)\s*")
_AND = re.compile(r"\s+and\s+|\s*,\s*")
WITHOUT_OTHER_TRAFFIC = (
    BROKER_MEMORY, BROKER_MEMORY_RANGES, PRODUCER_MEMORY, PRODUCER_MEMORY_RANGES, LIBRDKAFKA_QUEUE,
)  # fmt: skip
"""Tables without rows for lanes with other traffic."""
MOST_ROUNDS, MOST_SETTINGS = 100, 6
"""The most rounds that an aim may have, and the most settings that it may search. With more settings the first grid
would have hardly two values of each.
"""


class AimText(BaseModel):
    """The keys of an aim before anything in it is looked up."""

    model_config = ConfigDict(extra="forbid")

    minimise: str | None = None
    maximise: str | None = None
    whom: TextsByKey = Field(default_factory=dict, alias="for")
    where: Texts = Field(default_factory=list)
    over: TextsByKey = Field(default_factory=dict)
    step: str | None = None
    rounds: str | None = None


KEYS_OF_AIM = tuple(field.alias or name for name, field in AimText.model_fields.items())
"""The keys of an aim in a scenario file."""
AimTexts = Annotated[dict[str, AimText], BeforeValidator(empty_as_mapping)]


def flag_aims(texts: Iterable[str], faults: list[Fault]) -> Iterator[tuple[str, LocatedYaml, AimText]]:
    """(algorithm, where it is written, the aim) of each --find; any other text is a fault."""
    for text in texts:
        written = LocatedYaml("--find")
        spelt = _AIM.fullmatch(text.strip())
        if spelt is None or spelt[2] not in (*LEAST, *MOST):
            faults.append(Fault(Place(0, "--find"), f"`{text}` is not {FORM}"))
            continue
        whom = _assigned(spelt[4], "client=NAME,NAME or topic=NAME,NAME", faults)
        over = _assigned(spelt[6], "SETTING=FROM..TO or SETTING=VALUE,VALUE", faults)
        where = [part for part in _AND.split(spelt[5] or "") if part]
        kind = "minimise" if spelt[2] in LEAST else "maximise"
        aim = {kind: spelt[3], "for": whom, "where": where, "over": over}
        yield spelt[1], written, AimText.model_validate(aim)


def _assigned(text: str | None, form: str, faults: list[Fault]) -> dict[str, list[str]]:
    """The values of each KEY=VALUE,VALUE in a part of --find. form: how such a part is written."""
    by_key = dict[str, list[str]]()
    for part in re.split(r"\s+and\s+", text or ""):
        key, equals, values = part.partition("=")
        if equals and key.strip() and values.strip():
            by_key[key.strip()] = [value.strip() for value in values.split(",")]
        elif part:
            faults.append(Fault(Place(0, "--find"), f"`{part}` is not {form}"))
    return by_key


def resolve_aims(
    located: LocatedYaml, in_file: Mapping[str, AimText], flags: Iterable[str], faults: list[Fault]
) -> dict[str, Aim]:
    """The aim of each replay that has one. A flag replaces the file's aim; two flags for one replay are a fault."""
    written = {name: (located, aim) for name, aim in in_file.items()}
    by_flag = dict[str, tuple[LocatedYaml, AimText]]()
    for name, where, text in flag_aims(flags, faults):
        if name in by_flag:
            faults.append(Fault(Place(0, "--find"), f"{name} is given two aims; a run has one for each replay"))
        by_flag[name] = (where, text)
    aims = dict[str, Aim]()
    for name, (where, text) in (written | by_flag).items():
        if name not in algorithms():
            place = _place_of_aim(where, name)
            faults.append(Fault(place, f"unknown algorithm `{name}`{nearest_or_all_hint(name, algorithms())}"))
        elif aim := resolve_aim(where, name, text, faults):
            aims[name] = aim
    return aims


def resolve_aim(located: LocatedYaml, algorithm: str, text: AimText, faults: list[Fault]) -> Aim | None:
    """One aim; None if it has a fault."""
    before, known = len(faults), outcomes_of(algorithm)
    target, is_least = _target_of_aim(located, algorithm, text, faults)
    where = [
        constraint
        for i, written in enumerate(text.where)
        if (
            constraint := _constraint_of_text(_place_of_aim(located, algorithm, "where", i), algorithm, written, faults)
        )
    ]
    over: Over = _values_by_setting(located, algorithm, text, faults)
    names = [name for name in (target, *(constraint.outcome for constraint in where)) if name]
    if target is not None and not over and len(faults) == before:
        over = default_over(algorithm, target, where)
        if not over:
            form = "1,2,4" if target in settings() and settings()[target].type == "number" else "FROM..TO"
            fault = f"{target} has no usual bounds to look in: say `over`, as over {target}={form}"
            faults.append(Fault(_place_of_aim(located, algorithm), fault))
    if has_quota(over, PRODUCER_QUOTA):
        fault = f"no outcome says what becomes of producers under {PRODUCER_QUOTA}: list its values in --set"
        faults.append(Fault(_place_of_aim(located, algorithm, "over"), fault))
    of_others = [name for name in names if name in known and known[name].table in WITHOUT_OTHER_TRAFFIC]
    if of_others and not TRAFFIC.isdisjoint(over):
        fault = f"no lane with other traffic has {', '.join(of_others)}: such a lane is about what consumers hold"
        faults.append(Fault(_place_of_aim(located, algorithm, "over"), fault))
    if len(over) > MOST_SETTINGS:
        fault = f"`over` has {len(over)} settings; at most {MOST_SETTINGS}"
        faults.append(Fault(_place_of_aim(located, algorithm, "over"), fault))
    if target is not None and target not in known and over and target not in over:
        faults.append(Fault(_place_of_aim(located, algorithm), f"{target} is to be best, and `over` does not vary it"))
    aimed = [known[name] for name in names if name in known]
    place_of = partial(_place_of_aim, located, algorithm, "for")
    whom = resolve_whom(place_of, text.whom, aimed, over, faults)
    step = _number_of_entry(located, algorithm, "step", text.step, DEFAULT_STEP, faults)
    rounds = _number_of_entry(located, algorithm, "rounds", text.rounds, DEFAULT_ROUNDS, faults)
    if len(faults) > before or target is None:
        return None
    return Aim(
        algorithm=algorithm,
        target=target,
        is_least=is_least,
        where=tuple(where),
        over=over,
        step=step,
        rounds=int(rounds),
        whom=whom,
    )


def default_over(algorithm: str, target: str, where: Iterable[Constraint]) -> Over:
    """The settings and values that an aim searches if it names none.

    If the aim minimises or maximises a setting, it is that setting; else the settings of the side (consumer, broker,
    ...) whose outcomes the aim names. The spans of values are those in conf/settings.yaml under `searched`.
    """
    known = outcomes_of(algorithm)
    if target not in known:
        setting = settings()[target]
        return {} if setting.searched is None else {setting.key: Span(*setting.searched_span)}
    sides = {known[name].side for name in (target, *(constraint.outcome for constraint in where))}
    wanted = {side for side in sides if side is not None} or {CONSUMER}
    several = {setting.set_on for setting in _settings_with_usual_bounds(algorithm)} > {CONSUMER}
    return {
        setting.key: Span(*setting.searched_span)
        for setting in _settings_with_usual_bounds(algorithm)
        if not several or setting.set_on in wanted
    }


def _settings_with_usual_bounds(algorithm: str) -> list[Setting]:
    """The settings with usual bounds (`searched`) whose first algorithm is this one."""
    return [
        setting
        for setting in settings().values()
        if setting.searched is not None and setting.algorithms[:1] == (algorithm,)
    ]


def _place_of_aim(located: LocatedYaml, *address: str | int) -> Place:
    return located.at(("find", *address)) if located.lines else Place(0, located.name)


def _target_of_aim(located: LocatedYaml, algorithm: str, text: AimText, faults: list[Fault]) -> tuple[str | None, bool]:
    """(the outcome or setting of the aim, whether it is minimised); None for an unknown outcome or setting."""
    kinds = [kind for kind in ("minimise", "maximise") if getattr(text, kind) is not None]
    if len(kinds) != 1:
        fault = f"an aim has either `minimise` or `maximise`, and {' and '.join(kinds) or 'neither'} is given"
        faults.append(Fault(_place_of_aim(located, algorithm), fault))
        return None, True
    name, place = str(getattr(text, kinds[0])), _place_of_aim(located, algorithm, kinds[0])
    is_least = kinds[0] == "minimise"
    if name in outcomes_of(algorithm) or name == MALFORMED:
        return (None if name == MALFORMED else name), is_least
    try:
        setting = find_setting(name, _settings_of_replay(algorithm))
    except KeyError:
        hint = nearest_or_all_hint(
            name, outcomes_of(algorithm), (key for s in _settings_of_replay(algorithm) for key in (s.name, s.key))
        )
        faults.append(Fault(place, f"{algorithm} has no outcome or setting `{name}`{hint}"))
        return None, is_least
    if setting.choices:
        faults.append(Fault(place, f"{setting.key} cannot be least or most: its values are no numbers"))
    return setting.key, is_least


def _settings_of_replay(algorithm: str) -> list[Setting]:
    return [setting.in_lanes for setting in settings().values() if algorithm in setting.algorithms]


def _constraint_of_text(place: Place, algorithm: str, text: str, faults: list[Fault]) -> Constraint | None:
    """The constraint in a text; None if it has a fault."""
    if text == MALFORMED:
        return None
    spelt, known = _CONSTRAINT.fullmatch(text), outcomes_of(algorithm)
    if spelt is None:
        faults.append(Fault(place, f"`{text}` is not OUTCOME <= BOUND, with one of {' '.join(RELATIONS)}"))
        return None
    outcome = known.get(spelt[1])
    if outcome is None:
        faults.append(Fault(place, f"{algorithm} has no outcome `{spelt[1]}`{nearest_or_all_hint(spelt[1], known)}"))
        return None
    return _parse_constraint(place, outcome, spelt[2], spelt[3], faults)


def _parse_constraint(
    place: Place, outcome: Outcome, relation: str, text: str, faults: list[Fault]
) -> Constraint | None:
    try:
        bound = parse_bound(outcome, text)
    except ValueError as fault:
        faults.append(Fault(place, f"{outcome.name}: {fault}"))
        return None
    return Constraint(outcome.name, next(known for known in RELATIONS if known == relation), bound)


def _values_by_setting(
    located: LocatedYaml, algorithm: str, text: AimText, faults: list[Fault]
) -> dict[str, Span | tuple[Value, ...]]:
    """The values of each setting; settings with a fault are left out."""
    entries = [
        Entry(
            _place_of_aim(located, algorithm, "over", name),
            name,
            tuple((_place_of_aim(located, algorithm, "over", name, i), value) for i, value in enumerate(values)),
        )
        for name, values in text.over.items()
    ]
    known = look_up_settings(entries, _settings_of_replay(algorithm), faults, lambda _: "")
    spans = {key: _values_of_entry(*pair, faults) for key, pair in known.items()}
    return {key: values for key, values in spans.items() if values}


def _values_of_entry(setting: Setting, entry: Entry, faults: list[Fault]) -> Span | tuple[Value, ...]:
    """The values of an entry: a span for FROM..TO, else the listed values. What is wrong is added to `faults`."""
    texts = [text for _, text in entry.values]
    if len(texts) != 1 or ".." not in texts[0]:
        return parse_values(setting, entry, faults)
    try:
        return Span(*setting.span(texts[0]))
    except ValueError as fault:
        faults.append(Fault(entry.place, f"{setting.key}: {fault}"))
        return ()


def _number_of_entry(
    located: LocatedYaml, algorithm: str, name: str, text: str | None, default: float, faults: list[Fault]
) -> float:
    """The number under a key of an aim: `step`, a share, or `rounds`, a count; `default` if the aim lacks the key."""
    if text is None or text == MALFORMED:
        return default
    try:
        share = text.endswith("%")
        value = parse_int(text) if name == "rounds" else parse_number(text.removesuffix("%")) / (100 if share else 1)
    except ValueError as fault:
        faults.append(Fault(_place_of_aim(located, algorithm, name), f"{name}: {fault}"))
        return default
    least, most = (1, MOST_ROUNDS) if name == "rounds" else (0, 1)
    if not least <= value <= most:
        faults.append(Fault(_place_of_aim(located, algorithm, name), f"{name}: `{text}` is not from {least} to {most}"))
    return value
