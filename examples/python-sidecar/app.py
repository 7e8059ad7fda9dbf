"""An application that gets its messages' events from `oncehook listen --forward-to`; the standard library is all it needs.

It verifies each request, drops what it has already, and keeps the rest in SQLite before it answers.
"""

import hashlib
import hmac
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY_BYTES = 1024 * 1024
MAX_AGE_MS = 5 * 60 * 1000


def is_authentic(secret: bytes, timestamp: str, body: bytes, signature: str) -> bool:
    """Whether `signature` is the HMAC-SHA256 over `<timestamp>.<body>`, made within the last five minutes."""
    if not (len(timestamp) == 13 and timestamp.isascii() and timestamp.isdigit()):
        return False
    if abs(time.time() * 1000 - int(timestamp)) > MAX_AGE_MS:
        return False
    expected = hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))


class Ledger:
    """Every event once, in the order in which it came, and the state of each message."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.execute("pragma journal_mode = wal")
        # A 2xx says that the event is safe here: it is on the disk before the answer.
        self._db.execute("pragma synchronous = full")
        self._db.executescript(
            """
            create table if not exists event (
              position integer primary key, id text unique not null, key text not null, type text not null,
              sequence integer not null, attempt integer not null, late integer not null, body blob not null
            );
            create table if not exists state (
              key text primary key, type text not null, sequence integer not null
            ) without rowid;
            """
        )

    def keep(self, headers, body: bytes) -> bool:
        """False for an event that is here already: its answer was lost on the way."""
        event_id, key, event_type = headers["oncehook-id"], headers["oncehook-key"], headers["oncehook-event-type"]
        late = headers.get("oncehook-late") == "true"
        sequence, attempt = int(headers["oncehook-sequence"]), int(headers["oncehook-attempt"])
        with self._lock:
            self._db.execute("begin immediate")
            try:
                kept = self._db.execute(
                    "insert into event (id, key, type, sequence, attempt, late, body) values (?, ?, ?, ?, ?, ?, ?)"
                    " on conflict (id) do nothing",
                    (event_id, key, event_type, sequence, attempt, late, body),
                )
                # The state goes with the event into one transaction. Its sequence says what may change it, and not the headers:
                # neither a late event nor a replay turns it back, and the first one that is taken here makes it.
                if kept.rowcount == 1:
                    self._db.execute(
                        "insert into state (key, type, sequence) values (?, ?, ?) on conflict (key) do update"
                        " set type = excluded.type, sequence = excluded.sequence where excluded.sequence >= sequence",
                        (key, event_type, sequence),
                    )
                self._db.execute("commit")
            except BaseException:
                self._db.execute("rollback")
                raise
            return kept.rowcount == 1

    def close(self) -> None:
        with self._lock:
            self._db.close()


class Application(ThreadingHTTPServer):
    daemon_threads = True
    # As many as `--concurrency` may open at once, and some.
    request_queue_size = 64

    def __init__(self, port: int, secret: bytes, ledger: Ledger) -> None:
        super().__init__(("127.0.0.1", port), Events)
        self.secret = secret
        self.ledger = ledger


class Events(BaseHTTPRequestHandler):
    # Connections are kept, so that not every event needs one of its own; half a minute without a request ends one.
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: Application

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(int(length))
        timestamp = self.headers.get("oncehook-timestamp", "")
        if not is_authentic(self.server.secret, timestamp, body, self.headers.get("oncehook-signature", "")):
            # For good: the event becomes a dead letter, and is replayed by a person when the secrets agree again.
            return self.answer(401)
        try:
            self.server.ledger.keep(self.headers, body)
        except (TypeError, ValueError, sqlite3.IntegrityError):
            return self.answer(400)  # A header is missing that the sidecar always sends.
        except sqlite3.Error as error:
            print(json.dumps({"error": str(error)}), file=sys.stderr, flush=True)
            return self.answer(503)
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_args) -> None:
        """Nothing: a line per request is of no use beside the ledger."""


def secret_from(environment) -> bytes:
    path = environment.get("FORWARD_SECRET_FILE")
    if path is None:
        return environment["ONCEHOOK_FORWARD_SECRET"].encode()
    with open(path, "rb") as file:
        # One line break at the end is the editor's, as oncehook reads it too.
        return file.read().removesuffix(b"\n").removesuffix(b"\r")


def main() -> None:
    try:
        secret = secret_from(os.environ)
    except (KeyError, OSError) as error:
        sys.exit(f"Put the secret into ONCEHOOK_FORWARD_SECRET, or its file's path into FORWARD_SECRET_FILE ({error!r}).")
    if len(secret) < 16:
        sys.exit("The secret must have at least 16 bytes: an empty one would let everybody in.")
    ledger = Ledger(os.environ.get("DATABASE", "events.db"))
    application = Application(int(os.environ.get("PORT", "8000")), secret, ledger)
    # In a thread of its own: shutdown() waits for serve_forever(), which this signal interrupts.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=application.shutdown).start())
    print(json.dumps({"listening": f"http://127.0.0.1:{application.server_port}/events"}), flush=True)
    try:
        application.serve_forever(poll_interval=0.05)
    except KeyboardInterrupt:
        pass
    ledger.close()


if __name__ == "__main__":
    main()
