package fixityschedule_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/periodic/fixityschedule"
	"github.com/holdfast/holdfast/registry"
)

// due is a Registry that answers looks one after the other.
type due struct {
	registry.Rechecking
	asked   []registry.RecheckRequest
	at      []time.Time
	answers []any // a registry.Rechecked or an error
}

func (d *due) Recheck(_ context.Context, r registry.RecheckRequest) (registry.Rechecked, error) {
	d.asked, d.at = append(d.asked, r), append(d.at, time.Now())
	if len(d.answers) == 0 {
		return registry.Rechecked{}, nil
	}
	answer := d.answers[0]
	d.answers = d.answers[1:]
	if err, ok := answer.(error); ok {
		return registry.Rechecked{}, err
	}
	return answer.(registry.Rechecked), nil
}

// TestScheduler checks that rounds run at intervals, whatever their outcome, and that each change
// is logged once.
func TestScheduler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("no database")
		d := &due{answers: []any{
			registry.Rechecked{Queued: 3}, down, down, registry.Rechecked{Damaged: 2}, registry.Rechecked{Damaged: 2}, registry.Rechecked{Damaged: 3}, registry.Rechecked{},
		}}
		var log bytes.Buffer
		c := fixityschedule.New(d, 90*24*time.Hour, slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { c.Run(ctx); close(ended) }()
		time.Sleep(8*c.Every + c.Every/2)
		cancel()
		<-ended
		if len(d.asked) != 9 || !d.at[1].Equal(d.at[0].Add(c.Every)) {
			t.Errorf("looked %d times, %v", len(d.asked), d.at)
		}
		if got := d.asked[0]; got.Every != 90*24*time.Hour || got.Outstanding < 1 || got.Keep <= 0 || slices.ContainsFunc(d.asked, func(r registry.RecheckRequest) bool { return r != got }) {
			t.Errorf("asked %+v", d.asked)
		}
		for text, want := range map[string]int{
			"level=ERROR": 2, "files=2 before=0": 1, "files=3 before=2": 1, "level=WARN": 1, "queued again": 1, "damaged any more": 1,
		} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, &log)
			}
		}
	})
}
