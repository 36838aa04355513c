#!/usr/bin/env bash
# record.sh LAB JARS OLDER OUT [NAME...]   record OUT/split.pcap and OUT/crowded.pcap, or those named, on a fresh cluster (as root, 5 minutes)
# LAB has the lab's cluster.sh and capture.sh, JARS Kafka's jars and OLDER those of an older client.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
backtest=$here/../../backtest
lab=$1 jars=$2 older=$3 out=$4
shift 4
state=$(mktemp -d)
boot=127.0.0.1:29092,127.0.0.1:29093

client() { # client JARS CLASS ARGUMENTS...
  local of=$1 class=$2
  shift 2
  java -Xmx256m -cp "$of/*:$state" -Dlog4j2.configurationFile="$lab/log4j2.yaml" -Dlab.requestlog=/dev/null "$class" "$@"
}

topic() { # topic NAME PARTITIONS REPLICAS [CONFIG]
  client "$jars" org.apache.kafka.tools.TopicCommand --bootstrap-server "$boot" --create --topic "$1" --partitions "$2" \
    --replication-factor "$3" ${4:+--config "$4"}
}

split() {
  for codec in lz4 zstd; do
    topic "tight-$codec" 2 1 max.message.bytes=18000
    client "$jars" SplitProducer "$boot" "tight-$codec" "$codec" 3200 1 1000 10 \
      client.id="split-$codec" batch.size=16384
  done
}

# Two limits: a producer to each, and one to both.
limits() {
  topic invoices 1 1 max.message.bytes=2100
  topic scans 1 1 max.message.bytes=2500
  client "$jars" SplitProducer "$boot" invoices gzip 1500 1 120 4 client.id=invoice-writer batch.size=2048
  client "$jars" SplitProducer "$boot" scans lz4 3000 2 120 4 client.id=scan-writer batch.size=2048
  client "$jars" SplitProducer "$boot" invoices,scans lz4 6000 3 120 8 client.id=relay batch.size=2048
}

# Small sessions take the slots; after the two minutes in which they may not be evicted, larger ones push them out. Meanwhile
# two teams create, grow and delete topics.
crowded() {
  topic prices 6 1
  topic ledger 24 1
  printf '%s\n' '5000 create search-0=6 search-1=6' '20000 create search-2=12' '40000 grow search-0=12' \
    '60000 create search-3=12' '80000 delete search-1=0' '120000 create search-4=6' '170000 create search-5=12' >"$state/team-search"
  printf '%s\n' '10000 create invoices=3' '30000 create invoices-late=3 refunds=3' '70000 grow invoices=6' \
    '95000 create invoices-2027=6' '150000 delete refunds=0' >"$state/team-billing"
  client "$older" Readers "$boot" dashboard prices 5 205 100 &
  client "$jars" Readers "$boot" dashboard prices 5 205 100 &
  client "$jars" SeededAdmin "$boot" true "$state/team-search" "$state/team-billing" &
  (for at in $(seq 18); do sleep 10; echo "$at" | kcat -P -b "$boot" -X client.id=ticker -t prices -p $((at % 6)); done) &
  (sleep 155; client "$jars" Readers "$boot" ledger-audit ledger 4 40 40) &
  wait
}

javac -cp "$jars/*" -d "$state" "$here"/*.java "$backtest/SeededAdmin.java"
export lab jars older boot state
export -f client topic split limits crowded
"$lab/cluster.sh" up "$jars" "$state" max.incremental.fetch.session.cache.slots=8
trap '"$lab/cluster.sh" down "$state"; rm -rf "$state"' EXIT
topic orders 12 1
topic clicks 24 1
topic audit 3 1
topic backlog 8 1
for name in ${@:-split crowded}; do
  "$lab/capture.sh" "$out/$name.pcap" bash -c "$name"
done
