"""ApiVersions (key 18): ApiVersionsRequest.json and ApiVersionsResponse.json."""

from __future__ import annotations

from schemas.wire.message import Field, Message

# One line for each field, nested as in Kafka's JSON.
# fmt: off

API_VERSIONS_REQUEST = Message("ApiVersionsRequest", api_key=18, versions="0-5", flexible="3+", fields=(
    Field("client_software_name", "string", "3+"),
    Field("client_software_version", "string", "3+"),
    Field("cluster_id", "string", "5+", nullable="5+", default="null"),
    Field("node_id", "int32", "5+", default="-1"),
))

API_VERSIONS_RESPONSE = Message("ApiVersionsResponse", api_key=18, versions="0-5", flexible="3+", fields=(
    Field("error_code", "int16", "0+"),
    Field("api_keys", "[]ApiVersion", "0+", fields=(
        Field("api_key", "int16", "0+"),
        Field("min_version", "int16", "0+"),
        Field("max_version", "int16", "0+"),
    )),
    Field("throttle_time_ms", "int32", "1+"),
    Field("supported_features", "[]SupportedFeatureKey", "3+", tagged="3+", tag=0, fields=(
        Field("name", "string", "3+"),
        Field("min_version", "int16", "3+"),
        Field("max_version", "int16", "3+"),
    )),
    Field("finalized_features_epoch", "int64", "3+", tagged="3+", tag=1, default="-1"),
    Field("finalized_features", "[]FinalizedFeatureKey", "3+", tagged="3+", tag=2, fields=(
        Field("name", "string", "3+"),
        Field("max_version_level", "int16", "3+"),
        Field("min_version_level", "int16", "3+"),
    )),
    Field("zk_migration_ready", "bool", "3+", tagged="3+", tag=3),
))
