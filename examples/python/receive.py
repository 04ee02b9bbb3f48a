"""Takes callbacks of Holdfast, and prints each outcome once. Needs CALLBACK_KEY, the signing key (whsec_...);
prints its address, whose port is its argument. docs/callbacks.md explains it."""
import base64, hashlib, hmac, http.server, json, os, signal, sys, threading, time
SECRET = base64.b64decode(os.environ["CALLBACK_KEY"].removeprefix("whsec_"))
seen, lock = set(), threading.Lock()  # a real receiver keeps the ids in its database, with what it did

def signed(headers, body):
    """Says whether one of the signatures is right and the message is no replay of an old one."""
    at = headers.get("Webhook-Timestamp", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:
        return False
    text = ("%s.%s." % (headers.get("Webhook-Id", ""), at)).encode() + body
    want = b"v1," + base64.b64encode(hmac.new(SECRET, text, hashlib.sha256).digest())
    return any(hmac.compare_digest(have.encode(), want) for have in headers.get("Webhook-Signature", "").split())

class Receiver(http.server.BaseHTTPRequestHandler):
    timeout = 60

    def do_POST(self):
        # It answers at once: what takes longer comes after the answer, by a queue of your own, since
        # Holdfast waits a minute and then sends the message again.
        size = int(self.headers.get("Content-Length", -1))
        body = self.rfile.read(size) if 0 <= size <= 1 << 20 else b""
        good = signed(self.headers, body)
        if good:
            message = json.loads(body)
            with lock:
                if self.headers["Webhook-Id"] not in seen:
                    seen.add(self.headers["Webhook-Id"])
                    print(message["jobStatus"], message.get("primaryID", "-"), message["packageName"], flush=True)
        self.send_response(204 if good else 403)
        self.end_headers()

    def log_message(self, *_):
        pass

signal.signal(signal.SIGTERM, lambda *_: sys.exit())
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
print("http://%s:%d" % server.server_address, flush=True)
server.serve_forever()
