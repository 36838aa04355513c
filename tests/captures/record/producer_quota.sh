#!/usr/bin/env bash
# producer_quota.sh LAB JARS OUT   record OUT/producers.pcap on a fresh cluster (as root, 1 minute): two Java producers,
# whose client.ids may each send 50 kB/s to a broker. One has its records over 6 s, the other all at once. LAB has the
# lab's cluster.sh, JARS Kafka's jars. The records are made up.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=$1 jars=$2 out=$3
state=$(mktemp -d)
brokers=127.0.0.1:29092
kafka() { java -Xmx128m -cp "$jars/*" -Dlog4j2.configurationFile="$lab/log4j2.yaml" -Dlab.requestlog=/dev/null "$@"; }
produce() { kafka "$here/../../backtest/PacedProducer.java" $brokers orders 5 "$2" "$3" 1000 3 1 "client.id=$1" linger.ms=20; }

"$lab/cluster.sh" up "$jars" "$state/cluster" auto.create.topics.enable=false
kafka org.apache.kafka.tools.TopicCommand --bootstrap-server $brokers --create --topic orders --partitions 3 --replication-factor 1
kafka kafka.admin.ConfigCommand --bootstrap-server $brokers --alter --add-config producer_byte_rate=50000 \
  --entity-type clients --entity-default
produce before 600 2500  # the first responses of brokers that have just started are sent late
tcpdump -i lo -U -B 65536 -s 0 -w "$out/producers.pcap" 'tcp portrange 29092-29094' & dump=$!
sleep 1
produce steady 2400 2500 & waited=$!
produce burst 2400 0
wait "$waited"
sleep 1
kill -INT "$dump"
wait "$dump" || true
"$lab/cluster.sh" down "$state/cluster"
