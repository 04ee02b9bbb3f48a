package api

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// Whoever has no patience is told to ask again, and finds the verdict that was found meanwhile.
func TestJudgements_OutliveWhoAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newJudgements(nil)
		j, found := judged{upload: "u1", typ: registry.AutoType}, 0
		find := func(context.Context) (intake.Report, error) {
			found++
			time.Sleep(50 * time.Second)
			return intake.Report{Type: "bag"}, nil
		}
		for range 2 {
			_, err := all.ask(t.Context(), j, 20*time.Second, find)
			var p *wire.Problem
			if !errors.As(err, &p) || p.Code != wire.CodeJudging || p.Status != http.StatusServiceUnavailable || !errors.Is(err, registry.ErrUnavailable) {
				t.Fatalf("%v, want to be told to ask again", err)
			}
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := all.ask(gone, j, 20*time.Second, find); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want the end of who asked", err)
		}
		time.Sleep(10 * time.Second)
		if v, err := all.ask(t.Context(), j, 20*time.Second, find); err != nil || v.Type != "bag" || found != 1 {
			t.Fatalf("%+v, %v after %d findings, want the verdict of one", v, err, found)
		}
		// Who refuses is told once and forgotten; of another type it is another verdict, and what nobody fetches is forgotten, too.
		if len(all.of) != 0 {
			t.Error("a refusal that was told is kept")
		}
		other := judged{upload: "u1", typ: registry.FileType}
		_, _ = all.ask(t.Context(), other, time.Second, find)
		time.Sleep(2 * judgeKeep)
		accepted := func(context.Context) (intake.Report, error) { found++; return intake.Report{Accepted: true}, nil }
		for range 3 {
			if v, err := all.ask(t.Context(), j, time.Minute, accepted); err != nil || !v.Accepted || len(all.of) != 1 || found != 3 {
				t.Errorf("%+v, %v, %d kept, %d found, want the one that accepts kept", v, err, len(all.of), found)
			}
		}
	})
}

// A server that stops ends what it judges: it is the system's fault, and may be asked for again.
func TestJudgements_EndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		all := newJudgements(stop)
		find := func(ctx context.Context) (intake.Report, error) {
			<-ctx.Done()
			return intake.Report{}, ctx.Err()
		}
		errs := make(chan error, 2)
		for _, id := range []string{"one", "another"} {
			go func() {
				_, err := all.ask(t.Context(), judged{upload: id, typ: registry.AutoType}, time.Hour, find)
				errs <- err
			}()
		}
		synctest.Wait()
		close(stop)
		for range 2 {
			if err := <-errs; !errors.Is(err, registry.ErrUnavailable) {
				t.Errorf("%v, want that the service is stopping", err)
			}
		}
	})
}
