"""A librdkafka consumer that reads until it has RECORDS records: read_all.py CONF TOPIC RECORDS SECONDS.

CONF is JSON. It gives up after SECONDS seconds. It runs under the Python that has the lab's clients, like call.py.
"""

from __future__ import annotations

import json
import sys
import time

if __name__ == "__main__":
    conf, topic, records, seconds = sys.argv[1:]
    from confluent_kafka import Consumer

    consumer = Consumer(json.loads(conf))
    consumer.subscribe([topic])
    left, end = int(records), time.monotonic() + float(seconds)
    while left > 0 and time.monotonic() < end:
        left -= sum(message.error() is None for message in consumer.consume(500, 0.5))
    consumer.close()
    if left > 0:
        sys.exit(f"{topic}: {left} of {records} records had not come after {seconds} s")
