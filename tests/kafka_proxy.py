"""Between weir and a broker: cuts the network at chosen requests of the Kafka protocol.

A request is [size: int32][API key: int16][version: int16][correlation id: int32]..., its answer [size: int32]
[correlation id: int32]... (Kafka protocol guide, "Protocol Request Structure").
"""

import socket
import struct
import threading
import time

PRODUCE, ADD_PARTITIONS, END_TXN, INIT_PRODUCER_ID = 0, 24, 26, 22
DELAY = 2.0  # longer than a client waits that is in a hurry, shorter than a request may take


class Proxy:
    """One that goes wrong at the `nth` request of kind `api`, and lets everything else through. `what`:

    dropped      the request never reaches the broker, and every connection is cut
    answer_lost  it reaches it, its answer is lost, and every connection is cut
    delayed      it is held back for a while
    a function   called when the broker has answered; the answer is lost, and every connection is cut

    After a cut nobody can connect for `dark` seconds.
    """

    def __init__(self, broker, api=None, what="dropped", nth=1, dark=0.0):
        self.upstream, self.api, self.what, self.left, self.dark = broker.port + 2, api, what, nth, dark
        self.lock, self.pairs, self.dark_until, self.hit = threading.Lock(), [], 0.0, False
        self.listener = socket.create_server(("127.0.0.1", broker.port + 3))
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if time.monotonic() < self.dark_until:
                    raise ConnectionError
                upstream = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                client.close()
                continue
            lost = set()  # correlation ids of requests whose answers are to be lost
            with self.lock:
                self.pairs.append((client, upstream))
            threading.Thread(target=self.carry, args=(client, upstream, self.ask, lost), daemon=True).start()
            threading.Thread(target=self.carry, args=(upstream, client, self.answer, lost), daemon=True).start()

    def carry(self, source, sink, look, lost):
        stream = source.makefile("rb")
        try:
            while len(head := stream.read(4)) == 4:
                body = stream.read(struct.unpack(">i", head)[0])
                if look(body, lost):
                    sink.sendall(head + body)
        except (OSError, ValueError):
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def ask(self, body, lost):
        api, _, number = struct.unpack(">hhi", body[:8])
        with self.lock:
            if api != self.api or self.hit:
                return True
            self.left -= 1
            if self.left:
                return True
            self.hit = True
        if self.what == "dropped":
            self.cut()
            return False
        if self.what == "delayed":
            time.sleep(DELAY)
        else:
            lost.add(number)
        return True

    def answer(self, body, lost):
        if struct.unpack(">i", body[:4])[0] not in lost:
            return True
        if callable(self.what):
            self.what()
        self.cut()
        return False

    def cut(self):
        self.dark_until = time.monotonic() + self.dark
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
