"""Servers for `packaging/empty-root`: a web server on a free port of 127.0.0.1, which is printed, and a name server on
port 53, which resolves every name to 127.0.0.1, except those under `.invalid`."""

import http.server
import socket
import struct
import threading

FOUND, NOT_FOUND = 0x8180, 0x8183
A_RECORD = 1


def answer(question):
    """Returns the response to a query for one name (RFC 1035, section 4)."""
    end = 12
    labels = []
    while question[end]:
        labels.append(question[end + 1 : end + 1 + question[end]])
        end += question[end] + 1
    asked = question[12 : end + 5]
    (kind,) = struct.unpack(">H", question[end + 1 : end + 3])
    record = b""
    if kind == A_RECORD and labels[-1] != b"invalid":
        # A pointer to the name in the question; the record is valid for a minute.
        record = struct.pack(">HHHIH", 0xC00C, A_RECORD, 1, 60, 4) + socket.inet_aton("127.0.0.1")
    flags = NOT_FOUND if labels[-1] == b"invalid" else FOUND
    return question[:2] + struct.pack(">5H", flags, 1, bool(record), 0, 0) + asked + record


def answer_all(names):
    while True:
        question, whose = names.recvfrom(512)
        names.sendto(answer(question), whose)


class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *_):
        pass


names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.1", 53))
threading.Thread(target=answer_all, args=[names], daemon=True).start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello)
print(server.server_port, flush=True)
server.serve_forever()
