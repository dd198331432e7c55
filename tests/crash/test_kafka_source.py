"""Kafka topics into Parquet while weir, the broker and the topics come and go: each committed message is there once."""

import contextlib
import json
import random
import sqlite3
import threading
import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from harness import COLUMNS, FORMAT, SECONDS, Case, ndjson, wait_until

ABORTED = 10**9  # ids from here on must not be delivered


class KafkaCase(Case):
    """One topic into one folder."""

    def __init__(self, folder, binary, broker, topic, **options):
        self.folder, self.binary, self.broker, self.topic = folder, binary, broker, topic
        self.target, self.state, self.pipeline = folder / "out/lake", folder / "state", folder / "p.yaml"
        self.rows, self.partitioned = 0, False
        self.configure(**options)

    def configure(self, interval="5ms", source=""):
        options = f"brokers: '{self.broker.brokers}', topics: {self.topic}, schema: {COLUMNS}, refresh: 100ms"
        self.pipeline.write_text(
            f"pipeline: crash\nstate: ./state\ncheckpoint: {{interval: {interval}, timeout: 60s}}\n"
            f"sources:\n  orders: {{type: kafka, {options}{', ' if source else ''}{source}}}\n"
            f"sinks:\n  lake: {{type: file, path: ./out/lake, format: {FORMAT}, writers: 2}}\n"
        )

    def produce(self, n, **options):
        self.broker.produce(self.topic, ndjson(self.rows, n).splitlines(), **options)
        self.rows += n

    def run_to_end(self):
        done = self.run(arguments=["--set", "sources.orders.stop_at_end=true"])
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-4000:]}"
        return done

    def kept(self, name):
        """Whether the checkpoint store has that binding."""
        if not (store := list(self.state.rglob("store.db"))):
            return False
        with contextlib.closing(sqlite3.connect(f"file:{store[0]}?mode=ro", uri=True)) as db:
            if not db.execute("select count(*) from sqlite_master where name = 'binding'").fetchone()[0]:
                return False
            return db.execute("select count(*) from binding where sink = ?", [name]).fetchone()[0] == 1

    def refused(self, status):
        done = self.run(arguments=["--set", "sources.orders.stop_at_end=true"])
        assert done.returncode == status, done.stderr[-4000:]
        return done.stderr


@pytest.fixture
def case(tmp_path, weir_bin, broker):
    return KafkaCase(tmp_path, weir_bin, broker, broker.topic(3))


class Transactions(threading.Thread):
    """Rows 0, 1, ... in transactions, of which some are aborted; partitions are added on the way."""

    def __init__(self, case, seed, rows):
        super().__init__()
        self.case, self.rng, self.rows, self.error = case, random.Random(seed), rows, None

    def run(self):
        try:
            self.work()
        except Exception as error:  # noqa: BLE001: handed to the test's own thread
            self.error = error

    def work(self):
        producer = self.producer(3)
        lines, partitions, at, aborted = ndjson(0, self.rows).splitlines(), 3, 0, 0
        while at < self.rows:
            n = min(self.rng.randrange(1, 60), self.rows - at)
            abort = self.rng.random() < 0.3
            producer.begin_transaction()
            for i in range(at, at + n):
                aborted += abort
                line = json.dumps({"id": ABORTED + aborted}) if abort else lines[i]
                producer.produce(self.case.topic, line, partition=self.rng.randrange(partitions))
            if abort:
                producer.flush(SECONDS)  # what was never sent would be no test
                producer.abort_transaction(SECONDS)
                continue
            producer.commit_transaction(SECONDS)
            at += n
            if at > self.rows * partitions // 8 and partitions < 6:
                partitions += 1
                self.case.broker.add_partitions(self.case.topic, partitions)
                producer = self.producer(partitions)

    def producer(self, partitions):
        """One that knows of so many."""
        producer = self.case.broker.producer(**{"transactional.id": self.case.topic})
        topic = self.case.topic
        wait_until(lambda: len(producer.list_topics(topic).topics[topic].partitions) == partitions, "know the topic")
        producer.init_transactions(SECONDS)
        return producer


@pytest.mark.parametrize("seed", range(2))
def test_killed_while_messages_come(seed, case):
    rng = random.Random(seed)
    transactions = Transactions(case, seed, rows=3000)
    transactions.start()
    kills = 0
    while transactions.is_alive() or kills < 4:
        process = case.start()
        time.sleep(rng.uniform(0.1, 0.8))  # the moment of the kill
        assert process.poll() is None, case.end(process).stderr[-4000:]
        process.kill()
        case.end(process)
        kills += 1
    transactions.join()
    if transactions.error:
        raise transactions.error
    case.rows = transactions.rows
    case.run_to_end()
    case.check()


def test_broker_killed_while_it_is_read(case):
    case.produce(600)
    process = case.start()
    wait_until(lambda: case.published() or process.poll() is not None, "its first rows")
    case.broker.kill()
    case.broker.start()
    case.produce(600)
    assert process.poll() is None, case.end(process).stderr[-4000:]
    process.terminate()
    assert case.end(process).returncode == 0
    case.run_to_end()
    case.check()


def test_topic_made_again_is_refused(case):
    case.produce(300)
    case.run_to_end()
    case.broker.delete(case.topic)
    assert f"there is no topic '{case.topic}'" in case.refused(1)
    case.broker.topic(3, name=case.topic)
    assert "It was deleted and made again" in case.refused(4)
    case.broker.produce(case.topic, ndjson(1000, 900).splitlines())
    assert "is not the one that was read there" in case.refused(4)
    case.check()


def test_removed_before_it_was_read(case):
    case.produce(10, partition=1)
    case.run_to_end()
    case.produce(20, partition=1)
    case.broker.delete_before(case.topic, 1, 10)
    case.run_to_end()  # up to where it was read nothing is lost
    case.check()
    case.broker.produce(case.topic, [b"{}"] * 5, partition=1)
    case.broker.delete_before(case.topic, 1, 35)
    words = case.refused(1)
    assert f"topic {case.topic}, partition 1: offset 30 is next, but the broker begins at 35" in words
    case.configure(source="on_loss: skip")
    case.produce(10, partition=1)
    assert "the offsets 30 to 34 were removed unread" in case.run_to_end().stderr
    case.check()


def test_latest_is_where_the_first_start_found_it(case):
    """Also when that start was killed before its first checkpoint."""
    case.broker.produce(case.topic, [b"{}"] * 30)
    case.configure(source="start: latest", interval="1h")
    process = case.start()
    wait_until(lambda: case.kept("begin:orders"), "where it begins")
    process.kill()
    case.end(process)
    case.produce(60)
    case.configure(source="start: latest")
    case.run_to_end()
    case.check()


def test_offsets_of_the_group(case):
    case.configure(source="group: people")
    case.produce(100, partition=2)
    case.run_to_end()
    consumer = Consumer({"bootstrap.servers": case.broker.brokers, "group.id": "people"})
    (found,) = consumer.committed([TopicPartition(case.topic, 2)], SECONDS)
    consumer.close()
    assert found.offset == 100
    case.check()


def test_a_bad_message_names_its_place_or_becomes_a_letter(case):
    case.produce(10, partition=1)
    case.broker.produce(case.topic, ['{"id": "x"}'], partition=1)
    words = case.refused(6)
    assert f"topic {case.topic}, partition 1, offset 10: " in words
    assert "'id'" in words
    case.produce(10, partition=1)
    case.configure(source="on_bad_row: {dead_letter: bad}")
    with case.pipeline.open("a") as out:
        out.write("  bad: {type: file, path: ./out/bad, format: ndjson}\n")
    case.run_to_end()
    case.check()
    (letters,) = (case.folder / "out/bad").iterdir()
    letter = json.loads(letters.read_text())
    assert (letter["part"], letter["offset"]) == (f"{case.topic}/1", 10)


def test_no_broker_there(case):
    case.configure(source="timeouts: {open: 3s}")
    case.pipeline.write_text(case.pipeline.read_text().replace(case.broker.brokers, "127.0.0.1:1"))
    words = case.refused(1)
    assert "127.0.0.1:1" in words
    assert "refused" in words
