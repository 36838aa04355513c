"""Every reason about changes to topics that the table `fidelity` gives."""

from __future__ import annotations

from schemas.tables.reason import WHOLE, FidelityReason, FidelityReasons

STATE_MUTATIONS = (
    "State what was in force: `--captured` with `controller_mutation_rate`, `broker.num.partitions`, "
    "`broker.default.replication.factor`, `kafka`."
)

CHANGES = FidelityReasons(
    "Changes to topics",
    "partition_limits",
    (),
    {
        "no_response": FidelityReason("No response to the change is in the capture.", WHOLE, "unknown"),
        "topic_not_seen": FidelityReason(
            "The topic existed already, and nothing captured earlier shows what it had.",
            "Have a Metadata response with all topics in the capture before the changes: run `kafka-topics.sh "
            "--describe` when it begins.",
            "unknown",
        ),
        "authorization": FidelityReason(
            "The client was not authorized: authorization is not replayed.", "Nothing.", "unknown"
        ),
        "request_invalid": FidelityReason(
            "Kafka rejected a name, an assignment or a mix of both as invalid.", "Nothing.", "unknown"
        ),
        "configuration": FidelityReason("Kafka rejected one of the topic's configurations.", "Nothing.", "unknown"),
        "controller_unavailable": FidelityReason(
            "The controller moved, or did not answer in time.", "Nothing.", "unknown"
        ),
        "create_topic_policy": FidelityReason(
            "The cluster's own `create.topic.policy` refused it: the request is too small for Kafka's limits.",
            "Nothing.",
            "unknown",
        ),
        "quota_not_known": FidelityReason(
            "A controller mutation quota refused it, and nobody stated which.",
            "State it: `--captured=controller_mutation_rate=...`.",
            "unknown",
        ),
        "no_reassignment_in_progress": FidelityReason(
            "The request cancels a move that was not in progress.", "Nothing.", "unknown"
        ),
        "allowed_but_refused": FidelityReason(
            "The replay allows what the cluster refused.", STATE_MUTATIONS, "different"
        ),
        "refused_but_allowed": FidelityReason(
            "The replay refuses what the cluster allowed.", STATE_MUTATIONS, "different"
        ),
        "other_error": FidelityReason("The replay refuses it for another reason.", STATE_MUTATIONS, "different"),
        "not_in_metadata": FidelityReason(
            "No Metadata response shows all the new partitions before they are moved, so where Kafka put them is not "
            "known: the replay draws it.",
            "Let the capture run until clients have asked, or run `kafka-topics.sh --describe` while it does.",
            "unknown",
        ),
        "racks_or_fenced_brokers": FidelityReason(
            "There are too many possible draws to check: brokers are fenced, or a rack takes several replicas of a "
            "partition. Or a partition leaves out so many racks that twice their number plus one is at least the "
            "number of brokers. Such are 3 racks of one broker each, with replication factor 2.",
            "Nothing.",
            "unknown",
        ),
        "placed_by_admin_utils": FidelityReason(
            "The controller is not KRaft's (Kafka before 3.3, or `controller=zookeeper`): AdminUtils placed these "
            "replicas, and which ones it can have drawn is not checked.",
            "If the controller was KRaft's, state it with `--captured=controller=kraft`.",
            "unknown",
        ),
        "impossible_draw": FidelityReason(
            "Kafka's placement cannot have drawn these replicas.",
            "Check whether something else places replicas, or brokers came and went meanwhile.",
            "different",
        ),
    },
)
