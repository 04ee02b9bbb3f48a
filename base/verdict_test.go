package base_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

const errorText = "text"

// opinion is an error type of another package that knows whose fault it is.
type opinion struct{ content bool }

func (o *opinion) Error() string      { return "opinion" }
func (o *opinion) ContentFault() bool { return o.content }

func TestVerdicts(t *testing.T) {
	const first = time.Minute
	plain := errors.New("time-out")
	tests := []struct {
		name string
		err  error
		want registry.Settlement // Outcome, Class, Reason, Delay (first: about a minute)
	}{
		{"nil", nil, registry.Settlement{Outcome: registry.OutcomeDone}},
		{"any other", plain, registry.Settlement{Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Delay: first}},
		{"content", base.Content(plain), registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault}},
		{"content, wrapped", fmt.Errorf("check: %w", base.Content(plain)), registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault}},
		{"content of nothing", base.Content(nil), registry.Settlement{Outcome: registry.OutcomeDone}},
		{"content because it was cancelled", base.Content(fmt.Errorf("read: %w", context.Canceled)), registry.Settlement{Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Delay: first}},
		{"content because it timed out", base.Content(context.DeadlineExceeded), registry.Settlement{Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Delay: first}},
		{"a type that says content", fmt.Errorf("unpack: %w", &opinion{content: true}), registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault}},
		{"a type that says system", &opinion{}, registry.Settlement{Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Delay: first}},
		{"system beside content", errors.Join(plain, &opinion{}, fmt.Errorf("x: %w", &opinion{content: true})), registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault}},
		{"fatal", base.Fatal(plain), registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.SystemFault}},
		{"fatal nothing", base.Fatal(nil), registry.Settlement{Outcome: registry.OutcomeDone}},
		{"back", fmt.Errorf("unpack: %w", base.Back(registry.Download, plain)), registry.Settlement{Outcome: registry.OutcomeSentBack, Class: registry.SystemFault, Back: registry.Download}},
		{"back because of nothing", base.Back(registry.Download, nil), registry.Settlement{Outcome: registry.OutcomeDone}},
		{"snooze", base.Snooze(time.Hour, registry.ReasonHeld, "wait"), registry.Settlement{Outcome: registry.OutcomeSnooze, Reason: registry.ReasonHeld, Delay: time.Hour}},
		{"locked", fmt.Errorf("identify: %w", &registry.LockedError{Key: "ark"}), registry.Settlement{Outcome: registry.OutcomeSnooze, Reason: registry.ReasonLocked, Delay: time.Minute}},
		{"no space", &registry.NoSpaceError{Volume: "v"}, registry.Settlement{Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Delay: time.Minute}},
		{"never any space", fmt.Errorf("reserve: %w", &registry.NoSpaceError{Volume: "v", Never: true}), registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Remedy: base.RoomRemedy}},
		{"an outage of the Registry", fmt.Errorf("reserve: %w", registry.ErrUnavailable), registry.Settlement{Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNotDue, Delay: 5 * time.Second}},
		{"a full disk", fmt.Errorf("write list: %w", storage.ErrNoSpace), registry.Settlement{Outcome: registry.OutcomeSnooze, Reason: registry.ReasonNoSpace, Delay: time.Minute}},
		{"a full disk beside content", errors.Join(storage.ErrNoSpace, &opinion{content: true}), registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault}},
		{"identifier mismatch", &registry.IdentifierMismatch{LocalID: "l"}, registry.Settlement{Outcome: registry.OutcomeFailed, Class: registry.ContentFault}},
		{"cancelled on its own account", context.Canceled, registry.Settlement{Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Delay: first}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := newFake()
			w := &worker{work: func(context.Context, *base.Item) error { return tt.err }}
			if _, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i"); !errors.Is(err, tt.err) {
				t.Errorf("RunOne: %v, want %v", err, tt.err)
			}
			got := fake.settled()
			if len(got) != 1 {
				t.Fatalf("settled %d times, want once", len(got))
			}
			if got[0].Outcome == registry.OutcomeRetry && (got[0].Delay < 48*time.Second || got[0].Delay > 72*time.Second) {
				t.Errorf("delay %v, want a minute, give or take a fifth", got[0].Delay)
			} else if got[0].Outcome == registry.OutcomeRetry {
				got[0].Delay = first
			}
			if diff := cmp.Diff(tt.want, got[0], cmpopts.IgnoreFields(registry.Settlement{}, "Lease", "MaxAttempts", "Error", "Code", "Host")); diff != "" {
				t.Errorf("settlement (-want +got):\n%s", diff)
			}
			if got[0].MaxAttempts != 5 || got[0].Lease != (registry.Lease{ItemID: "i", N: 1}) {
				t.Errorf("lease %+v, max attempts %d", got[0].Lease, got[0].MaxAttempts)
			}
		})
	}
}

// busy is an error type of another package whose cause asks to be left alone.
type busy time.Duration

func (b busy) Error() string             { return "busy" }
func (b busy) AsksToWait() time.Duration { return time.Duration(b) }

// TestVerdict_AsksToWait: a source that names a time is not asked again earlier than that, or than
// without it. A source that says when it will answer costs no tries.
func TestVerdict_AsksToWait(t *testing.T) {
	tests := []struct {
		name      string
		err       error
		low, high time.Duration
	}{
		{"longer than the back-off", fmt.Errorf("open: %w", busy(time.Hour)), time.Hour, 66 * time.Minute},
		{"shorter", busy(time.Second), 48 * time.Second, 72 * time.Second},
		{"none", busy(0), 48 * time.Second, 72 * time.Second},
		{"the longest of several", errors.Join(busy(time.Minute), fmt.Errorf("b: %w", errors.Join(busy(20*time.Minute), busy(time.Second)))), 20 * time.Minute, 22 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := newFake()
			w := &worker{work: func(context.Context, *base.Item) error { return tt.err }}
			if _, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i"); !errors.Is(err, tt.err) {
				t.Errorf("RunOne: %v, want %v", err, tt.err)
			}
			got := fake.settled()
			if len(got) != 1 || got[0].Outcome != registry.OutcomeRetry || got[0].Delay < tt.low || got[0].Delay > tt.high {
				t.Errorf("settlements %+v, want one retry after %v to %v", got, tt.low, tt.high)
			}
		})
	}
}

// cure is an error that knows what puts it right.
type cure string

func (c cure) Error() string  { return "broken" }
func (c cure) Remedy() string { return string(c) }

// TestVerdict_Remedy: the settlement has the first remedy of the errors. A stopping worker has
// none.
func TestVerdict_Remedy(t *testing.T) {
	tests := []struct {
		name    string
		err     error
		outcome registry.Outcome
		want    string
	}{
		{"of the error", cure("mend it"), registry.OutcomeRetry, "mend it"},
		{"of its cause", base.Fatal(fmt.Errorf("open: %w", cure("mend it"))), registry.OutcomeFailed, "mend it"},
		{"the first of several", fmt.Errorf("all: %w", errors.Join(errors.New("no idea"), cure(""), cure("b"), cure("c"))), registry.OutcomeRetry, "b"},
		{"of what is waited for", base.Await(time.Minute, registry.ReasonNotDue, cure("start it")), registry.OutcomeSnooze, "start it"},
		{"none", errors.New("no idea"), registry.OutcomeRetry, ""},
		{"none of a wait", base.Snooze(time.Minute, registry.ReasonNotDue, "later"), registry.OutcomeSnooze, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := newFake()
			w := &worker{work: func(context.Context, *base.Item) error { return tt.err }}
			_, _ = (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i") // what came of it was settled
			got := fake.settled()
			if len(got) != 1 || got[0].Outcome != tt.outcome || got[0].Remedy != tt.want {
				t.Errorf("settlements %+v, want one %s with remedy %q", got, tt.outcome, tt.want)
			}
		})
	}
	if err := base.Await(time.Minute, registry.ReasonNotDue, nil); err != nil {
		t.Errorf("Await of nothing: %v", err)
	}
}

func TestVerdict_ClaimLostWritesNothing(t *testing.T) {
	fake := newFake()
	w := &worker{work: func(context.Context, *base.Item) error {
		return base.Content(fmt.Errorf("identify: %w", registry.ErrClaimLost))
	}}
	_, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i")
	if !errors.Is(err, registry.ErrClaimLost) || len(fake.settled()) != 0 {
		t.Errorf("err %v, settled %d times; want ErrClaimLost, 0", err, len(fake.settled()))
	}
}

func TestVerdict_TextIsFitForEveryDatabase(t *testing.T) {
	fake := newFake()
	w := &worker{work: func(context.Context, *base.Item) error {
		return errors.New("a\x00b\xff" + strings.Repeat("é", 3000))
	}}
	_, _ = (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i")
	text := fake.settled()[0].Error
	if len(text) > 2000 || !utf8.ValidString(text) || strings.ContainsRune(text, 0) || !strings.HasPrefix(text, "a\uFFFDb\uFFFDé") {
		t.Errorf("text of %d bytes, valid %v: %.20q", len(text), utf8.ValidString(text), text)
	}
}

func TestVerdict_FailedTriesDoNotKeepResults(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		kept bool
	}{{"done", nil, true}, {"failed", base.Content(errors.New("bad")), true}, {"retry", errors.New("down"), false}} {
		t.Run(tt.name, func(t *testing.T) {
			fake := newFake()
			w := &worker{work: func(_ context.Context, it *base.Item) error {
				it.AddPriority(10)
				it.SetSize(1, 1)
				return errors.Join(it.Event("seen", nil), it.SetResult("r", "v"), tt.err)
			}}
			_, _ = (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i")
			got := fake.settled()[0]
			if (got.Results != nil) != tt.kept || (got.PriorityAdd == 10) != tt.kept || (got.SizeBytes != nil) != tt.kept {
				t.Errorf("results %v priority +%d, want kept: %v", got.Results, got.PriorityAdd, tt.kept)
			}
			if len(got.Events) != 1 {
				t.Errorf("%d events, want 1 whatever became of the step", len(got.Events))
			}
		})
	}
}

func TestPanic_IsACountedFailureOfItsItem(t *testing.T) {
	for _, tt := range []struct {
		name string
		work func()
		note string
	}{
		{"panic", func() { panic("boom") }, "step panicked: boom"},
		{"panic with a verdict", func() { panic(base.Content(errors.New("boom"))) }, "step panicked: boom"},
		{"panic in the code called", func() { _ = []int{}[len(errorText):] }, "step panicked: runtime error: slice bounds out of range [4:0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, f, book := openRegistry(t), newFeed(), &logbook{}
			bad, good := submit(t, store), submit(t, store)
			w := &worker{work: func(_ context.Context, it *base.Item) error {
				if it.ID == bad {
					tt.work()
				}
				return nil
			}}
			start(t, &base.Runner{Registry: store, Interim: openInterim(t), Connect: f.connect, Log: book.logger()}, w)
			for _, id := range []string{bad, good} {
				if got := <-f.deliver(id).answered; got != "finish" {
					t.Errorf("message was answered with %s, want finish", got)
				}
			}
			if it := itemOf(t, store, bad); it.Tries != 1 || it.Status != registry.Pending || it.Note != tt.note {
				t.Errorf("tries=%d status=%s note=%q, want 1 pending %q", it.Tries, it.Status, it.Note, tt.note)
			}
			if it := itemOf(t, store, good); it.Stage != registry.Report {
				t.Errorf("the next item stands in %s, want report: the worker lives on", it.Stage)
			}
			if book.count(8, "step panicked") != 1 {
				t.Error("the panic was not logged once")
			}
		})
	}
}

func TestR27_NewerFormatWaitsUncounted(t *testing.T) {
	for _, spec := range []string{`{"route_version":99}`, `{"size_bytes":"many"}`, `nonsense`, ``} {
		fake := newFake()
		fake.spec = json.RawMessage(spec)
		w := &worker{work: func(context.Context, *base.Item) error { t.Error("worked on it"); return nil }}
		_, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i")
		if got := fake.settled(); err == nil || len(got) != 1 || got[0].Outcome != registry.OutcomeSnooze {
			t.Errorf("spec %q: err %v, settled %+v; want one snooze", spec, err, got)
		}
	}
}

func TestBackoff(t *testing.T) {
	var w base.Worker
	for tries, want := range map[int]time.Duration{
		-1: time.Minute, 0: time.Minute, 1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 6: 32 * time.Minute,
		7: time.Hour, 8: time.Hour, 64: time.Hour, 1 << 40: time.Hour,
	} {
		differ := map[time.Duration]bool{}
		for range 200 {
			got := w.Backoff(tries)
			if got < want*8/10 || got > want*12/10+1 || got > time.Hour {
				t.Errorf("Backoff(%d) = %v, want %v give or take a fifth and at most an hour", tries, got, want)
			}
			differ[got] = true
		}
		if len(differ) < 100 {
			t.Errorf("Backoff(%d) gave only %d different waits", tries, len(differ))
		}
	}
}

func TestWorker_Policy(t *testing.T) {
	var w base.Worker
	if w.MaxAttempts() != 5 || w.Lease() != 30*time.Second || w.StuckAfter() != 10*time.Minute || w.Concurrency() < 1 {
		t.Errorf("defaults: %d %v %v %d", w.MaxAttempts(), w.Lease(), w.StuckAfter(), w.Concurrency())
	}
	w = base.Worker{Attempts: 7, Slots: 9, LeaseFor: time.Minute, StuckFor: time.Hour}
	if w.MaxAttempts() != 7 || w.Lease() != time.Minute || w.StuckAfter() != time.Hour || w.Concurrency() != 9 {
		t.Errorf("set: %d %v %v %d", w.MaxAttempts(), w.Lease(), w.StuckAfter(), w.Concurrency())
	}
}

// An item that has waited for room for the limit fails when there is none again, as a system fault
// with a remedy. No other outcome changes, and it does not fail earlier.
func TestVerdict_RoomWait(t *testing.T) {
	const limit = 7 * 24 * time.Hour
	for _, err := range []error{
		&registry.NoSpaceError{Volume: "staging"}, fmt.Errorf("write list: %w", storage.ErrNoSpace), base.Snooze(time.Minute, registry.ReasonNoSpace, "full"),
	} {
		for _, tt := range []struct {
			waited, limit time.Duration
			want          registry.Outcome
		}{{limit, limit, registry.OutcomeFailed}, {limit - time.Second, limit, registry.OutcomeSnooze}, {1000 * limit, 0, registry.OutcomeSnooze}} {
			fake := newFake()
			fake.roomWait = tt.waited
			w := &worker{Worker: base.Worker{RoomFor: tt.limit}, work: func(context.Context, *base.Item) error { return err }}
			if _, got := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i"); !errors.Is(got, err) {
				t.Errorf("RunOne: %v, want %v", got, err)
			}
			s := fake.settled()[0]
			if s.Outcome != tt.want {
				t.Errorf("%v after %v of %v: %s, want %s", err, tt.waited, tt.limit, s.Outcome, tt.want)
			}
			if tt.want == registry.OutcomeFailed && (s.Class != registry.SystemFault || s.Code != "no-room" || s.Remedy != base.RoomRemedy || !strings.Contains(s.Error, "HOLDFAST_ROOM_WAIT")) {
				t.Errorf("failed by %+v", s)
			}
		}
	}
	fake := newFake()
	fake.roomWait = 2 * limit
	w := &worker{Worker: base.Worker{RoomFor: limit}, work: func(context.Context, *base.Item) error { return nil }}
	if _, err := (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i"); err != nil || fake.settled()[0].Outcome != registry.OutcomeDone {
		t.Errorf("one that found room: %v %+v", err, fake.settled())
	}
}
