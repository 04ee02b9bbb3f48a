package submission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/panics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/wire"
)

// judgements are verdicts on uploads, found or in the making. A large bag takes longer to judge
// than a request may last on its way through proxies, so a judgement goes on when whoever asked for
// it has gone, and is there when he asks again.
type judgements struct {
	stop <-chan struct{} // the server is about to stop
	log  *slog.Logger

	mu   sync.Mutex
	of   map[judged]*judgement
	kept []*judgement // those of them whose end is known, the oldest first
}

// judged is what a verdict depends on.
type judged struct {
	upload     string
	typ        registry.PayloadType
	bagProfile string // the collection's, as what follows
	names      string // how those are read that are not UTF-8
	noid       string // the template of its own
	owner      string // whose objects may be told of
	withoutDC  bool
}

type judgement struct {
	of      judged
	token   string        // of who asked first
	over    chan struct{} // closed when what follows is known
	verdict intake.Report
	err     error
	size    int // of the verdict, in memory
	expiry  *time.Timer
}

const (
	// judgeWait is how long a request waits for a verdict.
	judgeWait = 20 * time.Second
	// judgeKeep is how long a verdict waits for somebody to ask again.
	judgeKeep = 10 * time.Minute
	// judgeKeepError is how long an error does: long enough for who polls, and what caused it may
	// pass.
	judgeKeepError = time.Minute
)

// What is kept of verdicts, of one token and in all. The oldest go first; who asks for one of them
// has it found again.
const (
	judgeKeepOfToken, judgeBytesOfToken = 1_000, 8 << 20
	judgeKeepOfAll, judgeBytesOfAll     = 5_000, 32 << 20
)

func newJudgements(stop <-chan struct{}, log *slog.Logger) *judgements {
	return &judgements{stop: stop, log: log, of: map[judged]*judgement{}}
}

// finding finds a verdict. It ends when its context does.
type finding func(context.Context) (intake.Report, error)

// ask returns the verdict on j, which the first who asks has found. It returns a problem with
// CodeJudging when that takes longer than wait; the verdict is still in the making then. One that
// accepts is kept for a while, since who submits several uploads at once has to ask for all of them
// again when one takes longer; all others, and errors, are forgotten when they were told.
func (all *judgements) ask(ctx context.Context, token string, j judged, wait time.Duration, find finding) (intake.Report, error) {
	found := all.begin(context.WithoutCancel(ctx), token, j, find)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-found.over:
		if !found.verdict.Accepted {
			all.forget(found)
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
func (all *judgements) begin(ctx context.Context, token string, j judged, find finding) *judgement {
	all.mu.Lock()
	defer all.mu.Unlock()
	if found := all.of[j]; found != nil {
		return found
	}
	found := &judgement{of: j, token: token, over: make(chan struct{})}
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
		verdict, err := all.find(ctx, j, find)
		found.verdict, found.size = verdict.Detached()
		found.err = err
		close(found.over)
		all.keep(found)
	}()
	return found
}

// keep keeps what was found for who asks again, and forgets the oldest of those that are too many.
func (all *judgements) keep(found *judgement) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.of[found.of] != found { // it was told and forgotten already
		return
	}
	all.kept = append(all.kept, found)
	keep := judgeKeep
	if found.err != nil {
		keep = judgeKeepError
	}
	found.expiry = time.AfterFunc(keep, func() { all.forget(found) })
	var mine, others struct{ n, bytes int }
	for at := len(all.kept) - 1; at >= 0; at-- {
		one := all.kept[at]
		if one.token == found.token {
			mine.n, mine.bytes = mine.n+1, mine.bytes+one.size
		} else {
			others.n, others.bytes = others.n+1, others.bytes+one.size
		}
		tooMany := one.token == found.token && (mine.n > judgeKeepOfToken || mine.bytes > judgeBytesOfToken)
		if tooMany || mine.n+others.n > judgeKeepOfAll || mine.bytes+others.bytes > judgeBytesOfAll {
			all.drop(one)
			all.kept = slices.Delete(all.kept, at, at+1)
		}
	}
}

// forget has the next who asks find it anew.
func (all *judgements) forget(found *judgement) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.drop(found)
	all.kept = slices.DeleteFunc(all.kept, func(one *judgement) bool { return one == found })
}

func (all *judgements) drop(found *judgement) {
	if all.of[found.of] == found {
		delete(all.of, found.of)
	}
	if found.expiry != nil {
		found.expiry.Stop() // it would hold the verdict
	}
}

// find finds the verdict, unless the server stops before. A panic is the error of this judgement
// alone: in a goroutine of its own it would end the process.
func (all *judgements) find(ctx context.Context, j judged, find finding) (verdict intake.Report, err error) {
	err = panics.Guard(func() (err error) {
		verdict, err = find(ctx)
		return err
	})
	if caught := new(panics.Error); errors.As(err, &caught) {
		all.log.ErrorContext(ctx, "judging panicked", "upload", j.upload, "type", j.typ, "err", fmt.Sprint(caught.Value), "stack", string(caught.Stack))
		return intake.Report{}, fmt.Errorf("judging panicked: %v", caught.Value)
	}
	if err != nil && ctx.Err() != nil {
		return verdict, errStopping
	}
	return verdict, err
}

// errStopping says that a verdict was not found because the server stops.
var errStopping = fmt.Errorf("the service is stopping: %w", registry.ErrUnavailable)

// verdict judges an upload's bytes as what a type says, and by what a collection's profile asks
// for.
func (s *Service) verdict(ctx context.Context, u registry.Upload, t registry.PayloadType, c registry.Collection) (intake.Report, error) {
	key := judged{u.ID, t, string(c.Profile.BagProfile), c.Profile.NameEncoding, c.Profile.NOIDTemplate, c.Profile.Owner, c.Profile.SuppressDCLocalIDs}
	v, err := s.judgements.ask(ctx, tokenOf(ctx), key, judgeWait, func(ctx context.Context) (intake.Report, error) {
		return s.judgeNow(ctx, u, t, c)
	})
	var problem *wire.Problem
	if err != nil && !errors.As(err, &problem) {
		return v, fmt.Errorf("judge upload %s: %w", u.ID, err)
	}
	return v, err
}

// judgeNow judges an upload for as long as its context lasts, in the slots of the gate: a short
// while in one for small work, and as long as it takes in one for large work when that did not do.
// c is the zero value for no collection.
func (s *Service) judgeNow(ctx context.Context, u registry.Upload, t registry.PayloadType, c registry.Collection) (intake.Report, error) {
	bagProfile, err := intake.BagProfile(c.Profile)
	if err != nil {
		return intake.Report{}, err
	}
	o := intake.Options{Limits: s.Unpack, BagProfile: bagProfile, Row: s.ARKs.Row(ctx, c.Profile), WithoutDC: c.Profile.SuppressDCLocalIDs, TempDir: s.TempDir}
	o.Limits.NameEncoding = c.Profile.NameEncoding
	in := unpack.FromStore(s.Staging, source.UploadKey(u.ID), u.SizeBytes)
	work := gate.Work{Collection: c.Mnemonic, Token: tokenOf(ctx)}
	var first intake.Attempt
	err = s.admitted(ctx, u, work, func() (err error) {
		first, err = intake.JudgeWithin(ctx, in, t, o, s.Gate.Small())
		return err
	})
	if err != nil || first.Done {
		return first.Verdict, err
	}
	work.Bytes, work.Memory = s.Gate.Small()+1, first.Memory
	o.Row = s.ARKs.Row(ctx, c.Profile) // it counts what it judged
	var v intake.Report
	err = s.admitted(ctx, u, work, func() (err error) {
		v, err = intake.Judge(ctx, in, t, o)
		return err
	})
	return v, err
}

// tokenOf is whose call it is; of a session without a token only the name is known.
func tokenOf(ctx context.Context) string {
	who := access.Of(ctx).Token
	return cmp.Or(who.ID, who.Name)
}

// admitted runs judge when the gate lets the work in.
func (s *Service) admitted(ctx context.Context, u registry.Upload, w gate.Work, judge func() error) error {
	leave, err := s.Gate.Enter(ctx, w)
	if errors.Is(err, gate.ErrFull) {
		return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeJudging, fmt.Sprintf(
			"upload %s cannot be judged yet: too many of your uploads wait already; ask again in a minute", u.ID))
	} else if err != nil {
		return err
	}
	defer leave()
	return judge()
}
