package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/panics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// workRoutes are the life of an attempt, for workers: registry.Working and registry.Preserving.
func (s *server) workRoutes(api huma.API) {
	post, attempt := http.MethodPost, "/items/{id}/attempts/{n}"
	op := func(id, method, path, summary string) operation {
		return operation{id: id, method: method, path: path, summary: summary, contract: true}
	}
	register(s, api, op("claim", post, "/claims", "Claim items, several requests together"), s.claim)
	register(s, api, op("settle", post, "/settlements", "Settle attempts, several together"), s.settle)
	ask(s, api, op("renew", post, "/renewals", "Renew the attempts that a worker runs"), // A worker says which stages it serves, for which the relay then rings: no other than its token's.
		func(r Registry, ctx context.Context, in registry.RenewRequest) (registry.Renewal, error) {
			for stage := range in.Worker.Capacity {
				if err := mayServe(ctx, stage); err != nil {
					return registry.Renewal{}, err
				}
			}
			for i := range in.Beats {
				in.Beats[i].Lease = by(ctx, in.Beats[i].Lease)
			}
			return r.Renew(ctx, in)
		})
	register(s, api, op("list-withdrawn", http.MethodGet, "/withdrawals", "Wait for attempts that admins take away"), s.withdrawn)
	register(s, api, op("save-result", post, attempt+"/results", "Keep a result that must not be made twice"), s.saveResult)
	register(s, api, op("add-jobs", post, attempt+"/jobs", "Add rows of a batch as jobs"), s.addJobs)
	register(s, api, op("first-of", post, attempt+"/validators", "Find the batch that a batch repeats"), s.firstOf)
	register(s, api, op("reserve", http.MethodPut, attempt+"/reservation", "Promise room on a volume to an item"), s.reserve)
	register(s, api, op("close-report", post, attempt+"/report", "Store a batch's report"), s.closeReport)
	register(s, api, op("apply-next", post, attempt+"/applications", "Carry a bulk act out on its next items"), s.applyNext)
	register(s, api, op("identify", post, attempt+"/identity", "Settle which object an item is about"), s.identify)
	register(s, api, op("intend", post, attempt+"/intents", "Announce a version of an object"), s.intend)
	register(s, api, op("record-files", post, attempt+"/files", "Add inventory rows of a version"), s.recordFiles)
	register(s, api, op("record-version", post, attempt+"/versions", "Make a version visible"), s.recordVersion)
	register(s, api, op("lock-object", post, attempt+"/lock", "Keep others from changing an object"), s.lockObject)
	register(s, api, op("mark-deleting", post, attempt+"/deletions", "Let nobody read an object any more, whose deletion was approved"), s.markDeleting)
	register(s, api, op("record-deletion", post, attempt+"/removals", "Note that no byte of an object is left"), s.recordDeletion)
	register(s, api, op("stored-file", post, attempt+"/stored-file", "Show the file that an item is to check"), s.storedFile)
	register(s, api, op("note-delivery", post, attempt+"/deliveries", "Note what a try to tell a receiver came to"), s.noteDelivery)
	register(s, api, op("pass-on", post, attempt+"/messages", "Have an item of its own go on with a message"), s.passOn)
	register(s, api, op("record-check", post, attempt+"/checks", "Note what a check of a stored file found"), s.recordCheck)
	register(s, api, op("record-restoration", post, attempt+"/restorations", "Let a version that was restored be fetched"), s.recordRestoration)
}

// given is a request that is a body and nothing else.
type given[T any] struct {
	Body T
}

// ask registers a method of the contract that has an argument and a result.
func ask[I, O any](s *server, api huma.API, o operation, do func(Registry, context.Context, I) (O, error)) {
	register(s, api, o, func(ctx context.Context, in *given[I]) (*output[O], error) {
		out, err := do(s.registry, ctx, in.Body)
		s.acted(ctx, o, err)
		return answered(out, err)
	})
}

// tell registers a method of the contract that has an argument and no result.
func tell[I any](s *server, api huma.API, o operation, do func(Registry, context.Context, I) error) {
	register(s, api, o, func(ctx context.Context, in *given[I]) (*struct{}, error) {
		err := do(s.registry, ctx, in.Body)
		s.acted(ctx, o, err)
		return nil, err
	})
}

// acted notes by whose token something was done in somebody's name.
func (s *server) acted(ctx context.Context, o operation, err error) {
	if o.acts && err == nil {
		s.log.InfoContext(ctx, "acted in somebody's name", "operation", o.id, "request", callOf(ctx).id, "token", actor(ctx))
	}
}

// answered is a result as register takes it.
func answered[T any](out T, err error) (*output[T], error) {
	if err != nil {
		return nil, err
	}
	return &output[T]{Body: out}, nil
}

// AttemptOf names an attempt in a path: the fencing token of what is written.
type AttemptOf struct {
	ID string `path:"id" maxLength:"200"`
	N  int64  `path:"n" doc:"The attempt's number"`
}

func (a AttemptOf) lease(ctx context.Context) registry.Lease {
	return by(ctx, registry.Lease{ItemID: a.ID, N: a.N})
}

// fenced is a write of an attempt.
type fenced[T any] struct {
	AttemptOf
	Body T
}

func (s *server) claim(ctx context.Context, in *given[wire.ClaimsRequest]) (*output[wire.Answers[registry.Claim]], error) {
	return together(ctx, s, in.Body.Claims, func(ctx context.Context, c registry.ClaimRequest) (registry.Claim, error) {
		if err := mayServe(ctx, c.Stage); err != nil {
			return registry.Claim{}, err
		}
		c.Token = asWorker(ctx)
		return s.registry.Claim(ctx, c)
	})
}

func (s *server) settle(ctx context.Context, in *given[wire.SettlementsRequest]) (*output[wire.Answers[registry.Verdict]], error) {
	return together(ctx, s, in.Body.Settlements, func(ctx context.Context, se registry.Settlement) (registry.Verdict, error) {
		se.Lease = by(ctx, se.Lease)
		return s.registry.Settle(ctx, se)
	})
}

// together asks the Registry all at once, so that it commits them in one group, and answers each by itself.
func together[I, O any](ctx context.Context, s *server, all []I, do func(context.Context, I) (O, error)) (*output[wire.Answers[O]], error) {
	if len(all) > wire.MostTogether {
		return nil, invalid("nothing was done", wire.Fault{
			Location: "body", Message: fmt.Sprintf("%d in one request, at most %d are taken", len(all), wire.MostTogether),
		})
	}
	out := wire.Answers[O]{Answers: make([]wire.Answer[O], len(all))}
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	var running sync.WaitGroup
	for i, one := range all {
		running.Go(func() {
			value, err := guardedCall(ctx, one, do)
			if err != nil {
				out.Answers[i].Problem = s.problem(r, err)
				return
			}
			out.Answers[i].Value = &value
		})
	}
	running.Wait()
	return &output[wire.Answers[O]]{Body: out}, nil
}

// guardedCall turns a panic into the error of this call alone: outside the request's own goroutine it would end the process.
func guardedCall[I, O any](ctx context.Context, in I, do func(context.Context, I) (O, error)) (out O, err error) {
	err = panics.Guard(func() (err error) {
		out, err = do(ctx, in)
		return err
	})
	return out, err
}

// maxWait bounds a long poll. Proxies tend to give up after a minute.
const maxWait = 30 * time.Second

// LongPoll is how long to wait for news.
type LongPoll struct {
	Wait int64 `query:"wait_ms" minimum:"0" maximum:"30000" doc:"How long to wait for news, in milliseconds"`
}

// polling is ctx for as long as a poll may wait.
func (s *server) polling(ctx context.Context, milliseconds int64) (context.Context, context.CancelFunc) {
	wait := maxWait
	if milliseconds < maxWait.Milliseconds() {
		wait = time.Duration(max(0, milliseconds)) * time.Millisecond
	}
	return s.until(ctx, wait)
}

type withdrawnInput struct {
	LongPoll
	Worker string `query:"worker" maxLength:"500"`
	After  int64  `query:"after" doc:"next of the answer before; 0 at first"`
}

func (s *server) withdrawn(ctx context.Context, in *withdrawnInput) (*output[wire.Withdrawals], error) {
	ctx, cancel := s.polling(ctx, in.Wait)
	defer cancel()
	taken, next, err := s.registry.Withdrawn(ctx, in.Worker, in.After)
	return answered(wire.Withdrawals{Taken: taken, Next: next}, err)
}

func (s *server) saveResult(ctx context.Context, in *fenced[wire.Result]) (*output[wire.Result], error) {
	if len(in.Body.Value) == 0 {
		return nil, invalid("nothing was kept", wire.Fault{Location: "body.value", Message: "missing"})
	}
	value, err := s.registry.SaveResult(ctx, in.lease(ctx), in.Body.Name, in.Body.Value)
	return answered(wire.Result{Name: in.Body.Name, Value: value}, err)
}

func (s *server) addJobs(ctx context.Context, in *fenced[wire.JobsRequest]) (*output[wire.Added], error) {
	added, err := s.registry.AddJobs(ctx, in.lease(ctx), in.Body.Jobs)
	return answered(wire.Added{Added: added}, err)
}

func (s *server) firstOf(ctx context.Context, in *fenced[wire.Validator]) (*output[wire.FirstBatch], error) {
	first, err := s.registry.FirstOf(ctx, in.lease(ctx), in.Body.Validator)
	return answered(wire.FirstBatch{BatchID: first}, err)
}

func (s *server) reserve(ctx context.Context, in *fenced[registry.Reservation]) (*struct{}, error) {
	return nil, s.registry.Reserve(ctx, in.lease(ctx), in.Body)
}

func (s *server) closeReport(ctx context.Context, in *AttemptOf) (*output[registry.BatchReport], error) {
	return answered(s.registry.CloseReport(ctx, in.lease(ctx)))
}

func (s *server) applyNext(ctx context.Context, in *AttemptOf) (*output[registry.BulkProgress], error) {
	return answered(s.registry.ApplyNext(ctx, in.lease(ctx)))
}

func (s *server) identify(ctx context.Context, in *fenced[registry.IdentifyRequest]) (*output[registry.Identity], error) {
	return answered(s.registry.Identify(ctx, in.lease(ctx), in.Body))
}

func (s *server) intend(ctx context.Context, in *fenced[registry.Intent]) (*output[registry.Intent], error) {
	return answered(s.registry.Intend(ctx, in.lease(ctx), in.Body))
}

func (s *server) recordFiles(ctx context.Context, in *fenced[wire.FilesRecord]) (*struct{}, error) {
	return nil, s.registry.RecordFiles(ctx, in.lease(ctx), in.Body.ObjectID, in.Body.Version, wire.FilesIn(in.Body.Files))
}

func (s *server) recordVersion(ctx context.Context, in *fenced[registry.VersionRecord]) (*struct{}, error) {
	return nil, s.registry.RecordVersion(ctx, in.lease(ctx), in.Body)
}

func (s *server) lockObject(ctx context.Context, in *fenced[wire.ByID]) (*output[wire.ObjectHead], error) {
	head, err := s.registry.LockObject(ctx, in.lease(ctx), in.Body.ID)
	return answered(wire.ObjectHead{Head: head}, err)
}

func (s *server) markDeleting(ctx context.Context, in *fenced[wire.ObjectMark]) (*output[registry.Deletion], error) {
	return answered(s.registry.MarkDeleting(ctx, in.lease(ctx), in.Body.ObjectID, in.Body.Last))
}

func (s *server) recordDeletion(ctx context.Context, in *fenced[wire.ObjectRemoval]) (*struct{}, error) {
	return nil, s.registry.RecordDeletion(ctx, in.lease(ctx), in.Body.ObjectID, in.Body.Events)
}

func (s *server) storedFile(ctx context.Context, in *AttemptOf) (*output[registry.StoredFile], error) {
	return answered(s.registry.StoredFile(ctx, in.lease(ctx)))
}

func (s *server) recordCheck(ctx context.Context, in *fenced[registry.CheckRecord]) (*struct{}, error) {
	return nil, s.registry.RecordCheck(ctx, in.lease(ctx), in.Body)
}

func (s *server) noteDelivery(ctx context.Context, in *fenced[registry.DeliveryTry]) (*output[registry.Delivery], error) {
	return answered(s.registry.NoteDelivery(ctx, in.lease(ctx), in.Body))
}

func (s *server) passOn(ctx context.Context, in *fenced[registry.DeliverySpec]) (*struct{}, error) {
	return nil, s.registry.PassOn(ctx, in.lease(ctx), in.Body)
}

func (s *server) recordRestoration(ctx context.Context, in *fenced[registry.RestorationRecord]) (*output[registry.Restoration], error) {
	return answered(s.registry.RecordRestoration(ctx, in.lease(ctx), in.Body))
}
