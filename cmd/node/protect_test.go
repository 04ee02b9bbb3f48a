package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast/holdfast/base"
)

// agent is the agent of ECS. It notes when it was asked for what, in whole seconds.
type agent struct {
	start  time.Time
	fails  bool
	wanted []string
}

func (a *agent) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.wanted = append(a.wanted, fmt.Sprintf("%d %s %s %s", int(time.Since(a.start).Seconds()), r.Method, r.URL, body))
	answer := fmt.Sprintf(`{"protection":{"ProtectionEnabled":%t}}`, strings.Contains(string(body), "true"))
	if a.fails {
		answer = `{"failure":{"Reason":"TASK_NOT_VALID"}}` // with status 200
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

const (
	putState  = " PUT http://agent/task-protection/v1/state "
	protectOn = putState + `{"ExpiresInMinutes":10,"ProtectionEnabled":true}`
	protect0  = putState + `{"ProtectionEnabled":false}`
)

// TestTaskProtection has steps run beside a fake agent. Each case says when it is asked for what.
func TestTaskProtection(t *testing.T) {
	for name, c := range map[string]struct {
		fails  bool
		work   func(p *taskProtection)
		want   []string
		logged int
	}{
		"many short steps": {work: func(p *taskProtection) {
			for range 100 {
				ended := p.step()
				time.Sleep(time.Second)
				ended()
				time.Sleep(time.Second)
			}
			time.Sleep(time.Hour)
		}, want: []string{"0" + protectOn, "214" + protect0}},
		"a long step is renewed": {work: func(p *taskProtection) {
			defer p.step()()
			time.Sleep(11 * time.Minute)
		}, want: []string{"0" + protectOn, "300" + protectOn, "600" + protectOn}},
		"protection lapses": {work: func(p *taskProtection) {
			defer p.step()()
			time.Sleep(32 * time.Minute)
		}, want: []string{
			"0" + protectOn, "300" + protectOn, "600" + protectOn, "900" + protectOn, "1200" + protectOn, "1500" + protectOn,
			"1800" + protect0, "1860" + protectOn,
		}},
		"the agent fails": {fails: true, work: func(p *taskProtection) {
			defer p.step()()
			time.Sleep(70 * time.Second)
		}, want: []string{"0" + protectOn, "30" + protectOn, "60" + protectOn}, logged: 1},
		"nothing runs": {work: func(*taskProtection) { time.Sleep(time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &agent{start: time.Now(), fails: c.fails}
				var log bytes.Buffer
				p := newTaskProtection("http://agent/", &http.Client{Transport: a}, slog.New(slog.NewTextHandler(&log, nil)))
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); p.run(ctx) }()
				c.work(p)
				synctest.Wait()
				stop() // a SIGTERM wins at once, whatever runs
				<-ended
				if got := strings.Count(log.String(), "level=WARN"); got != c.logged || !slices.Equal(a.wanted, c.want) {
					t.Errorf("logged %d warnings, want %d; asked for\n%s\nwant\n%s", got, c.logged, strings.Join(a.wanted, "\n"), strings.Join(c.want, "\n"))
				}
			})
		})
	}
}

// stepOf is a worker whose steps last and end as given.
type stepOf struct {
	base.Handler
	lasts time.Duration
	err   error
}

func (s stepOf) Work(ctx context.Context, _ *base.Item) error {
	select {
	case <-time.After(s.lasts):
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TestProtecting: while the step of a worker runs, its task is protected; then no more. Whatever the
// agent answers, the step lasts as long and ends in the same way.
func TestProtecting(t *testing.T) {
	refused := errors.New("the source refused")
	for _, fails := range []bool{false, true} {
		for _, want := range []error{nil, refused} {
			t.Run(fmt.Sprintf("agent fails %t, step ends with %v", fails, want), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := &agent{start: time.Now(), fails: fails}
					p := newTaskProtection("http://agent", &http.Client{Transport: a}, slog.New(slog.DiscardHandler))
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan struct{})
					go func() { defer close(ended); p.run(ctx) }()
					err := protecting{stepOf{lasts: 6 * time.Minute, err: want}, p}.Work(t.Context(), nil)
					if took := time.Since(a.start); !errors.Is(err, want) || took != 6*time.Minute {
						t.Errorf("the step ended with %v after %v, want %v", err, took, want)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					stop()
					<-ended
					if wanted := []string{"0" + protectOn, "300" + protectOn, "375" + protect0}; !fails && !slices.Equal(a.wanted, wanted) {
						t.Errorf("asked for\n%s\nwant\n%s", strings.Join(a.wanted, "\n"), strings.Join(wanted, "\n"))
					}
				})
			})
		}
	}
}
