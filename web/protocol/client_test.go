package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// faulty is a store that answers reads of items and claims with an error.
type faulty struct {
	scope.Registry
	err error
}

func (f *faulty) Item(context.Context, string) (registry.WorkItem, error) {
	return registry.WorkItem{}, fmt.Errorf("read item: %w", f.err)
}

func (f *faulty) Claim(context.Context, registry.ClaimRequest) (registry.Claim, error) {
	return registry.Claim{}, fmt.Errorf("claim: %w", f.err)
}

// as returns the error of type T in err.
func as[T error](err error) error {
	var e T
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// TestStore_ErrorsCrossTheWire checks that every error of the contract arrives unchanged.
func TestStore_ErrorsCrossTheWire(t *testing.T) {
	f := &faulty{Registry: sqlite(t, time.Now)}
	remote := serve(t, f, time.Now)
	since := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	for _, c := range []struct {
		err error
		as  func(error) error // nil: a sentinel
	}{
		{registry.ErrNotFound, nil},
		{registry.ErrClaimLost, nil},
		{registry.ErrIdempotencyConflict, nil},
		{registry.ErrTaken, nil},
		{registry.ErrWorkerTaken, nil},
		{registry.ErrIntentOpen, nil},
		{registry.ErrJobsOpen, nil},
		{registry.ErrInvalid, nil},
		{registry.ErrSealed, nil},
		{registry.ErrEmptyQuery, nil},
		{registry.ErrUnavailable, nil},
		{&registry.QueryError{Position: 3, Word: "x", Problem: "it is no field", Known: []string{"state"}}, as[*registry.QueryError]},
		{context.DeadlineExceeded, nil},
		{&registry.VersionError{Mnemonic: "maps", Want: 3, Have: 4}, as[*registry.VersionError]},
		{&registry.NotClaimable{ItemID: "i", Reason: registry.ReasonNotDue, After: 90 * time.Second}, as[*registry.NotClaimable]},
		{&registry.LockedError{Key: "ark:/1/2", ItemID: "i"}, as[*registry.LockedError]},
		{&registry.IdentifierMismatch{LocalID: "é \" <", Known: "ark:/1/2", Given: "ark:/1/3"}, as[*registry.IdentifierMismatch]},
		{&registry.OwnerMismatch{ARK: "ark:/1/2", Owner: "ark:/1/o"}, as[*registry.OwnerMismatch]},
		{&registry.NoObject{LocalID: "é \" <"}, as[*registry.NoObject]},
		{&registry.NoSpaceError{Volume: "v", Need: 1 << 60, Used: 2, Total: 3, Reserved: 4, ThresholdFactor: 0.7}, as[*registry.NoSpaceError]},
		{&registry.TransitionError{ItemID: "i", Act: registry.ActCancel, From: registry.StateFailed, To: registry.StateCancelled, Allowed: []registry.Act{registry.ActRequeue, registry.ActAbort}}, as[*registry.TransitionError]},
		{&registry.TransitionError{ItemID: "i", From: registry.StateCompleted, To: registry.StatePending}, as[*registry.TransitionError]},
		{&registry.ConfirmationNeeded{ItemID: "i", Act: registry.ActDelete, Consequences: []string{"a mail is not sent", "a folder goes"}, Entails: []registry.Statement{{Says: registry.SaysStagingGoes, Bytes: 5}, {Says: registry.SaysStepsSkipped}}, AgreesTo: "ann at noon"}, as[*registry.ConfirmationNeeded]},
		{&registry.PastNoReturn{ItemID: "i", Act: registry.ActAbort, ObjectID: "ark:/1/2", Version: 3}, as[*registry.PastNoReturn]},
		{&registry.NotAccepting{Accepting: registry.Accepting{Reason: "upgrade", Actor: "admin", Since: since}}, as[*registry.NotAccepting]},
		{&registry.GraphError{Key: "a", Problem: "it is used twice"}, as[*registry.GraphError]},
		{&registry.CycleError{Items: []string{"a", "b"}}, as[*registry.CycleError]},
	} {
		t.Run(fmt.Sprintf("%T %v", c.err, c.err), func(t *testing.T) {
			f.err = c.err
			_, read := remote.Item(t.Context(), "x")
			_, claimed := remote.Claim(t.Context(), registry.ClaimRequest{RequestID: "r"})
			for _, got := range []error{read, claimed} {
				switch {
				case got == nil:
					t.Fatal("no error")
				case c.as == nil && !errors.Is(got, c.err):
					t.Errorf("error %v, want %v", got, c.err)
				case c.as != nil:
					if diff := cmp.Diff(c.err, c.as(got)); diff != "" {
						t.Errorf("error %v (-want +got):\n%s", got, diff)
					}
				}
				text := c.err.Error()
				var g *registry.GraphError
				if errors.As(c.err, &g) {
					text = g.Problem // the API names the node as it does all faults of a request
				}
				if !strings.Contains(got.Error(), text) {
					t.Errorf("text %q, want the server's %q", got, c.err)
				}
				var fault interface{ ContentFault() bool }
				_, content := c.err.(interface{ ContentFault() bool })
				if errors.As(got, &fault) != content {
					t.Errorf("content fault of %v: %v, want %v", got, !content, content)
				}
			}
		})
	}
}

// TestStore_OtherErrorsAreNoneOfTheContract checks that other errors are unavailability, to be
// retried.
func TestStore_OtherErrorsAreNoneOfTheContract(t *testing.T) {
	f := &faulty{Registry: sqlite(t, time.Now), err: errors.New("disk I/O error")}
	_, err := serve(t, f, time.Now).Item(t.Context(), "x")
	later := asking(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":503,"code":"unavailable","cause":{"kind":"of a newer version","fields":{}}}`)
	}, client.Options{})
	gone := protocol.NewClient(client.New("http://127.0.0.1:1", "tok", client.Options{}))
	t.Cleanup(func() { must(t, gone.Close()) })
	unavailable := protocol.NewClient(later)
	t.Cleanup(func() { must(t, unavailable.Close()) })
	_, refused := gone.Claim(t.Context(), registry.ClaimRequest{RequestID: "r"})
	_, busy := unavailable.Claim(t.Context(), registry.ClaimRequest{RequestID: "r"})
	between := asking(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, client.Options{})
	proxied := protocol.NewClient(between)
	t.Cleanup(func() { must(t, proxied.Close()) })
	_, hidden := proxied.Item(t.Context(), "x")
	unanswered := map[string]error{"no connection": refused, "a busy server": busy, "a proxy without it": hidden}
	for name, text := range map[string]string{"a page": "<html>", "no list": `{}`, "too few answers": `[]`, "too many answers": `[{"done":true},{"done":true}]`, "half a list": `[{"done":true}`} {
		s := protocol.NewClient(asking(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }, client.Options{}))
		t.Cleanup(func() { must(t, s.Close()) })
		_, unanswered[name] = s.Claim(t.Context(), registry.ClaimRequest{RequestID: "r"})
	}
	for name, e := range unanswered {
		if !errors.Is(e, registry.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable, which is charged to nobody", name, e)
		}
	}
	if errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("a server that answers, and fails: %v, want no ErrUnavailable", err)
	}
	for _, e := range []error{err, refused, busy, hidden} {
		if e == nil {
			t.Fatal("no error")
		}
		for _, is := range []error{registry.ErrNotFound, registry.ErrClaimLost, registry.ErrInvalid} {
			if errors.Is(e, is) || as[*registry.NotClaimable](e) != nil || as[*registry.TransitionError](e) != nil {
				t.Errorf("error %v is an answer of the contract", e)
			}
		}
	}
	var unreached *client.ConnectError
	if !errors.As(refused, &unreached) {
		t.Errorf("error %v, want a ConnectError", refused)
	}
	if !errors.Is(busy, context.DeadlineExceeded) {
		t.Errorf("error %v, want one that says later", busy)
	}
}

// gate is a server whose claims wait until it is opened, and which counts.
type gate struct {
	requests, claims atomic.Int64
	arrived          chan int // how many claims a request brings
	open             chan struct{}
}

func newGate() *gate { return &gate{arrived: make(chan int, 1000), open: make(chan struct{})} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in []struct{ In registry.ClaimRequest }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	g.requests.Add(1)
	g.claims.Add(int64(len(in)))
	g.arrived <- len(in)
	select {
	case <-g.open:
	case <-r.Context().Done():
		return
	}
	var out []map[string]any
	for _, c := range in {
		out = append(out, map[string]any{"done": true, "value": registry.Claim{Lease: registry.Lease{ItemID: c.In.RequestID, N: 1}}})
	}
	_ = json.NewEncoder(w).Encode(out)
}

// store returns a Store that asks g.
func (g *gate) store(t *testing.T) *protocol.Client {
	t.Helper()
	s := protocol.NewClient(asking(t, g.ServeHTTP, client.Options{}))
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// TestStore_ClaimsTravelTogether checks that concurrent claims share requests of at most 100, and
// that each gets its own answer.
func TestStore_ClaimsTravelTogether(t *testing.T) {
	g := newGate()
	s := g.store(t)
	var all sync.WaitGroup
	claim := func(id string) {
		all.Go(func() {
			c, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: id})
			if err != nil || c.Lease.ItemID != id {
				t.Errorf("claim %s got %+v, %v", id, c.Lease, err)
			}
		})
	}
	claim("first")
	<-g.arrived // now it is under way
	for i := range 250 {
		claim(fmt.Sprint("r", i))
	}
	close(g.open)
	all.Wait()
	if g.claims.Load() != 251 {
		t.Errorf("%d claims arrived, want each once", g.claims.Load())
	}
	if n := g.requests.Load(); n > 100 {
		t.Errorf("%d requests for 251 claims", n)
	}
	close(g.arrived)
	for n := range g.arrived {
		if n > 100 {
			t.Errorf("%d claims in one request", n)
		}
	}
}

// TestStore_WhoGivesUpBreaksNobody checks that a caller that gives up does not affect others,
// whether its call waits or is under way.
func TestStore_WhoGivesUpBreaksNobody(t *testing.T) {
	g := newGate()
	s := g.store(t)
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan error, 2)
	claim := func(ctx context.Context, id string) {
		_, err := s.Claim(ctx, registry.ClaimRequest{RequestID: id})
		answers <- err
	}
	go claim(t.Context(), "first")
	<-g.arrived
	gone := make(chan error, 1)
	go func() {
		_, err := s.Claim(ctx, registry.ClaimRequest{RequestID: "gone"})
		gone <- err
	}()
	go claim(t.Context(), "second")
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of who gave up", err)
	}
	close(g.open)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("another's claim: %v", err)
		}
	}
}

// TestStore_RequestThatNobodyWaitsForEnds checks that a request without callers is cancelled, and
// that the next call does not wait for it.
func TestStore_RequestThatNobodyWaitsForEnds(t *testing.T) {
	g := newGate()
	s := g.store(t)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.Claim(ctx, registry.ClaimRequest{RequestID: "gone"})
		gone <- err
	}()
	<-g.arrived
	cancel()
	<-gone
	next := make(chan error, 1)
	go func() {
		_, err := s.Claim(t.Context(), registry.ClaimRequest{RequestID: "next"})
		next <- err
	}()
	<-g.arrived // although the gate is still closed
	close(g.open)
	if err := <-next; err != nil {
		t.Errorf("the next claim: %v", err)
	}
}

// TestStore_EachHasItsOwnVerdict checks that a faulty claim fails alone.
func TestStore_EachHasItsOwnVerdict(t *testing.T) {
	local := sqlite(t, time.Now)
	must(t, local.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
	ids := map[string]bool{}
	for range 32 {
		r, err := local.Submit(t.Context(), registry.Submission{Collection: "c", Spec: registry.Spec{URL: "http://h/a"}, Actor: "a"})
		must(t, err)
		ids[r.BatchID] = true
	}
	requests := new(atomic.Int64)
	remote := counted(t, local, requests)
	var all sync.WaitGroup
	var mu sync.Mutex
	got, refused, invalid := map[string]int{}, 0, 0
	for i := range 64 {
		r := registry.ClaimRequest{RequestID: fmt.Sprint("r", i), Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5}
		if i%16 == 0 {
			r.RequestID = "" // it could not be told from another one
		}
		all.Go(func() {
			c, err := remote.Claim(t.Context(), r)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				got[c.Item.ID]++
			case as[*registry.NotClaimable](err) != nil:
				refused++
			case errors.Is(err, registry.ErrInvalid):
				invalid++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(got) != 32 || refused != 28 || invalid != 4 {
		t.Errorf("%d claimed, %d refused, %d invalid; want 32, 28 and 4", len(got), refused, invalid)
	}
	for id, n := range got {
		if n != 1 || !ids[id] {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if n := requests.Load(); n > 16 {
		t.Errorf("64 claims at once took %d requests", n)
	} else {
		t.Logf("64 claims at once took %d requests", n)
	}
}

// counted serves a store, and counts the requests with calls.
func counted(t testing.TB, store scope.Registry, requests *atomic.Int64) *protocol.Client {
	t.Helper()
	return serveBy(t, store, time.Now, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/calls") {
				requests.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
}

// panicky panics at a claim.
type panicky struct{ scope.Registry }

func (panicky) Claim(context.Context, registry.ClaimRequest) (registry.Claim, error) {
	panic("a fault of ours")
}

// TestStore_PanicIsAnError checks that a panic in one call ends neither the process nor the
// request.
func TestStore_PanicIsAnError(t *testing.T) {
	remote := serve(t, panicky{sqlite(t, time.Now)}, time.Now)
	_, err := remote.Claim(t.Context(), registry.ClaimRequest{RequestID: "r"})
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != http.StatusInternalServerError {
		t.Errorf("error %v, want a problem", err)
	}
	must(t, remote.Ping(t.Context()))
	if holds, err := remote.Holds(t.Context()); err != nil || len(holds) != 0 {
		t.Errorf("holds %v, %v", holds, err)
	}
}

// TestStore_LargeCalls checks that the largest allowed calls pass, and that larger ones, or those
// of other callers, are refused.
func TestStore_LargeCalls(t *testing.T) {
	local := sqlite(t, time.Now)
	must(t, local.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
	r, err := local.Submit(t.Context(), registry.Submission{Collection: "c", Spec: registry.Spec{URL: "http://h/a"}, Actor: "a"})
	must(t, err)
	remote := serve(t, local, time.Now)
	c, err := remote.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5})
	must(t, err)
	jobs := make([]registry.NewJob, 500)
	for i := range jobs {
		jobs[i] = registry.NewJob{Line: int64(i + 1), Name: "n", Spec: registry.Spec{URL: "http://h/" + strings.Repeat("x", 8<<10)}}
	}
	n, err := remote.AddJobs(t.Context(), c.Lease, jobs)
	if err != nil || n != 500 {
		t.Fatalf("%d jobs were added: %v", n, err)
	}
	page, err := local.Items(t.Context(), registry.ItemQuery{ParentID: r.BatchID, Limit: 500})
	if must(t, err); len(page.Rows) != 500 {
		t.Errorf("%d jobs are there, want 500", len(page.Rows))
	}
	if _, err := remote.AddJobs(t.Context(), c.Lease, make([]registry.NewJob, 501)); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("501 jobs: %v, want ErrInvalid", err)
	}
	jobs[0].Name = strings.Repeat("x", 17<<20)
	_, err = remote.AddJobs(t.Context(), c.Lease, jobs)
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != wire.CodeTooLarge {
		t.Errorf("17 MiB: %v, want too-large", err)
	}
}

// waiting is a store that has news when it is told.
type waiting struct {
	scope.Registry
	news chan int64
}

func (w *waiting) Withdrawn(ctx context.Context, q registry.WithdrawnQuery) ([]registry.Lease, int64, error) {
	select {
	case n := <-w.news:
		return []registry.Lease{{ItemID: q.Worker, N: n}}, q.After + n, nil
	case <-ctx.Done():
		return nil, q.After, nil
	}
}

// TestStore_Waits checks that waits outlast a request, get news at once, and end with their
// context.
func TestStore_Waits(t *testing.T) {
	w := &waiting{Registry: sqlite(t, time.Now), news: make(chan int64)}
	polls := new(atomic.Int64)
	again := make(chan struct{}, 1000)
	server := serverOf(t, w, time.Now, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			polls.Add(1)
			again <- struct{}{}
			next.ServeHTTP(rw, r)
		})
	})
	remote := protocol.NewClient(client.New(server.URL, adminToken, client.Options{Timeout: 200 * time.Millisecond}))
	t.Cleanup(func() { must(t, remote.Close()) })
	type heard struct {
		taken []registry.Lease
		next  int64
		err   error
	}
	answers := make(chan heard, 1)
	await := func(ctx context.Context) {
		taken, next, err := remote.Withdrawn(ctx, registry.WithdrawnQuery{Worker: "w", After: 7})
		answers <- heard{taken, next, err}
	}
	go await(t.Context())
	for range 3 {
		<-again // a poll ended without news, and another began
	}
	w.news <- 5
	got := <-answers
	if got.err != nil || got.next != 12 || len(got.taken) != 1 || got.taken[0] != (registry.Lease{ItemID: "w", N: 5}) {
		t.Errorf("heard %+v, want attempt 5, and 12 to go on with", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go await(ctx)
	cancel()
	if got := <-answers; got.err != nil || len(got.taken) > 0 {
		t.Errorf("after the end of the context: %+v, want nothing and no error", got)
	}
}

// TestStore_Roles checks that only workers and admins may use the protocol.
func TestStore_Roles(t *testing.T) {
	local := sqlite(t, time.Now)
	server := serverOf(t, local, time.Now, nil)
	for _, role := range registry.Roles() {
		hash := registry.Token{ID: "as-" + string(role), Hash: hashOf("secret-" + string(role)), Name: "the " + string(role), Role: role}
		must(t, local.AddToken(t.Context(), hash))
		s := protocol.NewClient(client.New(server.URL, "secret-"+string(role), client.Options{}))
		t.Cleanup(func() { must(t, s.Close()) })
		forbidden := func(err error) bool {
			var p *client.Problem
			return errors.As(err, &p) && p.Status == http.StatusForbidden
		}
		works := role == registry.RoleWorker || role == registry.RoleAdmin
		_, claim := s.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Expand})
		_, item := s.Item(t.Context(), "x")
		for _, err := range []error{claim, item} {
			if forbidden(err) == works {
				t.Errorf("%s works: %v", role, err)
			}
		}
	}
}

// TestStore_Close checks that nothing is sent after Close, and that Close can be repeated.
func TestStore_Close(t *testing.T) {
	requests := new(atomic.Int64)
	c := asking(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) }, client.Options{})
	s := protocol.NewClient(c)
	must(t, s.Close())
	must(t, s.Close())
	_, claim := s.Claim(t.Context(), registry.ClaimRequest{RequestID: "r"})
	_, item := s.Item(t.Context(), "x")
	_, result := s.SaveResult(t.Context(), registry.Lease{ItemID: "i", N: 1}, "n", json.RawMessage("1"))
	for _, err := range []error{claim, item, result, s.Ping(t.Context())} {
		if !errors.Is(err, protocol.ErrClosed) {
			t.Errorf("error %v, want ErrClosed", err)
		}
	}
	if requests.Load() > 0 {
		t.Errorf("%d requests after Close", requests.Load())
	}
}

// BenchmarkClaim measures the latency of sequential and of concurrent claims, in process and over
// HTTP.
func BenchmarkClaim(b *testing.B) {
	for _, where := range []string{"in process", "http"} {
		for _, claimers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d at once", where, claimers), func(b *testing.B) {
				requests := new(atomic.Int64)
				store := benchStore(b)
				must(b, store.PutCollection(b.Context(), registry.Collection{Mnemonic: "c"}, "admin"))
				for i := range b.N {
					_, err := store.Submit(b.Context(), registry.Submission{Collection: "c", Spec: registry.Spec{URL: fmt.Sprint("http://h/", i)}, Actor: "a"})
					must(b, err)
				}
				asked := registry.Working(store)
				if where == "http" {
					asked = counted(b, store, requests)
				}
				var next atomic.Int64
				b.ResetTimer()
				var all sync.WaitGroup
				for range claimers {
					all.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							_, err := asked.Claim(b.Context(), registry.ClaimRequest{
								RequestID: fmt.Sprint(i), Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5,
							})
							if err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(requests.Load())/float64(b.N), "requests/claim")
			})
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asking returns a client of a server that answers as handle does.
func asking(t *testing.T, handle http.HandlerFunc, o client.Options) *client.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c := client.New(server.URL, "tok", o)
	t.Cleanup(c.Close)
	return c
}
