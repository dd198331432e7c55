"""A Kafka broker of a test run's own (tools/kafka), and what tests do to its topics."""

import os
import pathlib
import socket
import subprocess

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

TOOL = pathlib.Path(__file__).resolve().parents[1] / "tools/kafka"
SECONDS = 120  # a hang, not a measure


def free_ports():
    """Two that follow each other: the broker's and its controller's."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port = first.getsockname()[1]
            try:
                with socket.create_server(("127.0.0.1", port + 1)):
                    return port
            except OSError:
                continue


class Broker:
    def __init__(self, folder):
        self.folder, self.port = folder, free_ports()
        self.brokers = f"127.0.0.1:{self.port}"
        self.topics = 0
        self.call("start")
        self.admin = AdminClient({"bootstrap.servers": self.brokers, "logger": None, "log_level": 0})

    def call(self, verb):
        environment = {**os.environ, "TMPDIR": str(self.folder), "WEIR_KAFKA_HEAP": "256m"}
        # Not piped: the broker would hold the pipe open.
        with open(self.folder / "tool.log", "a") as log:
            done = subprocess.run([TOOL, verb, str(self.port)], env=environment, stdout=log, stderr=log)
        assert done.returncode == 0, (self.folder / "tool.log").read_text()

    def kill(self):
        self.call("kill")

    def start(self):
        self.call("start")

    def remove(self):
        self.call("wipe")

    def wait(self, futures):
        for future in futures.values():
            future.result(SECONDS)

    def topic(self, partitions=1, name=None, **config):
        """A new one; its name."""
        self.topics += 1
        name = name or f"topic-{self.topics}"
        self.wait(self.admin.create_topics([NewTopic(name, partitions, 1, config=config)]))
        return name

    def add_partitions(self, topic, total):
        self.wait(self.admin.create_partitions([NewPartitions(topic, total)]))

    def delete(self, topic):
        self.wait(self.admin.delete_topics([topic]))

    def delete_before(self, topic, partition, offset):
        self.wait(self.admin.delete_records([TopicPartition(topic, partition, offset)]))

    def producer(self, **config):
        return Producer({"bootstrap.servers": self.brokers, "linger.ms": 0, "log_level": 0, **config})

    def produce(self, topic, values, **options):
        producer = self.producer()
        for value in values:
            producer.produce(topic, value, **options)
            producer.poll(0)
        assert producer.flush(SECONDS) == 0
