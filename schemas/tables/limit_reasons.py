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
            "The topic existed already, and nothing earlier in the capture shows how many partitions and replicas it "
            "had.",
            "Let the capture have a Metadata response with all topics before the changes: run `kafka-topics.sh "
            "--describe` when the capture begins.",
            "unknown",
        ),
        "authorization": FidelityReason(
            "The client was not authorized. Authorization is not replayed.", "Nothing.", "unknown"
        ),
        "request_invalid": FidelityReason(
            "Kafka rejected the request as invalid, for example because of a topic's name or an assignment of "
            "replicas.",
            "Nothing.",
            "unknown",
        ),
        "configuration": FidelityReason("Kafka rejected one of the topic's configurations.", "Nothing.", "unknown"),
        "controller_unavailable": FidelityReason(
            "The controller moved, or did not answer in time.", "Nothing.", "unknown"
        ),
        "create_topic_policy": FidelityReason(
            "The cluster's own `create.topic.policy` refused the change: the request is too small to exceed Kafka's "
            "limits.",
            "Nothing.",
            "unknown",
        ),
        "quota_not_known": FidelityReason(
            "A controller mutation quota refused the change, and nobody stated the quota.",
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
        "other_error": FidelityReason(
            "The replay refuses the change for another reason.", STATE_MUTATIONS, "different"
        ),
        "not_in_metadata": FidelityReason(
            "No Metadata response shows all new partitions before they are moved. So it is not known on which brokers "
            "Kafka put them, and the replay draws brokers at random.",
            "Let the capture run until clients have asked for Metadata, or run `kafka-topics.sh --describe` while it "
            "runs.",
            "unknown",
        ),
        "racks_or_fenced_brokers": FidelityReason(
            "There are too many possible placements to check: brokers are fenced, or may have been fenced at the time, "
            "as Kafka can have drawn the placement only from the brokers that it uses; or a rack takes several "
            "replicas of a partition, or a partition leaves out so many racks that twice their number plus one is at "
            "least the number of brokers. An example of the last is 3 racks of one broker each, with replication "
            "factor 2.",
            "Nothing.",
            "unknown",
        ),
        "placed_by_admin_utils": FidelityReason(
            "The controller is not KRaft's (Kafka before 3.3, or `controller=zookeeper`), so AdminUtils placed these "
            "replicas. It is not checked which placements it can have drawn.",
            "If the controller was KRaft's, state it with `--captured=controller=kraft`.",
            "unknown",
        ),
        "impossible_draw": FidelityReason(
            "Kafka's rules for placing replicas cannot have given these brokers.",
            "Check whether something else places replicas, or whether brokers came and went in the meantime.",
            "different",
        ),
    },
)
