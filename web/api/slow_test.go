package api_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
)

// dated notes the read deadline of the connection that it accepts.
type dated struct {
	net.Listener
	deadline atomic.Pointer[time.Time]
}

func (d *dated) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	return datedConn{c, d}, err
}

type datedConn struct {
	net.Conn
	in *dated
}

func (c datedConn) SetReadDeadline(t time.Time) error {
	c.in.deadline.Store(&t)
	return c.Conn.SetReadDeadline(t)
}

// asked is a Registry that calls a function before it carries out a command or adds jobs.
type asked struct {
	scope.Registry
	on func()
}

func (a asked) Command(ctx context.Context, c registry.Command) (registry.WorkItem, error) {
	a.on()
	return a.Registry.Command(ctx, c)
}

func (a asked) AddJobs(ctx context.Context, l registry.Lease, jobs []registry.NewJob) (int, error) {
	a.on()
	return a.Registry.AddJobs(ctx, l, jobs)
}

// TestSlowWorkIsNotGivenUp checks that no deadline runs on the connection while the Registry works
// on a request: the server would take it for a disconnect.
func TestSlowWorkIsNotGivenUp(t *testing.T) {
	listener, times := &dated{}, 0
	b := newBench(t, func(b *bench, o *api.Options) {
		o.Registry = asked{b.store, func() {
			times++
			if d := listener.deadline.Load(); d == nil || !d.IsZero() {
				t.Errorf("the connection has the read deadline %v while the Registry works, want none", d)
			}
		}}
	})
	server := httptest.NewUnstartedServer(b.server.Config.Handler)
	listener.Listener = server.Listener
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	_, job := b.batchOf(t, "x")
	c := client.New(server.URL, tokenText(registry.RoleAdmin), client.Options{HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	t.Cleanup(c.Close)
	_, err := c.Command(t.Context(), registry.Command{ItemID: job, Act: registry.ActCancel})
	must(t, err)
	remote := protocol.NewClient(c)
	t.Cleanup(func() { must(t, remote.Close()) })
	if _, err := remote.AddJobs(t.Context(), registry.Lease{ItemID: job, N: 1}, nil); err == nil {
		t.Error("jobs were added to a job")
	}
	if times != 2 {
		t.Errorf("the Registry was asked %d times, want 2", times)
	}
}
