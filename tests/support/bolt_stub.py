"""A stub that speaks enough Bolt 5 for Neo4j's driver to run a query. It is not Neo4j and executes no Cypher."""

import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Rows = tuple[list[str], list[list[Any]]]
"""The names of the columns, and the rows."""
_RUN, _PULL, _LOGON, _GOODBYE = 0x10, 0x3F, 0x6A, 0x02
_SUCCESS, _RECORD, _FAILURE = 0x70, 0x71, 0x7F


def packed(value: Any) -> bytes:
    """Encode a value as PackStream: strings, lists, dicts and None."""
    if value is None:
        return b"\xc0"
    if isinstance(value, str):
        data = value.encode()
        return b"\xd1" + struct.pack(">H", len(data)) + data
    if isinstance(value, list):
        return b"\xd5" + struct.pack(">H", len(value)) + b"".join(map(packed, value))
    return b"\xd9" + struct.pack(">H", len(value)) + b"".join(packed(key) + packed(value[key]) for key in value)


@contextmanager
def bolt_server(answer: Callable[[str], Rows | str], *, password: str | None = None) -> Iterator[str]:
    """Serve on loopback and yield the URL.

    Args:
        answer: Returns a query's rows, or a Neo4j error code.
        password: Clients with any other password are rejected.
    """

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            proposed = self.rfile.read(20)[4:]
            major_5 = next(each for each in struct.iter_unpack(">BBBB", proposed) if each[3] == 5)
            self.wfile.write(bytes([0, 0, major_5[2], 5]))
            rows: Rows = ([], [])
            while (message := self.message()) and message[1] != _GOODBYE:
                if message[1] == _RUN:
                    found = answer(
                        message[4 : 4 + message[3]].decode() if message[2] == 0xD0 else message.decode("latin1")
                    )
                    if isinstance(found, str):
                        self.fail(found)
                        continue
                    rows = found
                    self.send(_SUCCESS, {"fields": rows[0]})
                elif message[1] == _PULL:
                    for row in rows[1]:
                        self.send(_RECORD, row)
                    self.send(_SUCCESS, {})
                elif message[1] == _LOGON and password is not None and password.encode() not in message:
                    self.fail("Neo.ClientError.Security.Unauthorized")
                else:
                    self.send(_SUCCESS, {"server": "Neo4j/5.26.0", "connection_id": "bolt-1"})

        def message(self) -> bytes:
            parts = []
            while size := int.from_bytes(self.rfile.read(2), "big"):
                parts.append(self.rfile.read(size))
            return b"".join(parts)

        def fail(self, code: str) -> None:
            of_gql = {"neo4j_code": code, "gql_status": "50N42", "description": "error: general"}  # since Bolt 5.7
            self.send(_FAILURE, {"code": code, "message": "no", **of_gql})

        def send(self, kind: int, value: Mapping[str, Any] | list[Any]) -> None:
            data = bytes([0xB1, kind]) + packed(value)
            self.wfile.write(struct.pack(">H", len(data)) + data + b"\0\0")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"bolt://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
