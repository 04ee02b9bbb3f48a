package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// contractRoutes are what is left of the contract, under /registry, each method by its name: for processes of ours that
// have a remote Registry. They take arguments as they are and answer what the Registry answers. The routes for people are
// others: those check what people type, act in the name of the token, and show no secrets. What is asked here in
// somebody's name has been checked by whoever asks.
func (s *server) contractRoutes(api huma.API) {
	s.receivingRoutes(api)
	s.submittingRoutes(api)
	s.administeringRoutes(api)
	s.readingRoutes(api)
	s.forwardingRoutes(api)
	ask(s, api, method("deliveries", "List what was told of an item"), func(r Registry, ctx context.Context, in wire.ByID) (wire.Rows[registry.Delivery], error) {
		list, err := r.Deliveries(ctx, in.ID)
		return wire.Rows[registry.Delivery]{Rows: list}, err
	})
	ask(s, api, method("knows-object", "Say whether a record leads to an object"), byID(Registry.KnowsObject))
	ask(s, api, method("batch-safety", "Say whether every copy of what is in a batch is right"), byID(Registry.BatchSafety))
	ask(s, api, method("attention", "Say what waits for operators"), func(r Registry, ctx context.Context, _ wire.Nothing) (registry.Attention, error) {
		return r.Attention(ctx)
	})
	ask(s, api, method("make-digest", "Make the mails to operators that are due"), Registry.MakeDigest)
	ask(s, api, method("has-replicas", "Say whether a storage holds any version of an object"), byID(Registry.HasReplicas))
}

// method describes the operation of a method of the contract.
func method(name, summary string) operation {
	return operation{id: contractPrefix + name, method: http.MethodPost, path: "/registry/" + name, summary: summary, contract: true}
}

// act describes the operation of a method of the contract that changes something in somebody's name.
func act(name, summary string) operation {
	o := method(name, summary)
	o.acts = true
	return o
}

// contractPrefix tells these operations from those for people.
const contractPrefix = "registry-"

func (s *server) submittingRoutes(api huma.API) {
	ask(s, api, method("upload", "Show an upload"), ofUpload(s, Registry.UploadByID))
	ask(s, api, method("retire-upload", "Decide that the bytes of an upload go, unless a batch may need them"),
		func(r Registry, ctx context.Context, in wire.Retirement) (bool, error) {
			if err := s.mayAskOfUpload(ctx, in.UploadID); err != nil {
				return false, err
			}
			return r.RetireUpload(ctx, in.UploadID, in.Itself)
		})
	ask(s, api, method("batches-of", "List the batches that an upload was submitted as"),
		ofUpload(s, func(r Registry, ctx context.Context, id string) (wire.Rows[registry.WorkItem], error) {
			list, err := r.BatchesOf(ctx, id)
			return wire.Rows[registry.WorkItem]{Rows: list}, err
		}))
	ask(s, api, act("submit", "Submit a payload as it is described"), Registry.Submit)
	ask(s, api, act("prepare", "Add submissions to a graph"), Registry.Prepare)
	tell(s, api, act("seal", "Start a graph"), func(r Registry, ctx context.Context, in wire.SealRequest) error {
		return r.Seal(ctx, in.GraphID, in.Actor)
	})
}

func (s *server) receivingRoutes(api huma.API) {
	ask(s, api, method("begin-upload", "Record an upload that is to come"), Registry.BeginUpload)
	ask(s, api, method("incoming", "Show an upload on its way"), ofUpload(s, Registry.IncomingByID))
	ask(s, api, method("incoming-of", "List the uploads on their way that somebody began"),
		func(r Registry, ctx context.Context, in wire.Somebody) (wire.Rows[registry.Incoming], error) {
			list, err := r.IncomingOf(ctx, in.Name)
			return wire.Rows[registry.Incoming]{Rows: list}, err
		})
	ask(s, api, method("take-upload", "Take an upload forward"), func(r Registry, ctx context.Context, in wire.UploadTaking) (registry.Incoming, error) {
		return r.TakeUpload(ctx, in.ID, in.Offset)
	})
	ask(s, api, method("save-upload", "Acknowledge what has come of an upload"), Registry.SaveUpload)
	tell(s, api, method("finish-upload", "Record an upload whose bytes are stored"), Registry.FinishUpload)
	tell(s, api, method("drop-upload", "Give an upload on its way up"), func(r Registry, ctx context.Context, in wire.ByID) error {
		return r.DropUpload(ctx, in.ID)
	})
	ask(s, api, method("upload-use", "Count what uploads come to"), func(r Registry, ctx context.Context, in wire.Somebody) (wire.Rows[registry.UploadUse], error) {
		list, err := r.UploadUse(ctx, in.Name)
		return wire.Rows[registry.UploadUse]{Rows: list}, err
	})
	ask(s, api, method("stored-uploads", "List the uploads that have ended and take room"),
		func(r Registry, ctx context.Context, in wire.StoredUploads) (registry.Page[registry.Upload], error) {
			return r.StoredUploads(ctx, in.Name, in.After)
		})
	ask(s, api, method("dropped-uploads", "List uploads that were given up or retired, and give up what has expired"), rows(Registry.DroppedUploads))
	tell(s, api, method("forget-upload", "Remove the record of an upload that was given up"), func(r Registry, ctx context.Context, in wire.ByID) error {
		return r.ForgetUpload(ctx, in.ID)
	})
}

func (s *server) administeringRoutes(api huma.API) {
	ask(s, api, act("command", "Ask an act of an item"), func(r Registry, ctx context.Context, c registry.Command) (registry.WorkItem, error) {
		if c.Act == registry.ActAbandon { // who could name somebody else would be two people
			c.Actor = actor(ctx)
		}
		return r.Command(ctx, c)
	})
	ask(s, api, act("bulk", "Ask an act of every item that matches"), Registry.Bulk)
	ask(s, api, act("request-object", "Ask for an item about a preserved object"), Registry.RequestObject)
	ask(s, api, act("search-orphans", "Look for what belongs to nobody"), Registry.SearchOrphans)
	ask(s, api, act("redeliver", "Have it told again how a job ended"), Registry.Redeliver)
	tell(s, api, act("ask-for-check", "Have every stored file of an object checked"), func(r Registry, ctx context.Context, in wire.CheckAsked) error {
		return r.AskForCheck(ctx, in.ObjectID, in.Reason, in.Actor)
	})
	tell(s, api, act("set-accepting", "Say whether submissions are taken"), Registry.SetAccepting)
	tell(s, api, act("add-hold", "Keep items of a scope from starting"), func(r Registry, ctx context.Context, h registry.Hold) error {
		if err := invalid("nothing was held", checkScope("body", h.Scope, h.Key)...); err != nil {
			return err
		}
		return r.AddHold(ctx, h)
	})
	tell(s, api, act("remove-hold", "Let go what a hold keeps"), func(r Registry, ctx context.Context, in wire.HoldRemoval) error {
		return r.RemoveHold(ctx, in.Scope, in.Key, in.Actor)
	})
	tell(s, api, act("put-collection", "Create or change a collection"), func(r Registry, ctx context.Context, in wire.CollectionRecord) error {
		return r.PutCollection(ctx, in.Collection, in.Actor)
	})
	tell(s, api, act("add-token", "Store a token by its hash"), func(r Registry, ctx context.Context, in wire.TokenRecord) error {
		t := in.Whole()
		if t.ID == "" || t.Hash == "" || !slices.Contains(registry.Roles(), t.Role) {
			return invalid("no token was stored", wire.Fault{Location: "body", Message: "a token needs an id, a hash and a role"})
		}
		return r.AddToken(ctx, t)
	})
	ask(s, api, method("token", "Find a token by its hash"), func(r Registry, ctx context.Context, in wire.ByHash) (wire.TokenRecord, error) {
		t, err := r.TokenByHash(ctx, in.Hash)
		return wire.RecordOf(t), err
	})
	ask(s, api, method("tokens", "List all tokens"), func(r Registry, ctx context.Context, _ wire.Nothing) (wire.Rows[wire.TokenRecord], error) {
		all, err := r.Tokens(ctx)
		out := make([]wire.TokenRecord, len(all))
		for i, t := range all {
			out[i] = wire.RecordOf(t)
		}
		return wire.Rows[wire.TokenRecord]{Rows: out}, err
	})
	tell(s, api, act("revoke-token", "Make a token useless"), func(r Registry, ctx context.Context, in wire.TokenRevocation) error {
		return r.RevokeToken(ctx, in.ID, in.Actor)
	})
	tell(s, api, act("put-credential", "Keep a credential, sealed"), func(r Registry, ctx context.Context, in wire.CredentialRecord) error {
		return r.PutCredential(ctx, in.Whole())
	})
	ask(s, api, method("credentials", "List a collection's credentials, sealed"), func(r Registry, ctx context.Context, in wire.ByID) (wire.Rows[wire.CredentialRecord], error) {
		if err := s.mayAskOfCollection(ctx, in.ID); err != nil {
			return wire.Rows[wire.CredentialRecord]{}, err
		}
		all, err := r.Credentials(ctx, in.ID)
		out := make([]wire.CredentialRecord, len(all))
		for i, c := range all {
			out[i] = wire.CredentialRecordOf(c)
		}
		return wire.Rows[wire.CredentialRecord]{Rows: out}, err
	})
	tell(s, api, act("remove-credential", "Forget a credential"), func(r Registry, ctx context.Context, in wire.CredentialRemoval) error {
		return r.RemoveCredential(ctx, in.Collection, in.Origin, in.Actor)
	})
	tell(s, api, method("refused", "Note that somebody was refused something"), Registry.Refused)
}

func (s *server) readingRoutes(api huma.API) {
	ask(s, api, method("item", "Show an item"), byID(Registry.Item))
	ask(s, api, method("items", "List items"), Registry.Items)
	ask(s, api, method("count-items", "Count items by state"), func(r Registry, ctx context.Context, q registry.ItemQuery) (wire.Counts, error) {
		counts, err := r.CountItems(ctx, q)
		return wire.Counts{Counts: counts}, err
	})
	ask(s, api, method("failures", "Group failed items by their cause"), Registry.Failures)
	ask(s, api, method("graph", "Show a graph"), byID(Registry.Graph))
	ask(s, api, method("edges", "Show what an item requires, and what requires it"), func(r Registry, ctx context.Context, in wire.ByID) (wire.EdgesResponse, error) {
		requires, required, err := r.Edges(ctx, in.ID)
		return wire.EdgesResponse{Requires: requires, RequiredBy: required}, err
	})
	ask(s, api, method("queue-status", "Add up what waits and runs"), all(Registry.QueueStatus))
	ask(s, api, method("audit", "List what people asked and were refused"), Registry.Audit)
	ask(s, api, method("accepting", "Say whether submissions are taken"), all(Registry.Accepting))
	ask(s, api, method("holds", "List holds"), rows(Registry.Holds))
	ask(s, api, method("batch-progress", "Add up a batch's jobs"), byID(Registry.BatchProgress))
	ask(s, api, method("why", "Say what an item waits for"), byID(Registry.Why))
	ask(s, api, method("events", "List events"), func(r Registry, ctx context.Context, in wire.EventsRequest) (wire.Rows[registry.Event], error) {
		events, err := r.Events(ctx, in.ItemID, in.After, in.Limit)
		return wire.Rows[registry.Event]{Rows: events}, err
	})
	ask(s, api, method("feed", "List events of all items"), func(r Registry, ctx context.Context, q registry.FeedQuery) (wire.Rows[registry.Event], error) {
		events, err := r.Feed(ctx, q)
		return wire.Rows[registry.Event]{Rows: events}, err
	})
	ask(s, api, method("feed-end", "Show the newest event's cursor"), func(r Registry, ctx context.Context, _ wire.Nothing) (wire.Cursor, error) {
		seq, err := r.FeedEnd(ctx)
		return wire.Cursor{Seq: seq}, err
	})
	ask(s, api, method("await-feed", "Wait for an event"), func(_ Registry, ctx context.Context, in wire.FeedWait) (wire.Rung, error) {
		return s.awaitFeed(ctx, in)
	})
	ask(s, api, method("attempts", "List an item's attempts"), byID(func(r Registry, ctx context.Context, id string) (wire.Rows[registry.Attempt], error) {
		attempts, err := r.Attempts(ctx, id)
		return wire.Rows[registry.Attempt]{Rows: attempts}, err
	}))
	ask(s, api, method("report", "Show a batch's report"), func(r Registry, ctx context.Context, in wire.ReportRequest) (registry.BatchReport, error) {
		return r.ReportOf(ctx, in.BatchID, in.Closing)
	})
	ask(s, api, method("reports", "List a batch's reports"), func(r Registry, ctx context.Context, in wire.ReportsRequest) (wire.Rows[registry.BatchReport], error) {
		reports, err := r.Reports(ctx, in.BatchID, in.Before, in.Limit)
		return wire.Rows[registry.BatchReport]{Rows: reports}, err
	})
	ask(s, api, method("report-jobs", "List the jobs of a report"), func(r Registry, ctx context.Context, q registry.ReportQuery) (wire.Rows[registry.JobResult], error) {
		jobs, err := r.ReportJobs(ctx, q)
		return wire.Rows[registry.JobResult]{Rows: jobs}, err
	})
	ask(s, api, method("object", "Show an object"), byID(Registry.Object))
	ask(s, api, method("objects", "List objects"), Registry.Objects)
	ask(s, api, method("deletions", "List the deletions that wait for another person"), Registry.Deletions)
	ask(s, api, method("files", "List the files of an object's version"), func(r Registry, ctx context.Context, in wire.FilesRequest) (wire.Rows[wire.FileRow], error) {
		files, err := r.Files(ctx, in.ObjectID, in.Version, string(in.After), in.Limit)
		return wire.Rows[wire.FileRow]{Rows: wire.FilesOf(files)}, err
	})
	ask(s, api, method("file-history", "List the files of all versions of an object"), func(r Registry, ctx context.Context, in wire.FilesRequest) (wire.Rows[wire.FileRow], error) {
		files, err := r.FileHistory(ctx, in.ObjectID, registry.FilePlace{Path: string(in.After), Version: in.Version}, in.Limit)
		return wire.Rows[wire.FileRow]{Rows: wire.FilesOf(files)}, err
	})
	ask(s, api, method("premis-events", "List an object's preservation events"), func(r Registry, ctx context.Context, in wire.PremisRequest) (registry.Page[registry.Premis], error) {
		return r.PremisEvents(ctx, in.ObjectID, in.After, in.Limit)
	})
	ask(s, api, method("restorations", "List an object's restores"), func(r Registry, ctx context.Context, in wire.RestorationsRequest) (wire.Rows[registry.Restoration], error) {
		list, err := r.Restorations(ctx, in.ObjectID, in.Before, in.Limit)
		return wire.Rows[registry.Restoration]{Rows: list}, err
	})
	ask(s, api, method("restoration", "Show the restore that an item carries out"), byID(Registry.RestorationOf))
	ask(s, api, method("deposit-receipt", "Show what is signed of a version"), func(r Registry, ctx context.Context, in wire.VersionRef) (registry.DepositReceipt, error) {
		return r.DepositReceipt(ctx, in.ObjectID, in.Version)
	})
	ask(s, api, method("receipt-keys", "List the keys of receipts"), rows(Registry.ReceiptKeys))
	ask(s, api, method("collection", "Show a collection"), byID(Registry.Collection))
	ask(s, api, method("profile-versions", "List the versions of a collection's profile"), func(r Registry, ctx context.Context, in wire.ProfileVersionsRequest) (wire.Rows[registry.ProfileVersion], error) {
		list, err := r.ProfileVersions(ctx, in.Mnemonic, in.Before, in.Limit)
		return wire.Rows[registry.ProfileVersion]{Rows: list}, err
	})
	ask(s, api, method("collections", "List collections"), rows(Registry.Collections))
	ask(s, api, method("workers", "List workers"), rows(Registry.Workers))
	ask(s, api, method("claimed", "List what a token has claimed"), func(r Registry, ctx context.Context, in wire.ByID) (wire.Rows[registry.WorkItem], error) {
		list, err := r.Claimed(ctx, in.ID)
		return wire.Rows[registry.WorkItem]{Rows: list}, err
	})
	ask(s, api, method("ping", "Tell whether the Registry answers"), func(r Registry, ctx context.Context, _ wire.Nothing) (wire.Nothing, error) {
		return wire.Nothing{}, r.Ping(ctx)
	})
}

// forwardingRoutes are an admin's: who forwards shows receivers what no worker has to see.
func (s *server) forwardingRoutes(api huma.API) {
	ask(s, api, act("put-subscription", "Make or change a subscription"), func(r Registry, ctx context.Context, in wire.SubscriptionRecord) (registry.Subscription, error) {
		return r.PutSubscription(ctx, in.Whole())
	})
	tell(s, api, act("remove-subscription", "End a subscription"), func(r Registry, ctx context.Context, in wire.SubscriptionAct) error {
		return r.RemoveSubscription(ctx, in.Name, in.Actor)
	})
	ask(s, api, act("rewind-subscription", "Move the cursor of a subscription"), func(r Registry, ctx context.Context, in wire.SubscriptionAct) (registry.Subscription, error) {
		return r.RewindSubscription(ctx, in.Name, in.Cursor, in.Reason, in.Actor)
	})
	ask(s, api, act("pause-subscription", "Send nothing more"), func(r Registry, ctx context.Context, in wire.SubscriptionAct) (registry.Subscription, error) {
		return r.PauseSubscription(ctx, in.Name, in.Reason, in.Actor)
	})
	ask(s, api, act("resume-subscription", "Go on after a pause"), func(r Registry, ctx context.Context, in wire.SubscriptionAct) (registry.Subscription, error) {
		return r.ResumeSubscription(ctx, in.Name, in.Actor)
	})
	ask(s, api, method("subscriptions", "List subscriptions"), rows(Registry.Subscriptions))
	ask(s, api, method("take-subscriptions", "Take the subscriptions that nobody forwards"), func(r Registry, ctx context.Context, in wire.SubscriptionTaking) (wire.Rows[registry.SubscriptionTurn], error) {
		list, err := r.TakeSubscriptions(ctx, in.Owner, in.Lease)
		return wire.Rows[registry.SubscriptionTurn]{Rows: list}, err
	})
	tell(s, api, method("note-forwarded", "Note how far a subscription is"), Registry.NoteForwarded)
	tell(s, api, method("note-unforwarded", "Note a try that failed"), Registry.NoteUnforwarded)
	tell(s, api, method("release-subscriptions", "Let others take what a process forwards"), func(r Registry, ctx context.Context, in wire.SubscriptionTaking) error {
		return r.ReleaseSubscriptions(ctx, in.Owner)
	})
}

// byID makes a handler of a method that has an id.
func byID[O any](do func(Registry, context.Context, string) (O, error)) func(Registry, context.Context, wire.ByID) (O, error) {
	return func(r Registry, ctx context.Context, in wire.ByID) (O, error) { return do(r, ctx, in.ID) }
}

// all makes a handler of a method that has no argument.
func all[O any](do func(Registry, context.Context) (O, error)) func(Registry, context.Context, wire.Nothing) (O, error) {
	return func(r Registry, ctx context.Context, _ wire.Nothing) (O, error) { return do(r, ctx) }
}

// rows makes a handler of a method that lists everything.
func rows[T any](do func(Registry, context.Context) ([]T, error)) func(Registry, context.Context, wire.Nothing) (wire.Rows[T], error) {
	return func(r Registry, ctx context.Context, _ wire.Nothing) (wire.Rows[T], error) {
		list, err := do(r, ctx)
		return wire.Rows[T]{Rows: list}, err
	}
}

// awaitFeed answers when there is an event, or when it has waited as long as it was asked to.
func (s *server) awaitFeed(ctx context.Context, in wire.FeedWait) (wire.Rung, error) {
	waiting, cancel := s.polling(ctx, in.Wait)
	defer cancel()
	err := s.registry.AwaitFeed(waiting, in.After)
	rung := wire.Rung{Rung: err == nil}
	if waiting.Err() != nil {
		return rung, nil
	}
	return rung, err
}
