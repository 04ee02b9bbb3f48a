package schedule_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/periodic/schedule"
	"github.com/holdfast/holdfast/registry"
)

// firing is a Registry that answers rounds one after the other.
type firing struct {
	rounds  int
	answers []any // a registry.Firing or an error
}

func (f *firing) FireSchedules(context.Context) ([]registry.Firing, error) {
	f.rounds++
	if len(f.answers) == 0 {
		return nil, nil
	}
	answer := f.answers[0]
	f.answers = f.answers[1:]
	if err, ok := answer.(error); ok {
		return nil, err
	}
	return []registry.Firing{answer.(registry.Firing)}, nil
}

// TestTimer: a round each second, whatever its outcome, and a log line for what people must know.
func TestTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("no database")
		f := &firing{answers: []any{
			registry.Firing{Schedule: "a", Outcome: registry.FiringSubmitted, ItemID: "i1"},
			down, down,
			registry.Firing{Schedule: "b", Outcome: registry.FiringFailed, Reason: "unknown function"},
			registry.Firing{Schedule: "c", Outcome: registry.FiringSkipped, Reason: "item i1"},
		}}
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			(&schedule.Timer{Registry: f, Log: slog.New(slog.NewTextHandler(&log, nil))}).Run(ctx)
			close(ended)
		}()
		time.Sleep(8*schedule.Every + schedule.Every/2)
		cancel()
		<-ended
		if f.rounds != 9 {
			t.Errorf("%d rounds", f.rounds)
		}
		for text, want := range map[string]int{"level=ERROR": 1, "unknown function": 1, "level=WARN": 2, "item=i1": 1, "fire again": 1} {
			if got := strings.Count(log.String(), text); got != want {
				t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, &log)
			}
		}
	})
}
