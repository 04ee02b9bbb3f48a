package mail

import "time"

// samples are the data with which templates are tried when a process starts: for each kind one
// value with all fields set, and one with none.
func samples() map[Kind][]any {
	at := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	batch := Batch{
		ID: "0193a1b2-0000-7000-8000-000000000001", Name: "plates.checkm", Title: "Glass plates", Collection: "maps", Submitter: "Ann",
		By: "ann", Submitted: at, Link: "https://holdfast.example.org/items/0193a1b2-0000-7000-8000-000000000001",
	}
	job := Job{
		Name: "Plate 1", Place: "row 1, line 6", Repeats: "row 1, line 5", LocalIDs: "plate-1; p1", ARK: "ark:/99999/fk4tqj2bf3x", Version: 1, State: "Failed", Error: "sha256 differs", Fault: "the deposit",
		Fix: "the producer corrects the file or its digest, and submits this deposit alone", Link: batch.Link,
	}
	return map[Kind][]any{
		KindQueued: {Queued{Batch: batch, Payload: "plates.checkm"}, Queued{}},
		KindReport: {
			Report{
				Batch: batch, Outcome: "UPDATED", Number: 2, Made: at, Jobs: 15, Completed: 12, Failed: 3, Changes: &Changes{Since: 1, NowCompleted: 2, StillFailed: 2, NewlyFailed: 1, NowStopped: 1},
				Failures: []Job{job}, More: 2, Mended: []Job{job}, MoreMended: 1, Repeated: []Job{job}, MoreRepeated: 1, Attached: []string{"failed.json"}, LeftOut: []string{"completed.json"}, Repeats: batch.ID,
			},
			Report{},
		},
		KindFailed: {Failed{Batch: batch, At: at, Error: "the manifest has no rows", Fault: "the deposit", Fix: "the producer corrects the deposit, and submits it again"}, Failed{}},
		KindStopped: {
			Stopped{Batch: batch, At: at, State: "aborted", Why: "the wrong folder", Jobs: 18, Preserved: 12, Carried: 1, Left: 3, Ended: 2}, Stopped{},
		},
		KindSafe: {Safe{Batch: batch, Objects: 12, Storages: []string{"storage", "vault"}, Verified: at}, Safe{}},
		KindDigest: {
			Digest{
				At: at, Link: "https://holdfast.example.org/", Needs: true, Failed: 412, Failures: []Cause{{412, "download", "the system", "503 by example.org", "see to it"}}, More: 1,
				Held: 1, Holds: []Hold{{"collection maps", "moving", "ann", at}}, Deletes: []Deletion{{job.ARK, "withdrawn", "ann", at}}, Damaged: 1, Damages: []Damage{{"fixity of " + job.ARK + " v1/content/producer/plate.tif", "no storage has it right", batch.Link}},
				Waiting: &Waiting{batch.ID, batch.Name, "Held", at, "held by collection maps", batch.Link}, Untold: 1,
				Messages: []Untold{{"ann@example.org", batch.ID, 3, "550 no such user", true}}, Accept: &NoAccept{"moving", "ann", at},
			},
			Digest{},
		},
	}
}
