"""Which messages are declared, compared with the table of APIs."""

from __future__ import annotations

import pytest

from schemas.wire.apis import APIS
from schemas.wire.declared import DECLARED, Declared
from udfs.wire.layout import is_version_in, newest_version

API_OF = {api.key: api for api in APIS}


def by_name(declared: Declared) -> str:
    return API_OF[declared.request.api_key].name


def test_nothing_that_bears_credentials_is_declared() -> None:
    assert [by_name(declared) for declared in DECLARED if API_OF[declared.request.api_key].bears_credentials] == []


def test_an_api_is_declared_once() -> None:
    keys = [declared.request.api_key for declared in DECLARED]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("declared", DECLARED, ids=by_name)
def test_both_messages_have_every_version_of_their_api(declared: Declared) -> None:
    api = API_OF[declared.request.api_key]
    name = api.name.title().replace("_", "")
    assert [message.name for message in declared] == [f"{name}Request", f"{name}Response"]
    for message in declared:
        assert (message.api_key, newest_version(message.versions)) == (api.key, api.last_version)
        assert is_version_in(api.first_version, message.versions)
        flexible = [v for v in range(api.first_version, api.last_version + 1) if is_version_in(v, message.flexible)]
        assert min(flexible) == api.flexible_from
