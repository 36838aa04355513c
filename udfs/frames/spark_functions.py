"""The functions of `udfs.frames` for Spark: Arrow UDFs, named after Kafka's messages.

    from udfs.frames.spark_functions import fetch_request, request_header
    frames.select(request_header("frame").client_id, fetch_request("version", "frame").max_bytes)

`request_header(frame)` and `response_correlation_id(frame)` take frames of any API. Each declared message has its own
function, such as `fetch_request(version, frame)` or `metadata_response(version, frame)`. Versions may differ from row
to row. The version of a request may be null, because its header has it. The version of a response is that of its
request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # its stubs leave it out
from pyspark.sql.pandas.types import from_arrow_type

from schemas.wire.apis import APIS
from schemas.wire.declared import DECLARED
from schemas.wire.message import Message
from udfs.errors import FrameError
from udfs.frames.decode_column import request_column, response_column
from udfs.frames.header_column import REQUEST_HEADER, request_header_column, response_correlation_id_column
from udfs.frames.message_types import message_type

if TYPE_CHECKING:
    from pyspark.sql._typing import UserDefinedFunctionLike

    ArrowColumn = pa.Array[Any]
else:
    ArrowColumn = pa.Array  # Spark reads the hints at run time, when Arrow's types take no parameters


def spelt_in_snake_case(name: str) -> str:
    """A name in snake case: fetch_request for FetchRequest."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


REQUESTS: Mapping[str, Message] = {spelt_in_snake_case(both.request.name): both.request for both in DECLARED}
RESPONSES: Mapping[str, Message] = {spelt_in_snake_case(both.response.name): both.response for both in DECLARED}
HEADERS: Mapping[str, tuple[Callable[[pa.Array[Any]], pa.Array[Any]], pa.DataType]] = {
    "request_header": (request_header_column, REQUEST_HEADER),
    "response_correlation_id": (response_correlation_id_column, pa.int32()),
}
NAMES = (*HEADERS, *REQUESTS, *RESPONSES)
"""The names of all functions."""
_WITH_CREDENTIALS = {
    f"{api.name.lower()}_{side}": api.name for api in APIS if api.bears_credentials for side in ("request", "response")
}


@cache
def frame_function(name: str) -> UserDefinedFunctionLike:
    """The function of this name. Raises FrameError for a message that is not declared or contains credentials."""
    if name in _WITH_CREDENTIALS:
        raise FrameError(
            f"{name}: {_WITH_CREDENTIALS[name]} bears credentials and is never decoded beyond its header, which "
            "request_header(frame) reads"
        )
    if name not in NAMES:
        raise FrameError(f"there is no function {name}; there are {', '.join(NAMES)}")

    # The functions contain only the name: a worker that got a copy of the declaration would compile it in every task.
    def of_frame(frame: ArrowColumn) -> ArrowColumn:
        return decoded_column(name, frame)

    def of_versions(version: ArrowColumn, frame: ArrowColumn) -> ArrowColumn:
        return decoded_column(name, version, frame)

    decoded = of_frame if name in HEADERS else of_versions
    decoded.__name__ = name
    return arrow_udf(decoded, from_arrow_type(result_type(name)))


def result_type(name: str) -> pa.DataType:
    """The type into which the function of this name decodes a frame."""
    return HEADERS[name][1] if name in HEADERS else message_type(REQUESTS.get(name) or RESPONSES[name])


def decoded_column(name: str, *columns: pa.Array[Any]) -> pa.Array[Any]:
    """The result of the function of this name for its columns."""
    if name in HEADERS:
        return HEADERS[name][0](*columns)
    if name in REQUESTS:
        return request_column(REQUESTS[name], *columns)
    return response_column(RESPONSES[name], *columns)


def __getattr__(name: str) -> UserDefinedFunctionLike:
    """Each function is an attribute of the module, so that it can be imported."""
    if name in NAMES or name in _WITH_CREDENTIALS:
        return frame_function(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
