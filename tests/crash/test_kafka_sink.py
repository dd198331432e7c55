"""Rows into a Kafka topic while weir is killed and its transactions fail: a reader of committed messages sees each row
once, with its values."""

import json
import subprocess

import pytest
from broker import SECONDS
from confluent_kafka import Consumer, TopicPartition
from harness import wait_until

ROWS = 1500
PACE = "task.read=sleep:2ms"


class Place:
    """A pipeline of a generator into a topic, run again and again until all is there."""

    def __init__(self, folder, weir, broker, more=""):
        self.folder, self.weir, self.broker, self.topic = folder, weir, broker, broker.topic(3)
        (folder / "p.yaml").write_text(
            "pipeline: p\ncheckpoint: {interval: 10ms}\n"
            f"sources: {{numbers: {{type: generator, rows: {ROWS}, rate: 5000, seed: 7, schema: {{id: int64, t: utf8}}}}}}\n"
            f"sinks: {{k: {{type: kafka, brokers: '{broker.brokers}', topic: {self.topic}, key: id, writers: 2{more}}}}}\n"
        )

    def run(self, faults="", *arguments):
        return self.weir("run", "p.yaml", *arguments, faults=f"{faults},{PACE}", cwd=self.folder)

    def messages(self):
        """What a reader of committed messages finds: key, value."""
        consumer = Consumer(
            {"bootstrap.servers": self.broker.brokers, "group.id": "test", "isolation.level": "read_committed"}
            | {"enable.partition.eof": True, "auto.offset.reset": "earliest", "log_level": 0}
        )
        consumer.assign([TopicPartition(self.topic, partition, 0) for partition in range(3)])
        found, ended = [], set()
        while len(ended) < 3:
            message = consumer.poll(SECONDS)
            if message.error():
                ended.add(message.partition())
            else:
                found.append((message.key(), json.loads(message.value())))
        consumer.close()
        return found

    def finish(self):
        done = self.run()
        assert done.returncode == 0, done.stderr[-3000:]
        found = self.messages()
        assert sorted(value["id"] for _, value in found) == list(range(ROWS))
        assert all(key == b"%d" % value["id"] for key, value in found)
        assert self.weir("verify", "p.yaml", cwd=self.folder).returncode == 0


@pytest.fixture
def place(tmp_path, weir_faults, broker):
    return Place(tmp_path, weir_faults, broker)


@pytest.mark.parametrize("point", ["txn.apply", "txn.prepared", "txn.commit", "txn.committed"])
def test_kill_and_failure_at(point, place):
    done = place.run(f"{point}=kill@1")
    assert done.returncode == -9, done.stderr[-3000:]
    done = place.run(f"{point}=fail@1,{point}=fail@2")
    assert done.returncode == 0, done.stderr[-3000:]
    place.finish()


def test_broker_killed_while_it_is_written(place, weir_bin):
    """Whatever became of the transaction that was open: the run goes on when the broker is back."""
    with open(place.folder / "log", "w") as log:
        process = subprocess.Popen([weir_bin, "run", "p.yaml", "--set", "sources.numbers.rate=150"], stderr=log, cwd=place.folder)
    wait_until(lambda: place.messages() or process.poll() is not None, "its first rows")
    place.broker.kill()
    place.broker.start()
    assert process.wait(SECONDS) == 0, (place.folder / "log").read_text()
    place.finish()


def test_another_deployment_is_refused(place):
    assert place.run("txn.commit=kill@1").returncode == -9
    done = place.run("", "--set", "state=./other")
    assert done.returncode in (3, 4), done.stderr[-3000:]
    assert "deployment" in done.stderr
    place.finish()


def test_its_cursor_is_not_read_uncommitted(tmp_path, weir_faults, broker):
    done = Place(tmp_path, weir_faults, broker, ", config: {isolation.level: read_uncommitted}").run()
    assert done.returncode == 2, done.stderr[-3000:]
    assert "isolation.level is not for the user to set" in done.stderr
