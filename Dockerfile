# refetch with everything that it needs: Python's packages in the versions of the lock file, Java, Delta's jars, and kernels
# that are compiled already, so that it needs no network.
#
#   docker build -t refetch .
#   docker run --rm --user root -v "$PWD:/work" refetch pipeline --captures=kafka.pcap --lake=lake
#
# (--user root, so that it can write into the folder whoever owns it.) The same image serves Spark's driver and executors
# on Kubernetes: examples/kubernetes.yaml.

FROM apache/spark:4.2.0 AS spark

FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 185 --create-home refetch

WORKDIR /opt/refetch
COPY requirements.txt requirements-build.txt ./
# A newer pip first, which compares the hashes of what pyspark is built with, too.
RUN pip install --no-cache-dir --require-hashes -r requirements-build.txt \
 && pip install --no-cache-dir --require-hashes --build-constraint requirements-build.txt -r requirements.txt \
 && pip uninstall --yes uv

COPY jobs jobs
COPY udfs udfs
COPY schemas schemas
COPY conf conf
COPY tests/captures/*.zst tests/captures/
COPY examples/docker/entrypoint.sh spark-submit.sh ./
# What Kubernetes starts a driver or an executor by is in Spark's own image, and not in the package pyspark.
COPY --from=spark /opt/entrypoint.sh /opt/entrypoint.sh

ENV REFETCH_PYTHON=/usr/local/bin/python3 \
    PYTHONPATH=/opt/refetch \
    SPARK_HOME=/usr/local/lib/python3.11/site-packages/pyspark \
    XDG_CACHE_HOME=/opt/cache

# One run on the sample captures fetches Delta's jars, compiles the kernels and shows that the image works. The kernels
# stay in /opt/cache, for every user; the jars get the names that REFETCH_JARS expects.
RUN mkdir -p /opt/cache /opt/jars /work \
 && ./spark-submit.sh pipeline --scenario=conf/quickstart.yaml --lake=/tmp/lake \
      --conf=spark.driver.extraJavaOptions=-Xshare:auto \
 && for jar in "$HOME"/.ivy2*/jars/io.delta_*.jar; do mv "$jar" "/opt/jars/${jar##*/io.delta_}"; done \
 && rm -rf /tmp/lake "$HOME"/.ivy2* \
 && chmod -R a+rwX /opt/cache \
 && chown refetch /work
ENV REFETCH_JARS=/opt/jars

USER refetch
WORKDIR /work
ENTRYPOINT ["/usr/bin/tini", "--", "/opt/refetch/entrypoint.sh"]
# Without arguments: the quickstart's captures, into a lake in the working directory.
CMD ["pipeline", "--scenario=/opt/refetch/conf/quickstart.yaml", "--lake=lake"]
