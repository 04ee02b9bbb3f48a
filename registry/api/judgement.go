package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
)

// judgements are verdicts on uploads, found or in the making. A large bag takes longer to judge than a request may last
// on its way through proxies, so a judgement goes on when whoever asked for it has gone, and is there when he asks again.
type judgements struct {
	stop <-chan struct{} // the server is about to stop

	mu sync.Mutex
	of map[judged]*judgement
}

// judged is what a verdict depends on.
type judged struct {
	upload     string
	typ        registry.PayloadType
	bagProfile string // the collection's, as what follows
	names      string // how those are read that are not UTF-8
	noid       string // the template of its own
	owner      string // whose objects may be told of
}

type judgement struct {
	over    chan struct{} // closed when what follows is known
	verdict intake.Report
	err     error
	ended   time.Time
}

const (
	// judgeWait is how long a request waits for a verdict.
	judgeWait = 20 * time.Second
	// judgeKeep is how long a verdict waits for somebody to ask again.
	judgeKeep = 10 * time.Minute
)

func newJudgements(stop <-chan struct{}) *judgements {
	return &judgements{stop: stop, of: map[judged]*judgement{}}
}

// finding finds a verdict. It ends when its context does.
type finding func(context.Context) (intake.Report, error)

// ask returns the verdict on j, which the first who asks has found. It returns a problem with CodeJudging when that takes
// longer than wait; the verdict is still in the making then. One that accepts is kept for a while, since who submits several
// uploads at once has to ask for all of them again when one takes longer; all others are forgotten when they were told.
func (all *judgements) ask(ctx context.Context, j judged, wait time.Duration, find finding) (intake.Report, error) {
	found := all.begin(context.WithoutCancel(ctx), j, find)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-found.over:
		all.mu.Lock()
		defer all.mu.Unlock()
		if all.of[j] == found && !found.verdict.Accepted {
			delete(all.of, j)
		}
		return found.verdict, found.err
	case <-timer.C:
		return intake.Report{}, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeJudging, fmt.Sprintf(
			"upload %s is still being judged, which takes a while for large ones; nothing was submitted yet; ask again", j.upload))
	case <-ctx.Done():
		return intake.Report{}, context.Cause(ctx)
	}
}

// begin returns the judgement on j, and starts it unless somebody has.
func (all *judgements) begin(ctx context.Context, j judged, find finding) *judgement {
	all.mu.Lock()
	defer all.mu.Unlock()
	for key, old := range all.of {
		if !old.ended.IsZero() && time.Since(old.ended) > judgeKeep {
			delete(all.of, key)
		}
	}
	if found := all.of[j]; found != nil {
		return found
	}
	found := &judgement{over: make(chan struct{})}
	all.of[j] = found
	ctx, cancel := context.WithCancel(ctx)
	go func() { // whether the server stops or the verdict is found
		defer cancel()
		select {
		case <-all.stop:
		case <-found.over:
		}
	}()
	go func() {
		verdict, err := all.find(ctx, find)
		all.mu.Lock()
		defer all.mu.Unlock()
		found.verdict, found.err, found.ended = verdict, err, time.Now()
		close(found.over)
	}()
	return found
}

// find finds the verdict, unless the server stops before.
func (all *judgements) find(ctx context.Context, find finding) (intake.Report, error) {
	verdict, err := find(ctx)
	if err != nil && ctx.Err() != nil {
		return verdict, errStopping
	}
	return verdict, err
}

// errStopping says that a verdict was not found because the server stops.
var errStopping = fmt.Errorf("the service is stopping: %w", registry.ErrUnavailable)

// verdict judges an upload's bytes as what a type says, and by what a collection's profile asks for.
func (s *server) verdict(ctx context.Context, u registry.Upload, t registry.PayloadType, c registry.Collection) (intake.Report, error) {
	key := judged{u.ID, t, string(c.Profile.BagProfile), c.Profile.NameEncoding, c.Profile.NOIDTemplate, c.Profile.Owner}
	v, err := s.judgements.ask(ctx, key, judgeWait, func(ctx context.Context) (intake.Report, error) {
		return s.judgeNow(ctx, u, t, c)
	})
	var problem *wire.Problem
	if err != nil && !errors.As(err, &problem) {
		return v, fmt.Errorf("judge upload %s: %w", u.ID, err)
	}
	return v, err
}

// judgeNow judges an upload for as long as its context lasts, in the slots of the gate: a short while in one for small
// work, and as long as it takes in one for large work when that did not do. c is the zero value for no collection.
func (s *server) judgeNow(ctx context.Context, u registry.Upload, t registry.PayloadType, c registry.Collection) (intake.Report, error) {
	bagProfile, err := intake.BagProfile(c.Profile)
	if err != nil {
		return intake.Report{}, err
	}
	o := intake.Options{Limits: s.unpack, BagProfile: bagProfile, Row: s.arks.Row(ctx, c.Profile)}
	o.Limits.NameEncoding = c.Profile.NameEncoding
	in := unpack.FromStore(s.staging, source.UploadKey(u.ID), u.SizeBytes)
	who := callOf(ctx).token // of a session without a token only the name is known
	work := gate.Work{Collection: c.Mnemonic, Token: cmp.Or(who.ID, who.Name)}
	var v intake.Report
	err = s.admitted(ctx, u, work, func() (err error) {
		v, work.Memory, err = intake.JudgeWithin(ctx, in, t, o, s.gate.Small())
		return err
	})
	if err != nil || work.Memory == 0 {
		return v, err
	}
	work.Bytes = s.gate.Small() + 1
	o.Row = s.arks.Row(ctx, c.Profile) // it counts what it judged
	err = s.admitted(ctx, u, work, func() (err error) {
		v, err = intake.Judge(ctx, in, t, o)
		return err
	})
	return v, err
}

// admitted runs judge when the gate lets the work in.
func (s *server) admitted(ctx context.Context, u registry.Upload, w gate.Work, judge func() error) error {
	leave, err := s.gate.Enter(ctx, w)
	if errors.Is(err, gate.ErrFull) {
		return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeJudging, fmt.Sprintf(
			"upload %s cannot be judged yet: too many of your uploads wait already; ask again in a minute", u.ID))
	} else if err != nil {
		return err
	}
	defer leave()
	return judge()
}
