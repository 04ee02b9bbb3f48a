package protocol

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// The life of an attempt (registry.Working, registry.Batching).
var (
	claims = declare("claims", everyStage, func(s *Server, ctx context.Context, in []registry.ClaimRequest) ([]answer[registry.Claim], error) {
		return together(ctx, s, in, s.claim)
	})
	settlements = declare("settlements", everyStage, func(s *Server, ctx context.Context, in []registry.Settlement) ([]answer[registry.Verdict], error) {
		return together(ctx, s, in, func(ctx context.Context, se registry.Settlement) (registry.Verdict, error) {
			se.Lease.Token = s.worker(ctx)
			return s.Registry.Settle(ctx, se)
		})
	})
	renew      = declare("renew", everyStage, (*Server).renewAttempts)
	withdrawn  = declare("withdrawn", everyStage, (*Server).awaitWithdrawn)
	saveResult = declare("save-result", everyStage, func(s *Server, ctx context.Context, in result) (json.RawMessage, error) {
		if len(in.Value) == 0 {
			return nil, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "nothing was kept: there is no value")
		}
		return s.Registry.SaveResult(ctx, in.Lease, in.Name, in.Value)
	})
	addJobs = declare("add-jobs", of(registry.Expand), func(s *Server, ctx context.Context, in with[[]registry.NewJob]) (int, error) {
		return s.Registry.AddJobs(ctx, in.Lease, in.Value)
	})
	firstOf = declare("first-of", of(registry.Expand), func(s *Server, ctx context.Context, in with[string]) (string, error) {
		return s.Registry.FirstOf(ctx, in.Lease, in.Value)
	})
	reserve = tell("reserve", of(registry.Provision, registry.Download, registry.Process, registry.Restore),
		(*Server).reserveRoom)
	closeReport = declare("close-report", of(registry.Report), func(s *Server, ctx context.Context, in attempt) (registry.BatchReport, error) {
		return s.Registry.CloseReport(ctx, in.Lease)
	})
	applyNext = declare("apply-next", of(registry.Apply), func(s *Server, ctx context.Context, in attempt) (registry.BulkProgress, error) {
		return s.Registry.ApplyNext(ctx, in.Lease)
	})
)

// What becomes of objects (registry.Preserving, registry.Deleting, registry.Checking,
// registry.Restoring).
var (
	identify = declare("identify", of(registry.Process), func(s *Server, ctx context.Context, in with[registry.IdentifyRequest]) (registry.Identity, error) {
		return s.Registry.Identify(ctx, in.Lease, in.Value)
	})
	intend = declare("intend", of(registry.Process), func(s *Server, ctx context.Context, in with[registry.Intent]) (registry.Intent, error) {
		return s.Registry.Intend(ctx, in.Lease, in.Value)
	})
	recordFiles = tell("record-files", of(registry.Record), func(s *Server, ctx context.Context, in versionFiles) error {
		return s.Registry.RecordFiles(ctx, in.Lease, in.ObjectID, in.Version, filesIn(in.Files))
	})
	recordVersion = tell("record-version", of(registry.Record), func(s *Server, ctx context.Context, in with[registry.VersionRecord]) error {
		return s.Registry.RecordVersion(ctx, in.Lease, in.Value)
	})
	lockObject = declare("lock-object", of(registry.Delete, registry.Fixity), func(s *Server, ctx context.Context, in with[string]) (int, error) {
		return s.Registry.LockObject(ctx, in.Lease, in.Value)
	})
	markDeleting = declare("mark-deleting", of(registry.Delete), func(s *Server, ctx context.Context, in marking) (registry.Deletion, error) {
		return s.Registry.MarkDeleting(ctx, in.Lease, in.ObjectID, in.Last)
	})
	recordDeletion = tell("record-deletion", of(registry.Delete), func(s *Server, ctx context.Context, in removal) error {
		return s.Registry.RecordDeletion(ctx, in.Lease, in.ObjectID, in.Events)
	})
	storedFile = declare("stored-file", of(registry.Fixity), func(s *Server, ctx context.Context, in attempt) (registry.StoredFile, error) {
		return s.Registry.StoredFile(ctx, in.Lease)
	})
	recordCheck = tell("record-check", of(registry.Fixity), func(s *Server, ctx context.Context, in with[registry.CheckRecord]) error {
		return s.Registry.RecordCheck(ctx, in.Lease, in.Value)
	})
	hasReplicas = declare("has-replicas", everyStage, func(s *Server, ctx context.Context, in byID) (bool, error) {
		return s.Registry.HasReplicas(ctx, in.ID)
	})
	knowsObject = declare("knows-object", of(registry.Expand, registry.Process, registry.Cleanup), func(s *Server, ctx context.Context, in byID) (bool, error) {
		return s.Registry.KnowsObject(ctx, in.ID)
	})
	recordRestoration = declare("record-restoration", of(registry.Restore),
		func(s *Server, ctx context.Context, in with[registry.RestorationRecord]) (registry.Restoration, error) {
			return s.Registry.RecordRestoration(ctx, in.Lease, in.Value)
		})
)

// What receivers are told (registry.Delivering), and the secrets for it and for sources
// (registry.Unlocking).
var (
	noteDelivery = declare("note-delivery", of(registry.Notify, registry.Deliver),
		func(s *Server, ctx context.Context, in with[registry.DeliveryTry]) (registry.Delivery, error) {
			return s.Registry.NoteDelivery(ctx, in.Lease, in.Value)
		})
	passOn = tell("pass-on", of(registry.Notify), func(s *Server, ctx context.Context, in with[registry.DeliverySpec]) error {
		return s.Registry.PassOn(ctx, in.Lease, in.Value)
	})
	credentials = declare("credentials", of(registry.Expand, registry.Estimate, registry.Download, registry.Process, registry.Notify, registry.Deliver),
		(*Server).sealedCredentials)
)

// What becomes of uploads (registry.Uploads).
var (
	uploadByID = declare("upload-by-id", of(registry.Cleanup), ofUpload(Registry.UploadByID))
	incoming   = declare("incoming-by-id", of(registry.Cleanup), ofUpload(Registry.IncomingByID))
	release    = declare("retire-upload", of(registry.Report, registry.Cleanup), func(s *Server, ctx context.Context, in retirement) (bool, error) {
		if in.Itself != nil {
			return false, nil // the upload stays, for the search for orphans
		}
		return s.Registry.ReleaseUpload(ctx, in.Lease, in.UploadID)
	})
	batchesOf = declare("batches-of", of(registry.Report, registry.Cleanup), ofUpload(Registry.BatchesOf))
)

// What a step looks up (registry.ItemReader, registry.Inventory).
var (
	item       = declare("item", of(registry.Deliver, registry.Cleanup), ofID(Registry.Item))
	countItems = declare("count-items", of(registry.Report, registry.Deliver, registry.Cleanup),
		func(s *Server, ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
			return s.Registry.CountItems(ctx, q)
		})
	events = declare("events", of(registry.Cleanup), func(s *Server, ctx context.Context, in eventsQuery) ([]registry.Event, error) {
		return s.Registry.Events(ctx, in.ItemID, in.After, in.Limit)
	})
	object = declare("object", of(registry.Expand, registry.Process, registry.Delete, registry.Restore), ofID(Registry.Object))
	files  = declare("files", of(registry.Process, registry.Delete, registry.Restore), func(s *Server, ctx context.Context, in filesQuery) ([]fileRow, error) {
		rows, err := s.Registry.Files(ctx, in.ObjectID, in.Version, string(in.After), in.Limit)
		return filesOf(rows), err
	})
	restorationOf = declare("restoration-of", of(registry.Restore), ofID(Registry.RestorationOf))
	ping          = tell("ping", everyStage, func(s *Server, ctx context.Context, _ nothing) error { return s.Registry.Ping(ctx) })
)

// What messages are made of (registry.ReportReader, registry.Queue, registry.DeliveryReader,
// registry.Mailing).
var (
	items = declare("items", of(registry.Deliver), func(s *Server, ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
		return s.Registry.Items(ctx, q)
	})
	failures = declare("failures", of(registry.Deliver),
		func(s *Server, ctx context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error) {
			return s.Registry.Failures(ctx, q)
		})
	why           = declare("why", of(registry.Deliver), ofID(Registry.Why))
	batchProgress = declare("batch-progress", of(registry.Deliver), ofID(Registry.BatchProgress))
	batchSafety   = declare("batch-safety", of(registry.Deliver), ofID(Registry.BatchSafety))
	reportOf      = declare("report-of", of(registry.Deliver), func(s *Server, ctx context.Context, in reportRef) (registry.BatchReport, error) {
		return s.Registry.ReportOf(ctx, in.BatchID, in.Closing)
	})
	reportJobs = declare("report-jobs", of(registry.Deliver), func(s *Server, ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error) {
		return s.Registry.ReportJobs(ctx, q)
	})
	deliveries = declare("deliveries", of(registry.Notify, registry.Deliver), ofID(Registry.Deliveries))
	attention  = declare("attention", of(registry.Deliver), plain(Registry.Attention))
	holds      = declare("holds", of(registry.Deliver), plain(Registry.Holds))
	deletions  = declare("deletions", of(registry.Deliver),
		func(s *Server, ctx context.Context, q registry.DeletionQuery) (registry.Page[registry.Deletion], error) {
			return s.Registry.Deletions(ctx, q)
		})
	queueStatus = declare("queue-status", of(registry.Deliver), plain(Registry.QueueStatus))
)

// ofID serves a method whose only argument is an id.
func ofID[O any](do func(Registry, context.Context, string) (O, error)) func(*Server, context.Context, byID) (O, error) {
	return func(s *Server, ctx context.Context, in byID) (O, error) { return do(s.Registry, ctx, in.ID) }
}

// ofUpload is ofID for a method about an upload.
func ofUpload[O any](do func(Registry, context.Context, string) (O, error)) func(*Server, context.Context, byID) (O, error) {
	return func(s *Server, ctx context.Context, in byID) (out O, err error) {
		if err := s.mayAskOfUpload(ctx, in.ID); err != nil {
			return out, err
		}
		return do(s.Registry, ctx, in.ID)
	}
}

// plain serves a method without arguments.
func plain[O any](do func(Registry, context.Context) (O, error)) func(*Server, context.Context, nothing) (O, error) {
	return func(s *Server, ctx context.Context, _ nothing) (O, error) { return do(s.Registry, ctx) }
}

// result is a durable result of an item by its name.
type result struct {
	attempt
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// versionFiles are inventory rows of a version.
type versionFiles struct {
	attempt
	ObjectID string    `json:"object_id"`
	Version  int       `json:"version"`
	Files    []fileRow `json:"files"`
}

// marking makes an object one that is being deleted.
type marking struct {
	attempt
	ObjectID string           `json:"object_id"`
	Last     registry.Remains `json:"last"`
}

// removal says that no byte of an object is left.
type removal struct {
	attempt
	ObjectID string            `json:"object_id"`
	Events   []registry.Premis `json:"events"`
}

// retirement asks that the bytes of an upload go, which the item needs no more.
type retirement struct {
	attempt
	UploadID string `json:"upload_id"`
	// Itself comes from a worker of before it had to name its attempt.
	Itself *string `json:"itself,omitempty"`
}

// waiting asks for attempts of a worker that were taken away, after a cursor.
type waiting struct {
	registry.WithdrawnQuery
	Wait time.Duration `json:"wait"`
}

// taken are attempts that were taken away, and the cursor to go on with.
type taken struct {
	Taken []registry.Lease `json:"taken"`
	Next  int64            `json:"next"`
}

// eventsQuery asks for events of an item.
type eventsQuery struct {
	ItemID string `json:"item_id"`
	After  int64  `json:"after"`
	Limit  int    `json:"limit"`
}

// filesQuery asks for a page of a version's state. After is a path, which need not be UTF-8.
type filesQuery struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
	After    []byte `json:"after"`
	Limit    int    `json:"limit"`
}

// reportRef names a report.
type reportRef struct {
	BatchID string `json:"batch_id"`
	Closing int64  `json:"closing"`
}

// credential is one with its sealed secret, which a registry.Credential does not put into JSON.
type credential struct {
	Credential registry.Credential `json:"credential"`
	Sealed     string              `json:"sealed"`
}

// fileRow is a registry.File whose paths travel as bytes: a file name need not be UTF-8, and must
// come through unchanged.
type fileRow struct {
	registry.File

	Path        []byte `json:"path"`
	ContentPath []byte `json:"content_path"`
}

func filesOf(files []registry.File) []fileRow {
	out := make([]fileRow, len(files))
	for i, f := range files {
		out[i] = fileRow{File: f, Path: []byte(f.Path), ContentPath: []byte(f.ContentPath)}
	}
	return out
}

func filesIn(rows []fileRow) []registry.File {
	out := make([]registry.File, len(rows))
	for i, r := range rows {
		out[i] = r.File
		out[i].Path, out[i].ContentPath = string(r.Path), string(r.ContentPath)
	}
	return out
}
