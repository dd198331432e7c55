"""A Kafka broker of a test run's own (tools/kafka), and what tests do to its topics."""

import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

TOOL = pathlib.Path(__file__).resolve().parents[1] / "tools/kafka"
SECONDS = 120  # a hang, not a measure


# Besides its own listener one that is reached through a proxy of the tests, and one for user weir, who may do nothing
# but what a test allows; whoever comes without a name may do all.
CONFIG = """\
listeners=PLAINTEXT://127.0.0.1:{0},CONTROLLER://127.0.0.1:{1},PROXIED://127.0.0.1:{2},NAMED://127.0.0.1:{4}
advertised.listeners=PLAINTEXT://127.0.0.1:{0},PROXIED://127.0.0.1:{3},NAMED://127.0.0.1:{4}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,NAMED:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.named.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_weir="secret";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
NAMED = "security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: weir, sasl.password: secret"


def free_ports(n):
    """The first of n that follow each other; below those that the system gives to clients, one of which could have
    them while a broker or proxy is away."""
    while True:
        port = random.randrange(10_000, 32_000)
        with contextlib.ExitStack() as held:
            try:
                for i in range(n):
                    held.enter_context(socket.create_server(("127.0.0.1", port + i)))
            except OSError:
                continue
            return port


class Broker:
    def __init__(self, folder):
        self.folder, self.port, self.config = folder, free_ports(5), ""
        self.brokers, self.proxied, self.named = (f"127.0.0.1:{self.port + i}" for i in (0, 3, 4))
        self.topics = 0
        self.call("start")
        self.admin = AdminClient({"bootstrap.servers": self.brokers, "logger": None, "log_level": 0})

    def call(self, verb):
        environment = {**os.environ, "TMPDIR": str(self.folder), "WEIR_KAFKA_HEAP": "256m"}
        environment["WEIR_KAFKA_CONFIG"] = CONFIG.format(*range(self.port, self.port + 5)) + self.config
        # Not piped: the broker would hold the pipe open.
        with open(self.folder / "tool.log", "a") as log:
            done = subprocess.run([TOOL, verb, str(self.port)], env=environment, stdout=log, stderr=log)
        assert done.returncode == 0, (self.folder / "tool.log").read_text()

    def kill(self):
        self.call("kill")

    def start(self, config=""):
        """With further lines of configuration, until it is started again."""
        self.config = config
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

    def configure(self, topic, **config):
        entries = [ConfigEntry(name, str(value), incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
        self.wait(self.admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)]))

    def allow(self, kind, name, right):
        """User weir."""
        what = (kind, name, ResourcePatternType.LITERAL, "User:weir", "*", AclOperation[right], AclPermissionType.ALLOW)
        self.wait(self.admin.create_acls([AclBinding(*what)]))

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

    def committed(self, topic, partitions=1):
        return Committed(self, topic, partitions)


class Committed:
    """What a reader of committed messages finds in a topic; `seen` has all so far."""

    def __init__(self, broker, topic, partitions):
        self.places = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
        self.seen, self.at = [], [0] * partitions
        self.consumer = Consumer(
            {"bootstrap.servers": broker.brokers, "group.id": "test", "isolation.level": "read_committed"}
            | {"enable.partition.eof": True, "auto.offset.reset": "earliest", "log_level": 0}
        )
        self.consumer.assign(self.places)

    def read(self):
        """All that is there by now, as messages."""
        ends = [self.consumer.get_watermark_offsets(place, SECONDS)[1] for place in self.places]
        while any(at < end for at, end in zip(self.at, ends)):
            message = self.consumer.poll(SECONDS)
            assert message, "no answer"
            end = message.error()  # of the partition, beyond marks of transactions and what they aborted
            assert not end or end.code() == KafkaError._PARTITION_EOF, end
            self.at[message.partition()] = message.offset() + (not end)
            if not end:
                self.seen.append(message)
        return self.seen

    def rows(self):
        """The values, of JSON."""
        return [json.loads(message.value()) for message in self.read()]

    def close(self):
        self.consumer.close()
