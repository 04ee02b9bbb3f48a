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

// judgements are verdicts on uploads, complete or under way. Judging a large bag takes longer than
// requests may last behind proxies. So a judgement goes on after its caller has disconnected, and
// the caller's next request gets the verdict.
type judgements struct {
	stop <-chan struct{} // closed when the server begins to stop
	log  *slog.Logger

	mu   sync.Mutex
	of   map[judged]*judgement
	kept []*judgement // complete judgements, oldest first
}

// judged is everything that a verdict depends on.
type judged struct {
	upload     string
	typ        registry.PayloadType
	bagProfile string // the collection's, like the following fields
	names      string // encoding of names that are not UTF-8
	noid       string // its NOID template
	owner      string // whose objects the verdict may mention
	withoutDC  bool
}

type judgement struct {
	of      judged
	token   string        // of the first caller
	over    chan struct{} // closed when the following fields are set
	verdict intake.Report
	err     error
	size    int // of the verdict in memory, in bytes
	expiry  *time.Timer
}

const (
	// judgeWait is how long a request waits for a verdict.
	judgeWait = 20 * time.Second
	// judgeKeep is how long a verdict is kept for the next request.
	judgeKeep = 10 * time.Minute
	// judgeKeepError is how long an error is kept: long enough for a polling client, and short
	// because its cause may pass.
	judgeKeepError = time.Minute
)

// Limits on kept verdicts, for one token and for all. The oldest are dropped first; a later request
// judges the upload again.
const (
	judgeKeepOfToken, judgeBytesOfToken = 1_000, 8 << 20
	judgeKeepOfAll, judgeBytesOfAll     = 5_000, 32 << 20
)

func newJudgements(stop <-chan struct{}, log *slog.Logger) *judgements {
	return &judgements{stop: stop, log: log, of: map[judged]*judgement{}}
}

// finding judges an upload. It ends when its context does.
type finding func(context.Context) (intake.Report, error)

// ask returns the verdict on j; the first caller starts the judgement. If it takes longer than
// wait, ask returns a problem with CodeJudging, and the judgement goes on. An accepting verdict is
// kept for a while: a client that submits several uploads at once asks for all of them again when
// one takes longer. Other verdicts and errors are forgotten once returned.
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
			"upload %s is still being checked, and nothing was submitted yet; repeat the request in a moment", j.upload))
	case <-ctx.Done():
		return intake.Report{}, context.Cause(ctx)
	}
}

// begin returns the judgement on j, and starts it if there is none.
func (all *judgements) begin(ctx context.Context, token string, j judged, find finding) *judgement {
	all.mu.Lock()
	defer all.mu.Unlock()
	if found := all.of[j]; found != nil {
		return found
	}
	found := &judgement{of: j, token: token, over: make(chan struct{})}
	all.of[j] = found
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends when the server stops or the verdict is complete
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

// keep stores a complete judgement for later requests, and drops the oldest ones beyond the limits.
func (all *judgements) keep(found *judgement) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.of[found.of] != found { // it was already returned and forgotten
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

// forget removes a judgement, so that the next request judges again.
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
		found.expiry.Stop() // the timer would keep the verdict in memory
	}
}

// find judges an upload, unless the server stops before. It turns a panic into an error: in a
// goroutine of its own, a panic would end the process.
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

// errStopping says that the server stopped before the verdict was complete.
var errStopping = fmt.Errorf("the service is stopping: %w", registry.ErrUnavailable)

// verdict judges an upload as a type and by a collection's profile, and waits for the verdict at
// most judgeWait.
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

// judgeNow judges an upload until its context ends, with slots of the gate. It first tries for a
// short time in a slot for small work; if that is not enough, it takes a slot for large work. c is
// the zero value for no collection.
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
	o.Row = s.ARKs.Row(ctx, c.Profile) // a Row counts the rows that it has judged
	var v intake.Report
	err = s.admitted(ctx, u, work, func() (err error) {
		v, err = intake.Judge(ctx, in, t, o)
		return err
	})
	return v, err
}

// tokenOf identifies the caller: the token's id or, for a session without a token, its name.
func tokenOf(ctx context.Context) string {
	who := access.Of(ctx).Token
	return cmp.Or(who.ID, who.Name)
}

// admitted runs judge once the gate admits the work.
func (s *Service) admitted(ctx context.Context, u registry.Upload, w gate.Work, judge func() error) error {
	leave, err := s.Gate.Enter(ctx, w)
	if errors.Is(err, gate.ErrFull) {
		return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeJudging, fmt.Sprintf(
			"upload %s was not checked yet, because too many of your uploads are waiting; repeat the request in a minute", u.ID))
	} else if err != nil {
		return err
	}
	defer leave()
	return judge()
}
