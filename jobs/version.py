"""refetch's version, as in pyproject.toml, and the texts that distinguish one decoder or replayer from another."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from jobs.scenarios.stated_brokers import brokers_digest
from udfs import CODE, code_digest
from udfs.capture.request_log_head import UTC
from udfs.facts.pseudonyms import KEY, Pseudonyms
from udfs.facts.record_sampling import RecordSampling

VERSION = "0.1.0"
NONE_STATED: Mapping[str, str] = MappingProxyType({})


def decoder_version(
    pseudonyms: Pseudonyms | None,
    records: RecordSampling | None = None,
    log_zone: str = UTC,
    quarantine_id: str = "",
    brokers: Mapping[str, str] = NONE_STATED,
    earlier: str = "",
) -> str:
    """The version and a digest of all code that decides which silver rows a capture gives. Then, where they apply:
    whether sizes of records were asked for, the zone of request logs, digests of the gate's rules on rows, of the
    stated brokers and of what decoded the set that is continued, and the key of pseudonyms.

    earlier: what decoded the set that is continued; empty if none is continued.
    """
    named = "" if pseudonyms is None else f"+{pseudonyms.key_id}"
    sized = "" if records is None else f"+records/{records.every}"
    zoned = "" if log_zone == UTC else f"+{log_zone}"
    gated = f"+gate/{quarantine_id}" if quarantine_id else ""
    stated = f"+brokers/{brokers_digest(brokers)}" if brokers else ""
    continued = f"+continues/{hashlib.sha256(earlier.encode()).hexdigest()[:8]}" if earlier else ""
    return f"{VERSION}+{CODE}{sized}{zoned}{gated}{stated}{continued}{named}"


def pseudonym_key_in(decoded_by: str) -> str:
    """The id of the pseudonym key in a result of `decoder_version`; empty where names are those on the wire.

    >>> pseudonym_key_in("0.1.0+1f2e+key-00112233aabbccdd"), pseudonym_key_in("0.1.0+1f2e+records/1")
    ('key-00112233aabbccdd', '')
    """
    last = decoded_by.rpartition("+")[2]
    return last if last.startswith(f"{KEY}-") else ""


def replayer_version(decoded_by: str) -> str:
    """The version, a digest of all code that decides which gold rows the silver rows give, and what decoded these."""
    return f"{VERSION}+{code_digest(files('udfs'), files('schemas'), files('jobs'))}, of {decoded_by}"
