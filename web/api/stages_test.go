package api_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// serving makes a worker's token that is good for some stages and returns its secret.
func (b *bench) serving(t *testing.T, name string, stages ...registry.Stage) string {
	t.Helper()
	made, err := b.as(t, registry.RoleAdmin).CreateToken(t.Context(), wire.TokenRequest{Name: name, Role: "worker", Stages: stages})
	must(t, err)
	return made.Secret
}

// worker is the Registry as a worker of some stages has it.
func (b *bench) worker(t *testing.T, name string, stages ...registry.Stage) *protocol.Client {
	t.Helper()
	s := protocol.NewClient(client.New(b.server.URL, b.serving(t, name, stages...), client.Options{}))
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// TestAccess_ByStage calls every operation of the API and of the workers' protocol with a token of
// each stage, and checks that what the stage does not need is refused.
func TestAccess_ByStage(t *testing.T) {
	text, err := api.Specification()
	must(t, err)
	var spec specified
	must(t, json.Unmarshal(text, &spec))
	b := newBench(t)
	table := access.Stages()
	asked, refused := 0, 0
	for _, stage := range registry.Stages() {
		secret := b.serving(t, "worker "+string(stage), stage)
		try := func(operation, method, path, body string) {
			stages, workers := table[operation]
			may := workers && (stages == nil || slices.Contains(stages, stage)) || operation == "own-token"
			answer, text := b.send(t, strings.ToUpper(method), "/api/v1"+path, body, "Authorization", "Bearer "+secret)
			asked++
			// What it may ask about some items only is refused for another reason: it has claimed
			// nothing.
			forbidden := answer.StatusCode == http.StatusForbidden && !strings.Contains(text, "only while it works on an item")
			if forbidden == may {
				t.Errorf("%s may %s: %v, answered %d %s", stage, operation, may, answer.StatusCode, text)
			}
			if forbidden {
				refused++
			}
		}
		for path, methods := range spec.Paths {
			for method, op := range methods {
				body := ""
				if method == "post" || method == "put" {
					body = "{}"
				}
				try(op.OperationID, method, strings.NewReplacer("{id}", "none", "{name}", "none", "{n}", "1").Replace(path), body)
			}
		}
		for name, stages := range protocol.Stages() {
			body := `{"stage":"` + string(stage) + `"}` // of a claim; others do not read it
			try("work/"+name, "post", protocol.Path+name, body)
			// The same as one of several calls: some methods must be called alone.
			answer, text := b.send(t, http.MethodPost, "/api/v1"+protocol.Path+"calls", `[{"method":"`+name+`","in":`+body+`}]`, "Authorization", "Bearer "+secret)
			var got []struct {
				Done    bool          `json:"done"`
				Problem *wire.Problem `json:"problem"`
			}
			must(t, json.Unmarshal([]byte(text), &got))
			may := stages == nil || slices.Contains(stages, stage)
			if answer.StatusCode != http.StatusOK || len(got) != 1 || !may && (got[0].Done || got[0].Problem.Status != http.StatusForbidden && got[0].Problem.Status != http.StatusNotFound) {
				t.Errorf("%s calls %s among others: %d %s", stage, name, answer.StatusCode, text)
			}
			if name == "withdrawn" || name == "calls" {
				if got[0].Problem == nil || got[0].Problem.Status != http.StatusNotFound {
					t.Errorf("%s is allowed among other calls: %s", name, text)
				}
			}
		}
	}
	if asked < 1000 || refused < asked/2 {
		t.Errorf("%d calls were tried and %d refused; every operation of every stage is to be", asked, refused)
	}
}

// TestAccess_StagesPrinciples checks rules that the access table must never break: no worker acts
// in another's name, and only one stage may make each permanent change.
func TestAccess_StagesPrinciples(t *testing.T) {
	table := access.Stages()
	for id, stages := range table {
		if len(stages) > 8 {
			t.Errorf("%s is allowed to %d stages; is it needed by so many?", id, len(stages))
		}
	}
	for id := range table {
		if stages := table[id]; !strings.HasPrefix(id, "work/") && !slices.Equal(stages, registry.Families()) {
			t.Errorf("a worker of %v may %s of the API", stages, id)
		}
	}
	for id, want := range map[string]string{
		"add-jobs": "expand", "close-report": "report", "apply-next": "apply", "identify": "process", "intend": "process", "record-version": "record",
		"record-files": "record", "mark-deleting": "delete", "record-deletion": "delete", "record-check": "fixity", "record-restoration": "restore",
	} {
		if got := table["work/"+id]; len(got) != 1 || string(got[0]) != want {
			t.Errorf("%s is done by %v, want %s alone", id, got, want)
		}
	}
}

// TestWorkers_OnlyTheirOwn checks that a worker's token claims only for its stages, and cannot
// settle, renew or write for another token's attempt.
func TestWorkers_OnlyTheirOwn(t *testing.T) {
	b := newBench(t)
	batch, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	mine, other := b.worker(t, "mine", registry.Expand), b.worker(t, "other", registry.Expand, registry.Process)
	ask := registry.ClaimRequest{RequestID: "r1", Stage: registry.Download, Worker: "w", Lease: time.Minute, MaxAttempts: 5}
	_, err = mine.Claim(t.Context(), ask)
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	_, err = mine.Renew(t.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "w", Capacity: map[registry.Stage]int{registry.Download: 100}}, Lease: time.Minute})
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)

	ask.RequestID, ask.Stage, ask.Hint = "r2", registry.Expand, batch.BatchID
	c, err := mine.Claim(t.Context(), ask)
	must(t, err)
	before, err := b.store.Attempts(t.Context(), batch.BatchID)
	must(t, err)
	lost := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, registry.ErrClaimLost) {
			t.Errorf("%s by another token: %v, want that the claim is not its own", what, err)
		}
	}
	_, err = other.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "forged"})
	lost("settle", err)
	_, err = other.SaveResult(t.Context(), c.Lease, "forged", json.RawMessage("1"))
	lost("save a result", err)
	_, err = other.AddJobs(t.Context(), c.Lease, []registry.NewJob{{Line: 1, Row: 1, Name: "forged"}})
	lost("add jobs", err)
	renewal, err := other.Renew(t.Context(), registry.RenewRequest{
		Worker: registry.WorkerInfo{ID: "x"}, Lease: time.Hour, Beats: []registry.Beat{{Lease: c.Lease, DoneBytes: 99, DoneFiles: -1}},
	})
	must(t, err)
	if len(renewal.Lost) != 1 {
		t.Errorf("renewal by another token: %+v", renewal)
	}
	after, err := b.store.Attempts(t.Context(), batch.BatchID)
	must(t, err)
	it, err := b.store.Item(t.Context(), batch.BatchID)
	must(t, err)
	if len(after) != 1 || after[0].LeaseUntil != before[0].LeaseUntil || it.Status != registry.Running || it.DoneBytes != 0 || len(it.Results) != 0 {
		t.Errorf("the other token changed it: %+v, %+v", after, it)
	}
	// By its own token, and by an admin's, it goes on.
	_, err = mine.SaveResult(t.Context(), c.Lease, "kept", json.RawMessage("1"))
	must(t, err)
	_, err = mine.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	must(t, err)
	_, err = mine.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased}) // the answer was lost
	must(t, err)
	_, err = other.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
	lost("learn how it was settled", err)
}

// TestWorkers_Ids checks that a worker's id belongs to the token that announced it while the worker
// lives.
func TestWorkers_Ids(t *testing.T) {
	b := newBench(t)
	batch, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	mine, other := b.worker(t, "mine", registry.Expand), b.worker(t, "other", registry.Expand)
	beat := func(s registry.Working, id string, slots int) error {
		_, err := s.Renew(t.Context(), registry.RenewRequest{Lease: time.Minute, Worker: registry.WorkerInfo{
			ID: id, Capacity: map[registry.Stage]int{registry.Expand: slots}, Draining: slots == 0,
		}})
		return err
	}
	must(t, beat(mine, "w", 3))
	must(t, beat(b.store, "own", 3))
	for _, id := range []string{"w", "own"} {
		if err := beat(other, id, 0); !errors.Is(err, registry.ErrWorkerTaken) {
			t.Errorf("another token announces %s: %v", id, err)
		}
		_, err = other.Claim(t.Context(), registry.ClaimRequest{RequestID: id, Stage: registry.Expand, Hint: batch.BatchID, Worker: id, Lease: time.Minute, MaxAttempts: 5})
		if !errors.Is(err, registry.ErrWorkerTaken) {
			t.Errorf("another token claims as %s: %v", id, err)
		}
	}
	alive, err := b.store.Workers(t.Context())
	must(t, err)
	if len(alive) != 2 || alive[0].Draining || alive[1].Draining || alive[1].Capacity[registry.Expand] != 3 {
		t.Errorf("workers %+v, want both as they said", alive)
	}
	must(t, beat(mine, "w", 2))
	must(t, beat(b.store, "own", 2))
	b.pass(2 * time.Minute) // it is gone
	must(t, beat(other, "w", 1))
}

// TestWorkers_Revoked checks that the items that a token has claimed are free at once, and
// uncounted, when it is revoked.
func TestWorkers_Revoked(t *testing.T) {
	b := newBench(t)
	batch, err := b.as(t, registry.RoleDepositor).Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "")
	must(t, err)
	leaked, other := b.worker(t, "leaked", registry.Expand), b.worker(t, "other", registry.Expand)
	announce := registry.RenewRequest{Lease: time.Hour, Worker: registry.WorkerInfo{ID: "w", Capacity: map[registry.Stage]int{registry.Expand: 100}}}
	_, err = leaked.Renew(t.Context(), announce)
	must(t, err)
	ask := registry.ClaimRequest{RequestID: "r1", Stage: registry.Expand, Hint: batch.BatchID, Worker: "w", Lease: registry.MostLease, MaxAttempts: 5}
	c, err := leaked.Claim(t.Context(), ask)
	must(t, err)
	tokens, err := b.store.Tokens(t.Context())
	must(t, err)
	id := tokens[slices.IndexFunc(tokens, func(tok registry.Token) bool { return tok.Name == "leaked" })].ID
	must(t, b.as(t, registry.RoleAdmin).RevokeToken(t.Context(), id))
	it, err := b.store.Item(t.Context(), batch.BatchID)
	must(t, err)
	past, err := b.store.Attempts(t.Context(), batch.BatchID)
	must(t, err)
	if it.Status != registry.Pending || it.Tries != 0 || len(past) != 1 || past[0].Outcome != registry.OutcomeWithdrawn || !strings.Contains(past[0].Error, "token leaked was revoked") {
		t.Errorf("%s after %d tries, attempts %+v; want that it waits, uncounted", it.Status, it.Tries, past)
	}
	taken, _, err := b.store.Withdrawn(t.Context(), registry.WithdrawnQuery{Worker: "w"})
	must(t, err)
	if len(taken) != 1 || taken[0] != c.Lease {
		t.Errorf("its worker hears of %+v, want %+v", taken, c.Lease)
	}
	if alive, err := b.store.Workers(t.Context()); err != nil || len(alive) != 0 {
		t.Errorf("workers %+v (%v), want that its are forgotten", alive, err)
	}
	// A claim that was let in before, and comes to the Registry after.
	late := ask
	late.RequestID, late.Token = "r2", id
	if _, err := b.store.Claim(t.Context(), late); !errors.Is(err, registry.ErrClaimLost) {
		t.Errorf("claim by the revoked token: %v", err)
	}
	ask.RequestID, ask.Worker = "r3", "v"
	_, err = other.Claim(t.Context(), ask)
	must(t, err)
	must(t, b.as(t, registry.RoleAdmin).RevokeToken(t.Context(), id)) // a repeat takes nothing away
	if it, err := b.store.Item(t.Context(), batch.BatchID); err != nil || it.Status != registry.Running {
		t.Errorf("%s (%v), want that the other token's attempt goes on", it.Status, err)
	}
}

// TestWorkers_ReadWhatTheyClaimed checks that a worker reads uploads and credentials only while it
// works on an item that concerns them.
func TestWorkers_ReadWhatTheyClaimed(t *testing.T) {
	b := newBench(t)
	must(t, b.store.PutCollection(t.Context(), registry.Collection{Mnemonic: "other", Profile: registry.Profile{Owner: "ark:/99999/o"}}, "test"))
	for _, id := range []string{"one", "two"} {
		_, err := b.store.BeginUpload(t.Context(), registry.NewUpload{ID: id, Keep: time.Hour})
		must(t, err)
		must(t, b.store.FinishUpload(t.Context(), registry.Upload{ID: id}))
		_, err = b.store.Submit(t.Context(), registry.Submission{Collection: "default", Spec: registry.Spec{Type: registry.FileType, URL: "upload:" + id, Filename: id}, Actor: "ann"})
		must(t, err)
	}
	batches, err := b.store.BatchesOf(t.Context(), "one")
	must(t, err)

	_, err = b.store.Command(t.Context(), registry.Command{ItemID: batches[0].ID, Act: registry.ActAbort, Actor: "admin", Confirmed: true})
	must(t, err)
	b.pass(time.Hour)
	w := b.worker(t, "cleanup", registry.Cleanup)
	fetch := b.worker(t, "expand", registry.Expand)
	look := func(id string) error {
		_, err := w.BatchesOf(t.Context(), id)
		return err
	}
	for _, id := range []string{"one", "two"} {
		problemOf(t, look(id), http.StatusForbidden, wire.CodeForbidden)
	}
	c, err := w.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Cleanup, Worker: "w", Lease: time.Minute, MaxAttempts: 5})
	must(t, err)
	must(t, look("one"))
	problemOf(t, look("two"), http.StatusForbidden, wire.CodeForbidden)
	if _, err := w.ReleaseUpload(t.Context(), c.Lease, "two"); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("release another upload: %v", err)
	}
	_, err = w.Settle(t.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	must(t, err)
	problemOf(t, look("one"), http.StatusForbidden, wire.CodeForbidden)

	secrets := func(collection string) error {
		_, err := fetch.Credentials(t.Context(), collection)
		return err
	}
	problemOf(t, secrets("default"), http.StatusForbidden, wire.CodeForbidden)
	_, err = fetch.Claim(t.Context(), registry.ClaimRequest{RequestID: "e", Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5})
	must(t, err)
	must(t, secrets("default"))
	problemOf(t, secrets("other"), http.StatusForbidden, wire.CodeForbidden)
}

// TestWorkers_OldTokens checks that a worker's token without stages is valid for all stages, and
// for nothing beyond.
func TestWorkers_OldTokens(t *testing.T) {
	b := newBench(t)
	old := client.New(b.server.URL, tokenText(registry.RoleWorker), client.Options{})
	t.Cleanup(old.Close)
	s := protocol.NewClient(old)
	for _, stage := range registry.Stages() {
		_, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: string(stage), Stage: stage, Worker: "w", Lease: time.Minute, MaxAttempts: 5})
		if !errors.As(err, new(*registry.NotClaimable)) {
			t.Errorf("claim for %s: %v", stage, err)
		}
	}
	_, err := old.Submit(t.Context(), wire.SubmitRequest{URL: "http://h.test/a"}, "")
	problemOf(t, err, http.StatusForbidden, wire.CodeForbidden)
	me, err := old.OwnToken(t.Context())
	must(t, err)
	if me.Role != registry.RoleWorker || me.Hash != "" || len(me.Stages) != 0 {
		t.Errorf("own token %+v", me)
	}
}

// TestWorkers_Versions checks what becomes of workers whose protocol the Registry does not speak:
// they are told what to upgrade, in a way that makes them wait.
func TestWorkers_Versions(t *testing.T) {
	b := newBench(t)
	for version, says := range map[int]string{protocol.Version: "", protocol.Version + 1: "upgrade the Registry first", protocol.Oldest - 1: "upgrade the worker"} {
		c := client.New(b.server.URL, tokenText(registry.RoleWorker), client.Options{HTTP: &http.Client{Transport: speaking{version}}})
		t.Cleanup(c.Close)
		err := protocol.NewClient(c).Ping(t.Context())
		if says == "" {
			must(t, err)
			continue
		}
		problemOf(t, err, http.StatusServiceUnavailable, wire.CodeProtocol)
		if !errors.Is(err, registry.ErrUnavailable) || !strings.Contains(err.Error(), says) {
			t.Errorf("version %d: %v", version, err)
		}
		// A method that is not known here is no fault of the item.
		err = c.Post(t.Context(), protocol.Path+"of-tomorrow", 0, struct{}{}, nil)
		problemOf(t, err, http.StatusServiceUnavailable, wire.CodeProtocol)
	}
}

// speaking is a worker of another version of the protocol.
type speaking struct{ version int }

// RoundTrip implements http.RoundTripper.
func (s speaking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.RawQuery = "version=" + strconv.Itoa(s.version)
	return http.DefaultTransport.RoundTrip(r)
}

// TestReserve_StagingIsMeasured checks that a worker cannot claim a larger or unlimited staging
// volume.
func TestReserve_StagingIsMeasured(t *testing.T) {
	b := newBench(t)
	batch, err := b.store.Submit(t.Context(), registry.Submission{Collection: "default", Spec: registry.Spec{Type: registry.FileType, URL: "https://example.org/f"}})
	must(t, err)
	w := b.worker(t, "leaked", registry.Expand, registry.Estimate, registry.Provision)
	next := func(stage registry.Stage, hint string) registry.Lease {
		c, err := w.Claim(t.Context(), registry.ClaimRequest{RequestID: string(stage), Stage: stage, Hint: hint, Worker: "w", Lease: time.Minute, MaxAttempts: 5})
		must(t, err)
		return c.Lease
	}
	l := next(registry.Expand, batch.BatchID)
	_, err = w.AddJobs(t.Context(), l, []registry.NewJob{{Line: 1, Name: "f", Spec: registry.Spec{Type: registry.FileType, URL: "https://example.org/f"}}})
	must(t, err)
	for _, stage := range []registry.Stage{registry.Estimate, registry.Provision} {
		_, err = w.Settle(t.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
		must(t, err)
		l = next(stage, "")
	}
	for _, total := range []int64{0, math.MaxInt64} {
		var full *registry.NoSpaceError
		err := w.Reserve(t.Context(), l, registry.Reservation{Volume: registry.DefaultStaging, Bytes: 1 << 55, Total: total, Threshold: 1})
		if !errors.As(err, &full) {
			t.Errorf("with a volume of %d bytes it reserved %d: %v", total, int64(1<<55), err)
		}
	}
	must(t, w.Reserve(t.Context(), l, registry.Reservation{Volume: registry.DefaultStaging, Bytes: 1, Total: 1 << 30, Threshold: 1}))
}
