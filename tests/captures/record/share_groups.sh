#!/usr/bin/env bash
# share_groups.sh LAB JARS OUT   record OUT/few_sessions.pcap on a fresh cluster (as root, 2 minutes): three groups whose
# members are more than the three share sessions of each broker; one member is killed, one broker restarted. LAB has the
# lab's cluster.sh, JARS Kafka's jars. The records are made up, of zeros.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=$1 jars=$2 out=$3
state=$(mktemp -d)
javac -d "$state" -cp "$jars/*" "$here/ShareMembers.java"
members() { java -Xmx128m -cp "$state:$jars/*" ShareMembers "$@"; }

"$lab/cluster.sh" up "$jars" "$state/cluster" group.share.max.share.sessions=3 group.share.max.size=3 \
  share.coordinator.state.topic.replication.factor=2 share.coordinator.state.topic.min.isr=1 \
  share.coordinator.state.topic.num.partitions=4
members prepare share-a,share-b 3 g1,g2,g3
tcpdump -i lo -U -B 65536 -s 0 -w "$out/few_sessions.pcap" 'tcp portrange 29092-29094' & dump=$!
sleep 1
members produce share-a,share-b 60 45 & waited=($!)
members members g1 3 40 max.poll.records=50 _release=7 & waited+=($!)
sleep 4
members members g2 3 25 max.poll.records=20 fetch.max.bytes=4000 _pause=50 & waited+=($!)
sleep 3
java -Xmx128m -cp "$state:$jars/*" ShareMembers members g3 2 60 _topics=share-a & killed=$!
sleep 5
kill -9 "$killed"
sleep 4
members members g3 2 22 & waited+=($!)
sleep 6
broker=$(sed -n 2p "$state/cluster/pids")
kill "$broker"
while kill -0 "$broker" 2>/dev/null; do sleep 0.25; done
setsid java -Xmx768m -cp "$jars/*" -Dlog4j2.configurationFile="$lab/log4j2.yaml" -Dlab.requestlog="$state/cluster/requests-2b.log" \
  kafka.Kafka "$state/cluster/broker-2/server.properties" >"$state/cluster/broker-2/again.log" 2>&1 </dev/null &
sed -i "2s/.*/$!/" "$state/cluster/pids"
wait "${waited[@]}"
kill -INT "$dump"
wait "$dump" || true
"$lab/cluster.sh" down "$state/cluster"
