"""Reads the file of --brokers, which says which node a server is if the capture does not show it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from jobs.scenarios.located_yaml import Fault, LocatedYaml, Plain, read_located_yaml
from udfs.errors import ScenarioError
from udfs.facts.pseudonyms import Pseudonyms

KIND = "a file that names brokers, with lines such as `10.0.0.1:9999: 1`"
MOST_NODE, MOST_PORT = 2**31 - 1, 65_535


def read_stated_brokers(path: str | None, pseudonyms: Pseudonyms | None) -> dict[str, str]:
    """Node id by server, both as in tables: servers are pseudonyms if there are any. Empty if no file is named.

    Raises ScenarioError, which has every fault of the file with its line.
    """
    if path is None:
        return {}
    located = read_located_yaml(path, KIND)
    if not isinstance(located.data, dict) or not located.data:
        kind = "nothing" if not located.data else "a list" if isinstance(located.data, list) else f"`{located.data}`"
        raise ScenarioError(path, (f"{located.at(())}: expected lines such as `10.0.0.1:9999: 1`, found {kind}",))
    faults, stated = [*located.faults, *_value_faults(located, located.data)], dict[str, str]()
    for written, node in located.data.items():
        server = server_of(written)
        if server is None or server in stated:
            faults.append(Fault(located.at((written,)), _not_a_server_text(written, server)))
        else:
            stated[server] = str(node)
    if faults:
        raise ScenarioError(path, tuple(map(str, sorted(faults, key=lambda fault: fault.place.line))))
    nodes = {server: str(int(node)) for server, node in stated.items()}
    return nodes if pseudonyms is None else {pseudonyms.of("endpoint", s): node for s, node in nodes.items()}


def server_of(text: str) -> str | None:
    """A text of the form address:port as in tables, with brackets around IPv6; None for any other text.

    >>> server_of("[2001:DB8:0::1]:9092"), server_of("10.0.0.1"), server_of("kafka-1:9092")
    ('[2001:db8::1]:9092', None, None)
    """
    host, _, port = text.rpartition(":")
    is_six = host.startswith("[") and host.endswith("]")
    try:
        address = ip_address(host[1:-1] if is_six else host)
    except ValueError:
        return None
    if (address.version == 6) != is_six or not _is_number(port, MOST_PORT) or not int(port):
        return None
    return f"[{address}]:{int(port)}" if is_six else f"{address}:{int(port)}"


def brokers_digest(stated: Mapping[str, str]) -> str:
    """A hash of what a file of --brokers states. Files that state different things have different hashes."""
    return hashlib.sha256("\n".join(map("=".join, sorted(stated.items()))).encode()).hexdigest()[:12]


def _value_faults(located: LocatedYaml, data: Mapping[str, Plain]) -> Iterator[Fault]:
    for server, node in data.items():
        if not isinstance(node, str) or not _is_number(node, MOST_NODE):
            value_text = f"`{node}`" if isinstance(node, str) else "no value" if node is None else "several values"
            message = (
                f"`{server}`: expected a node id, 0 or more, as `node.id` of the broker has it, found {value_text}"
            )
            yield Fault(located.at((server,)), message)


def _not_a_server_text(written: str, server: str | None) -> str:
    if server is not None:
        return f"`{written}` is {server}, which is given twice; leave one of the two lines out"
    return (
        f'`{written}`: expected an IP address and port, such as 10.0.0.1:9999 or "[2001:db8::1]:9999"; '
        "capture_quality and connections.server have them as they are to be written"
    )


def _is_number(text: str, most: int) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= most
