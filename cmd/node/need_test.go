package node_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
)

// nsqd is a broker with its own limits.
func nsqd(t *testing.T, o broker.Options) string {
	t.Helper()
	b, err := broker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return b.Addr()
}

// A worker's start reports an nsqd that allows too little, without waiting, together with all other
// faults. One usable nsqd of several suffices.
func TestWorker_NSQ(t *testing.T) {
	good := nsqd(t, broker.Options{})
	for _, tt := range []struct {
		name  string
		addrs []string
		down  bool   // it may pass
		says  string // "" nothing of NSQ
	}{
		{"good", []string{good}, false, ""},
		{"one of two", []string{"127.0.0.1:1", good}, false, ""},
		{"none", []string{"127.0.0.1:1", "127.0.0.1:2"}, true, "127.0.0.1:2: connect: connection refused"},
		{"messages are taken back too soon", []string{nsqd(t, broker.Options{MsgTimeout: time.Second, MaxMsgTimeout: 30 * time.Second}), good}, false, "--max-msg-timeout=30s; start it with 1m0s at least"},
		{"no secret", []string{nsqd(t, broker.Options{AuthSecret: "a secret of the test"})}, false, "requires a secret"},
		{"too few at once", []string{nsqd(t, broker.Options{MaxRdyCount: 6})}, false, "--max-rdy-count=6; start it with 9 at least"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, t.TempDir())
			o.Policy = func(s registry.Stage) base.Worker {
				if s == registry.Download {
					return base.Worker{Slots: 7} // and two spare ones
				}
				return base.Worker{Slots: 4}
			}
			_, err := node.Worker(t.Context(), node.WorkerOptions{
				Common: node.Common{Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}, Work: o.Work,
				Places:   node.Places{Staging: "file://" + o.Dir, Storages: []node.Storage{{Name: registry.DefaultStorage, Address: "file://" + o.Dir + "/nowhere"}}},
				NSQ:      node.NSQ{Addrs: tt.addrs},
				Stages:   []registry.Stage{registry.Download, registry.Record},
				Registry: "http://127.0.0.1:1", Token: "t",
			})
			if err == nil {
				t.Fatal("it started")
			}
			found := map[string]*node.NeedError{}
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				collect(e, found)
			}
			for setting, down := range map[string]bool{"HOLDFAST_URL": true, "HOLDFAST_STORAGE_URL": false} {
				if e := found[setting]; e == nil || e.Down != down || e.Fix == "" {
					t.Errorf("%s: %+v, want down=%t and what to do", setting, e, down)
				}
			}
			if e := found["HOLDFAST_STAGING_URL"]; e != nil {
				t.Errorf("staging, which is there: %v", e)
			}
			switch e := found["HOLDFAST_NSQD_ADDR"]; {
			case tt.says == "" && e != nil:
				t.Errorf("NSQ: %v", e)
			case tt.says != "" && (e == nil || e.Down != tt.down || !strings.Contains(e.Error(), tt.says)):
				t.Errorf("NSQ: %v, want %q, down=%t", e, tt.says, tt.down)
			}
		})
	}
}

// collect returns the unmet needs in joined errors, by setting.
func collect(err error, found map[string]*node.NeedError) {
	var e *node.NeedError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			collect(err, found)
		}
	} else if errors.As(err, &e) {
		found[e.Setting] = e
	}
}
