"""What offered versions show about a broker is what follows from the declarations, response by response."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.apis import API_KEYS
from schemas.wire.releases import BROKERS_ONLY, MARKS, ZOOKEEPER_ONLY
from schemas.wire.vendors import ALWAYS_OFFERED, NEWEST_VERSIONS, OTHER, OWN_KEYS, REDPANDA, REDPANDA_OLDEST
from udfs.facts.releases import CONTROLLERS, controllers_of, newest_marks
from udfs.facts.vendors import APACHE, VENDORS, vendors_of
from udfs.wire.decoded_level import Level
from udfs.wire.messages import DecodedFrames

Offer = dict[int, tuple[int, int]]
"""The oldest and the newest version of each offered API, by its key."""
RELEASES = list(NEWEST_VERSIONS)
RELEASES_WITH_BOTH = ("3.3", "3.5", "3.7", "3.8", "3.9")


def decoded(offers: list[Offer]) -> DecodedFrames:
    rows = [(response, key, *versions) for response, offer in enumerate(offers) for key, versions in offer.items()]
    names = ("parent", "api_key", "min_version", "max_version")
    columns = {name: np.array([row[place] for row in rows], np.int64) for place, name in enumerate(names)}
    count = len(offers)
    levels = {"": Level("", count, {}), "api_keys": Level("api_keys", len(rows), columns)}
    return DecodedFrames(np.zeros(count, np.int8), np.full(count, -1), levels)


def plain_mark(offer: Offer) -> int:
    """The place of the newest mark, -1 if there is none."""
    if offer.get(BROKERS_ONLY, (0, -1))[1] < 0:
        return -1
    shown = [place for place, mark in enumerate(MARKS) if offer.get(mark.api_key, (0, -1))[1] >= mark.version]
    return max(shown, default=-1)


def plain_controller(offer: Offer) -> str | None:
    mark = plain_mark(offer)
    if mark < 0 or MARKS[mark].release not in RELEASES_WITH_BOTH:
        return None
    return "zookeeper" if offer.get(ZOOKEEPER_ONLY, (0, -1))[1] >= 0 else "kraft"


def plain_vendor(offer: Offer) -> str | None:
    own = [of.vendor for of in OWN_KEYS if any(of.first <= key <= of.last for key in offer)]
    if own:
        return own[-1]
    newest = [offer[API_KEYS[api]][1] if API_KEYS[api] in offer else None for api in ALWAYS_OFFERED]
    ladder = [*NEWEST_VERSIONS.values(), (1 << 15,) * len(ALWAYS_OFFERED)]
    for low, high in pairwise(ladder):
        if all(n is None or n == -1 or least <= n <= most for n, least, most in zip(newest, low, high, strict=True)):
            return None
    is_redpanda = all(offer.get(key, (-1, 0))[0] == oldest for key, oldest in REDPANDA_OLDEST.items())
    return REDPANDA if is_redpanda else OTHER


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    """What some release offers, with a few changes."""
    newest = NEWEST_VERSIONS[draw(st.sampled_from(RELEASES))]
    offer = {API_KEYS[api]: (0, version) for api, version in zip(ALWAYS_OFFERED, newest, strict=True)}
    if draw(st.booleans()):
        offer |= {key: (oldest, offer[key][1]) for key, oldest in REDPANDA_OLDEST.items()}
    for key in draw(
        st.lists(st.sampled_from([*offer, 4, 11, 35, 42, 501, 600, 602, 603, 10_000, 14_999, 15_000, 200]), max_size=2)
    ):
        oldest, last = offer.get(key, (0, 0))
        offer[key] = (oldest + draw(st.integers(-1, 1)), last + draw(st.sampled_from([-20, -1, 0, 1, 2, 40])))
    for key in draw(st.lists(st.sampled_from(list(offer)), max_size=1)):
        del offer[key]
    return offer


@given(st.lists(offers(), max_size=3))
def test_release_controller_and_vendor_follow_from_the_offered_versions(offered: list[Offer]) -> None:
    of = decoded(offered)
    newest = newest_marks(of, len(offered))
    assert newest.tolist() == [plain_mark(offer) for offer in offered]
    assert [CONTROLLERS[code] for code in controllers_of(of, newest).tolist()] == [*map(plain_controller, offered)]
    vendors = [None if place == APACHE else VENDORS[place] for place in vendors_of(of, len(offered)).tolist()]
    assert vendors == [plain_vendor(offer) for offer in offered]


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_offers_versions_of_apache_kafka(release: str) -> None:
    offer = {API_KEYS[api]: (0, version) for api, version in zip(ALWAYS_OFFERED, NEWEST_VERSIONS[release], strict=True)}
    assert vendors_of(decoded([offer]), 1).tolist() == [APACHE]
