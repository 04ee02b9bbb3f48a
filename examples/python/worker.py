"""Serves the function count-words (docs/functions-protocol.md). Needs HOLDFAST_URL and HOLDFAST_TOKEN."""
import itertools, json, os, signal, sys, threading, urllib.error, urllib.request, uuid

API, WORKER = os.environ["HOLDFAST_URL"].rstrip("/") + "/api/v1", str(uuid.uuid4())
stopping = threading.Event()

def call(method, path, body):
    """Returns status and answer. Repeats a request that was not answered, except when stopping."""
    for wait in itertools.chain([1, 2, 4, 8, 16], itertools.repeat(30)):
        request = urllib.request.Request(API + path, json.dumps(body).encode(), method=method, headers={
            "Authorization": "Bearer " + os.environ["HOLDFAST_TOKEN"], "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except OSError as e:
            if isinstance(e, urllib.error.HTTPError) and e.code < 500:
                return e.code, json.loads(e.read())
        if stopping.wait(wait):
            return 503, {"detail": "stopping"}

def count_words(run, lost, progress):
    words, lines = 0, run["args"]["lines"]
    for n, line in enumerate(lines):
        if lost.is_set() or stopping.is_set():
            return None
        if line is None:
            raise ValueError("line %d has no text" % (n + 1))
        words += len(line.split())
        progress[:] = [{"title": "Lines", "unit": "lines", "position": n + 1, "end": len(lines)}]
        lost.wait(run["args"].get("seconds", 0) / len(lines))
    return words

def work(run):
    lost, done, progress, attempt = threading.Event(), threading.Event(), [], "/tasks/%s/attempts/%d" % (run["id"], run["attempt"])
    def renew():
        sent = []
        while not done.is_set():
            moved, sent = progress[:] if progress != sent else [], progress[:]
            if call("POST", attempt + "/renew", {"worker": WORKER, "progress": moved, "wait_seconds": 1})[0] in (404, 409):
                print("lost", run["id"], flush=True)
                return lost.set()
    threading.Thread(target=renew, daemon=True).start()
    try:
        result = count_words(run, lost, progress)
        end = {"outcome": "released"} if result is None else {"outcome": "done", "result": result}
    except Exception as e:
        end = {"outcome": "retry", "error": str(e)}
    done.set()
    if not lost.is_set():
        print("settled", run["id"], call("POST", attempt + "/settle", dict(end, progress=progress))[1], flush=True)

signal.signal(signal.SIGTERM, lambda *_: stopping.set())
if call("POST", "/functions", {"functions": [{"name": "count-words", "max_attempts": 2, "first_seconds": 1}]})[0] >= 300:
    sys.exit("the functions were not announced: check HOLDFAST_TOKEN and its stages")
while not stopping.is_set():
    status, answer = call("POST", "/tasks/claim", {"worker": WORKER, "functions": ["count-words"], "request_id": str(uuid.uuid4()), "wait_seconds": 5, "lease_seconds": 30})
    if status == 200:
        work(answer)
    elif status in (401, 403):
        sys.exit(answer["detail"])
