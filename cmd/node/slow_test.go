package node_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// tarpits is a server with every kind of slow source.
type tarpits struct {
	*httptest.Server
	stuck sync.Map // paths that somebody waits for
	count atomic.Int64
}

func newTarpits(t *testing.T) *tarpits {
	p := &tarpits{}
	wait := func(r *http.Request) {
		if _, known := p.stuck.LoadOrStore(r.URL.Path, true); !known {
			p.count.Add(1)
		}
	}
	send := func(w http.ResponseWriter, r *http.Request, chunk []byte, every time.Duration) {
		wait(r)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(every):
			case <-r.Context().Done():
			}
		}
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := strings.Split(r.URL.Path, "/")[1]
		switch {
		case kind == "fast":
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader("what somebody else deposits: "+r.URL.Path))
		case kind == "tarpit": // which does not even answer a HEAD
			wait(r)
			<-r.Context().Done()
		case r.Method == http.MethodHead: // which tells neither size nor state
			w.WriteHeader(http.StatusOK)
		case kind == "drip":
			send(w, r, []byte("x"), 100*time.Millisecond)
		case kind == "endless":
			send(w, r, make([]byte, 1<<10), 10*time.Millisecond)
		}
	}))
	t.Cleanup(p.CloseClientConnections)
	t.Cleanup(p.Close)
	return p
}

// deposits submits to one service, and waits.
type deposits struct {
	*testing.T
	*client.Client
}

// newDeposits starts a service that may fetch from this machine, until the end of the test. change,
// if any, sets its options.
func newDeposits(t *testing.T, change func(*node.UpOptions)) (*node.Node, deposits) {
	t.Helper()
	o := options(t, t.TempDir())
	o.Sources.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	if change != nil {
		change(&o)
	}
	n, err := node.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	c := client.New(n.URL(), n.Token(), client.Options{})
	t.Cleanup(c.Close)
	return n, deposits{t, c}
}

func (d deposits) submit(r wire.SubmitRequest) string {
	d.Helper()
	answer, err := d.Submit(d.Context(), r, "")
	if err != nil {
		d.Fatal(err)
	}
	return answer.BatchID
}

// completes waits until a batch is completed, and returns how long that took.
func (d deposits) completes(id string, most time.Duration) time.Duration {
	d.Helper()
	begun := time.Now()
	for time.Since(begun) < most {
		b, err := d.Batch(d.Context(), id)
		if err != nil {
			d.Fatal(err)
		}
		switch b.State {
		case registry.StateCompleted:
			return time.Since(begun)
		case registry.StateFailed:
			d.Fatalf("batch %s failed: %s", id, b.Note)
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.Errorf("batch %s is not completed after %s", id, most)
	return most
}

// A collection with eight sources each that hang, drip or never end delays nobody: another
// collection's job, and its own upload, take at most ten seconds longer than on an idle service.
// Each kind is measured alone, because the first one submitted gets all slots of a collection.
func TestSlowSourcesKeepNobodyWaiting(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for slow sources")
	}
	for _, kind := range []string{"tarpit", "drip", "endless"} {
		t.Run(kind, func(t *testing.T) { slowSources(t, kind) })
	}
}

func slowSources(t *testing.T, kind string) {
	const held = 8 // slots of a worker that one collection may have
	sources := newTarpits(t)
	_, d := newDeposits(t, func(o *node.UpOptions) {
		o.Policy = func(registry.Stage) base.Worker { return base.Worker{Slots: held} }
	})
	c := d.Client
	for _, name := range []string{"slow", "other"} {
		if err := c.PutCollection(t.Context(), registry.Collection{Mnemonic: name, Profile: registry.Profile{Name: name, Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/" + name}}}); err != nil {
			t.Fatal(err)
		}
	}
	fast := func(name string) string {
		return d.submit(wire.SubmitRequest{URL: sources.URL + "/fast/" + name, Type: "file", Collection: "other"})
	}
	usual := d.completes(fast("before"), 5*time.Minute)

	for i := range 3 * held { // more than there are slots
		d.submit(wire.SubmitRequest{URL: fmt.Sprintf("%s/%s/%d", sources.URL, kind, i), Type: "file", Collection: "slow"})
	}
	for begun := time.Now(); sources.count.Load() < held; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatalf("only %d of the slow sources are waited for after a minute", sources.count.Load())
		}
	}
	most := usual + 10*time.Second
	for i := range 3 {
		if took := d.completes(fast(fmt.Sprint("beside", i)), most); took > most {
			t.Errorf("another collection's job took %s beside slow sources, and %s before", took, usual)
		}
	}
	u, err := c.SendFile(t.Context(), fileOf("own.txt", "our own"))
	if err != nil {
		t.Fatal(err)
	}
	own := d.submit(wire.SubmitRequest{UploadID: u.ID, Type: "file", Collection: "slow"})
	t.Logf("usual %s, an upload of the slow collection %s", usual, d.completes(own, most))
}
