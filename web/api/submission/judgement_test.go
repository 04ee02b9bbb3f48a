package submission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// TestJudgements_OutliveWhoAsks checks that an impatient caller is asked to repeat the request, and
// then gets the verdict.
func TestJudgements_OutliveWhoAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newJudgements(nil, slog.New(slog.DiscardHandler))
		j, found := judged{upload: "u1", typ: registry.AutoType}, 0
		find := func(context.Context) (intake.Report, error) {
			found++
			time.Sleep(50 * time.Second)
			return intake.Report{Type: "bag"}, nil
		}
		for range 2 {
			_, err := all.ask(t.Context(), "me", j, 20*time.Second, find)
			var p *wire.Problem
			if !errors.As(err, &p) || p.Code != wire.CodeJudging || p.Status != http.StatusServiceUnavailable || !errors.Is(err, registry.ErrUnavailable) {
				t.Fatalf("%v, want to be told to ask again", err)
			}
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := all.ask(gone, "me", j, 20*time.Second, find); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want the end of who asked", err)
		}
		time.Sleep(10 * time.Second)
		if v, err := all.ask(t.Context(), "me", j, 20*time.Second, find); err != nil || v.Type != "bag" || found != 1 {
			t.Fatalf("%+v, %v after %d findings, want the verdict of one", v, err, found)
		}
		// Who refuses is told once and forgotten; of another type it is another verdict, and what
		// nobody fetches is forgotten, too.
		if len(all.of) != 0 {
			t.Error("a refusal that was told is kept")
		}
		other := judged{upload: "u1", typ: registry.FileType}
		_, _ = all.ask(t.Context(), "me", other, time.Second, find)
		time.Sleep(2 * judgeKeep)
		accepted := func(context.Context) (intake.Report, error) { found++; return intake.Report{Accepted: true}, nil }
		for range 3 {
			if v, err := all.ask(t.Context(), "me", j, time.Minute, accepted); err != nil || !v.Accepted || len(all.of) != 1 || found != 3 {
				t.Errorf("%+v, %v, %d kept, %d found, want the one that accepts kept", v, err, len(all.of), found)
			}
		}
	})
}

// TestJudgements_ErrorsPass checks that an error is kept for the next request, but only for a short
// time.
func TestJudgements_ErrorsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newJudgements(nil, slog.New(slog.DiscardHandler))
		down := errors.New("the disk is away")
		fails := func(context.Context) (intake.Report, error) {
			time.Sleep(2 * time.Second)
			return intake.Report{}, down
		}
		works := func(context.Context) (intake.Report, error) { return intake.Report{Type: "file"}, nil }
		for _, tt := range []struct {
			id    string
			after time.Duration
			want  error
		}{{"soon", 30 * time.Second, down}, {"later", 2 * time.Minute, nil}} {
			j := judged{upload: tt.id}
			_, _ = all.ask(t.Context(), "me", j, time.Second, fails) // it does not wait for the end
			time.Sleep(tt.after)
			if _, err := all.ask(t.Context(), "me", j, time.Minute, works); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.id, err, tt.want)
			}
		}
	})
}

// TestJudgements_EndWithTheServer checks that judgements end with the server, as a system fault
// that can be retried.
func TestJudgements_EndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		all := newJudgements(stop, slog.New(slog.DiscardHandler))
		find := func(ctx context.Context) (intake.Report, error) {
			<-ctx.Done()
			return intake.Report{}, ctx.Err()
		}
		errs := make(chan error, 2)
		for _, id := range []string{"one", "another"} {
			go func() {
				_, err := all.ask(t.Context(), "me", judged{upload: id, typ: registry.AutoType}, time.Hour, find)
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

// TestJudgements_Panic checks that a panic is an error of one upload only, with its stack in the
// log.
func TestJudgements_Panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		all := newJudgements(nil, slog.New(slog.NewTextHandler(&log, nil)))
		_, err := all.ask(t.Context(), "me", judged{upload: "u1"}, time.Minute, func(context.Context) (intake.Report, error) {
			none := []int{}
			none[log.Len()] = 1
			return intake.Report{}, nil
		})
		told := endpoint.New(endpoint.Options{Log: slog.New(slog.DiscardHandler)})
		if p := told.Problem(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody), err); err == nil || p.Status != http.StatusInternalServerError {
			t.Errorf("%v, want what is answered with 500", err)
		}
		for _, want := range []string{"upload=u1", "out of range", "judgement_test.go"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, log.String())
			}
		}
		if v, err := all.ask(t.Context(), "me", judged{upload: "u1"}, time.Minute, func(context.Context) (intake.Report, error) {
			return intake.Report{Accepted: true}, nil
		}); err != nil || !v.Accepted {
			t.Errorf("asked again: %+v, %v", v, err)
		}
	})
}

// TestJudgements_KeepFew checks that kept verdicts are bounded in number and bytes, per token and
// in all, and expire by themselves.
func TestJudgements_KeepFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newJudgements(nil, slog.New(slog.DiscardHandler))
		ask := func(token string, upload, warnings int) {
			t.Helper()
			_, err := all.ask(t.Context(), token, judged{upload: fmt.Sprint(token, upload)}, time.Minute, func(context.Context) (intake.Report, error) {
				v := intake.Report{Accepted: true}
				for range warnings {
					v.Faults = append(v.Faults, intake.Fault{Severity: intake.Warning, File: strings.Repeat("x", 1000)})
				}
				return v, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		want := func(kept int, oldest string) {
			t.Helper()
			synctest.Wait()
			all.mu.Lock()
			defer all.mu.Unlock()
			if len(all.of) != kept || len(all.kept) != kept || kept > 0 && all.kept[0].of.upload != oldest {
				t.Errorf("%d kept, %d in order, want %d from %s on", len(all.of), len(all.kept), kept, oldest)
			}
		}
		ask("other", 0, 0)
		for i := range judgeKeepOfToken + 10 {
			ask("many", i, 0)
		}
		want(judgeKeepOfToken+1, "other0")
		for i := range 20 {
			ask("large", i, 1000) // 1.2 MiB each
		}
		want(judgeKeepOfToken+1+6, "other0")
		for i := range 100 {
			ask(fmt.Sprint("token", i), i, 1000)
		}
		synctest.Wait()
		total := 0
		all.mu.Lock()
		for _, one := range all.kept {
			total += one.size
		}
		if total > judgeBytesOfAll || total < judgeBytesOfAll*9/10 || len(all.of) != len(all.kept) {
			t.Errorf("%d bytes kept in %d verdicts, want nearly %d", total, len(all.kept), judgeBytesOfAll)
		}
		all.mu.Unlock()
		time.Sleep(judgeKeep + time.Second)
		want(0, "")
	})
}
