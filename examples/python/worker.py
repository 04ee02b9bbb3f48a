"""Serves the function count-words (docs/functions-protocol.md). Needs HOLDFAST_URL and HOLDFAST_TOKEN."""
import http.client, itertools, json, os, signal, sys, threading, time, urllib.error, urllib.request, uuid
API, WORKER = os.environ["HOLDFAST_URL"].rstrip("/") + "/api/v1", str(uuid.uuid4())
stopping = []  # a signal handler must not wait for a lock, so this is no Event
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))

def call(method, path, **body):
    """Returns status and answer. Repeats a request that was not answered, except when stopping."""
    for wait in itertools.chain([1, 2, 4, 8, 16], itertools.repeat(30)):
        request = urllib.request.Request(API + path, json.dumps(body).encode(), method=method, headers={
            "Authorization": "Bearer " + os.environ["HOLDFAST_TOKEN"], "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException) as e:
            if isinstance(e, urllib.error.HTTPError) and e.code < 500:
                return e.code, json.loads(e.read())
        for _ in range(wait):
            if stopping:
                return 503, {"detail": "stopping"}
            time.sleep(1)

def count_words(args, news, halt):
    words, lines = 0, args["lines"]
    for n, line in enumerate(lines, 1):
        if line is None:
            raise ValueError("line %d has no text" % n)
        words += len(line.split())
        news["progress"] = [{"title": "Lines", "unit": "lines", "position": n, "end": len(lines)}]
        news["log"].append({"seq": n, "text": "line %d: %d words so far" % (n, words)})
        if halt.wait(args.get("seconds", 0) / len(lines)):  # stand-in for long work
            return None
    return words

def work(run):
    halt, lost, news, attempt = threading.Event(), threading.Event(), {"log": []}, "/tasks/%s/attempts/%d" % (run["id"], run["attempt"])
    def unsent():  # progress if it has moved, and each line once
        return {"progress": news.pop("progress", []), "log": [news["log"].pop(0) for _ in news["log"][:100]]}
    def renew():
        while not halt.is_set():
            status, answer = call("POST", attempt + "/renew", worker=WORKER, wait_seconds=1, **unsent())
            if status in (404, 409):
                lost.set()
            if lost.is_set() or stopping or answer.get("drain"):
                halt.set()
    (renewing := threading.Thread(target=renew)).start()
    try:
        words = count_words(run["args"], news, halt)
        end = {"outcome": "released"} if words is None else {"outcome": "done", "result": words}
    except Exception as e:
        end = {"outcome": "retry", "error": str(e)}
    halt.set()
    renewing.join()
    print("lost" if lost.is_set() else call("POST", attempt + "/settle", **end, **unsent())[0], run["id"], flush=True)

status, answer = call("POST", "/functions", functions=[{"name": "count-words", "max_attempts": 2, "first_seconds": 1}])
while status in (200, 204) and not stopping:
    status, answer = call("POST", "/tasks/claim", worker=WORKER, functions=["count-words"], request_id=str(uuid.uuid4()), wait_seconds=5)
    if status == 200:
        work(answer)
sys.exit(None if stopping else answer["detail"])
