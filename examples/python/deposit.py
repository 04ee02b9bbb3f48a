"""Deposits one file, waits, and prints the object that it became. Needs HOLDFAST_URL and HOLDFAST_TOKEN."""
import json, os, sys, time, urllib.parse, urllib.request
API = os.environ["HOLDFAST_URL"].rstrip("/") + "/api/v1"

def call(method, path, body=None, **headers):
    headers["Authorization"] = "Bearer " + os.environ["HOLDFAST_TOKEN"]
    with urllib.request.urlopen(urllib.request.Request(API + path, body, headers, method=method)) as answer:
        return json.load(answer)

path = sys.argv[1]
name = os.path.basename(path)
with open(path, "rb") as file:
    upload = call("POST", "/uploads?filename=" + urllib.parse.quote(name), file,
                  **{"Content-Type": "application/octet-stream", "Content-Length": str(os.path.getsize(path))})
# The key makes a repeat safe: it answers with the same batch.
batch = call("POST", "/batches", json.dumps({"upload_id": upload["id"], "title": name}).encode(),
             **{"Content-Type": "application/json", "Idempotency-Key": "deposit-" + upload["id"]})["batch_id"]
while not (progress := call("GET", "/batches/" + batch + "/progress"))["settled"] and not progress["failed"]:
    time.sleep(1)
for job in call("GET", "/batches/" + batch + "/jobs")["rows"]:
    print(job["state"], job.get("ark") or job["error"])
