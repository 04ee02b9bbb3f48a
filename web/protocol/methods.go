package protocol

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Methods about an attempt (registry.Working, registry.Batching).
var (
	calls  = declare("calls", everyStage, (*Server).answerCalls)
	claim  = declare("claim", everyStage, (*Server).claim).shared()
	settle = declare("settle", everyStage, func(s *Server, ctx context.Context, se registry.Settlement) (registry.Verdict, error) {
		se.Lease.Token = s.worker(ctx)
		return s.Registry.Settle(ctx, se)
	}).shared()
	renew      = declare("renew", everyStage, (*Server).renewAttempts)
	withdrawn  = declare("withdrawn", everyStage, (*Server).awaitWithdrawn)
	saveResult = declare("save-result", everyStage, func(s *Server, ctx context.Context, in result) (json.RawMessage, error) {
		if len(in.Value) == 0 {
			return nil, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "the result was not saved: the request has no value")
		}
		return s.Registry.SaveResult(ctx, in.Lease, in.Name, in.Value)
	}).shared()
	setState = declareVoid("set-state", everyStage, func(s *Server, ctx context.Context, in fenced[json.RawMessage]) error {
		return s.Registry.SetState(ctx, in.Lease, in.Value)
	}).shared()
	addJobs = declare("add-jobs", only(registry.Expand), func(s *Server, ctx context.Context, in fenced[[]registry.NewJob]) (int, error) {
		return s.Registry.AddJobs(ctx, in.Lease, in.Value)
	})
	firstOf = declare("first-of", only(registry.Expand), func(s *Server, ctx context.Context, in fenced[string]) (string, error) {
		return s.Registry.FirstOf(ctx, in.Lease, in.Value)
	})
	reserve = declareVoid("reserve", only(registry.Provision, registry.Download, registry.Process, registry.Restore),
		(*Server).reserveRoom).shared()
	closeReport = declare("close-report", only(registry.Report), func(s *Server, ctx context.Context, in attempt) (registry.BatchReport, error) {
		return s.Registry.CloseReport(ctx, in.Lease)
	})
	applyNext = declare("apply-next", only(registry.Apply), func(s *Server, ctx context.Context, in attempt) (registry.BulkProgress, error) {
		return s.Registry.ApplyNext(ctx, in.Lease)
	})
)

// Methods of programs that serve functions (registry.Serving). Each may name only stages that its
// token is valid for.
var (
	announce   = declareVoid("announce", only(registry.Run), (*Server).announceFunctions)
	awaitReady = declare("await-ready", only(registry.Families()...), (*Server).awaitReadyStage)
	startTask  = declare("start-task", only(registry.Run), (*Server).startNewTask)
	parents    = declare("parents", only(registry.Run), func(s *Server, ctx context.Context, in attempt) ([]registry.Parent, error) {
		return s.Registry.Parents(ctx, in.Lease)
	})
)

// Methods of programs that serve namespaces (registry.Stepping).
var (
	announceNamespaces = declareVoid("announce-namespaces", only(registry.ProcessStep), (*Server).announceNamespaces)
	processOf          = declare("process-of", only(registry.ProcessStep), func(s *Server, ctx context.Context, in fenced[registry.HistoryRange]) (registry.ProcessInfo, error) {
		return s.Registry.ProcessOf(ctx, in.Lease, in.Value)
	})
)

// Methods about objects (registry.Preserving, registry.Deleting, registry.Checking,
// registry.Restoring).
var (
	identify = declare("identify", only(registry.Process), func(s *Server, ctx context.Context, in fenced[registry.IdentifyRequest]) (registry.Identity, error) {
		return s.Registry.Identify(ctx, in.Lease, in.Value)
	}).shared()
	intend = declare("intend", only(registry.Process), func(s *Server, ctx context.Context, in announcement) (registry.Intent, error) {
		in.Value.Files = filesIn(in.Files)
		return s.Registry.Intend(ctx, in.Lease, in.Value)
	}).shared()
	recordFiles = declareVoid("record-files", only(registry.Record), func(s *Server, ctx context.Context, in versionFiles) error {
		return s.Registry.RecordFiles(ctx, in.Lease, in.ObjectID, in.Version, filesIn(in.Files))
	}).shared()
	recordVersion = declareVoid("record-version", only(registry.Record), func(s *Server, ctx context.Context, in fenced[registry.VersionRecord]) error {
		return s.Registry.RecordVersion(ctx, in.Lease, in.Value)
	}).shared()
	lockObject = declare("lock-object", only(registry.Delete, registry.Fixity, registry.Copy), func(s *Server, ctx context.Context, in objectLock) (int, error) {
		return s.Registry.LockObject(ctx, in.Lease, in.Value, in.Folders...)
	})
	markDeleting = declare("mark-deleting", only(registry.Delete), func(s *Server, ctx context.Context, in deletionStart) (registry.Deletion, error) {
		return s.Registry.MarkDeleting(ctx, in.Lease, in.ObjectID, in.Last)
	})
	recordDeletion = declareVoid("record-deletion", only(registry.Delete), func(s *Server, ctx context.Context, in deletionEnd) error {
		return s.Registry.RecordDeletion(ctx, in.Lease, in.ObjectID, in.Events)
	})
	storedFile = declare("stored-file", only(registry.Fixity), func(s *Server, ctx context.Context, in attempt) (registry.StoredFile, error) {
		return s.Registry.StoredFile(ctx, in.Lease)
	})
	recordCheck = declareVoid("record-check", only(registry.Fixity), func(s *Server, ctx context.Context, in fenced[registry.CheckRecord]) error {
		return s.Registry.RecordCheck(ctx, in.Lease, in.Value)
	})
	recordCopy = declareVoid("record-copy", only(registry.Copy), func(s *Server, ctx context.Context, in fenced[registry.CopyRecord]) error {
		return s.Registry.RecordCopy(ctx, in.Lease, in.Value)
	})
	hasReplicas = declare("has-replicas", everyStage, func(s *Server, ctx context.Context, in byID) (bool, error) {
		return s.Registry.HasReplicas(ctx, in.ID)
	})
	knowsObject = declare("knows-object", only(registry.Expand, registry.Process, registry.Cleanup), func(s *Server, ctx context.Context, in byID) (bool, error) {
		return s.Registry.KnowsObject(ctx, in.ID)
	})
	recordRestoration = declare("record-restoration", only(registry.Restore),
		func(s *Server, ctx context.Context, in fenced[registry.RestorationRecord]) (registry.Restoration, error) {
			return s.Registry.RecordRestoration(ctx, in.Lease, in.Value)
		})
)

// Methods about messages to receivers (registry.Delivering), and the credentials for receivers and
// sources (registry.Unlocking).
var (
	noteDelivery = declare("note-delivery", only(registry.Notify, registry.Deliver),
		func(s *Server, ctx context.Context, in fenced[registry.DeliveryTry]) (registry.Delivery, error) {
			return s.Registry.NoteDelivery(ctx, in.Lease, in.Value)
		})
	passOn = declareVoid("pass-on", only(registry.Notify), func(s *Server, ctx context.Context, in fenced[registry.DeliverySpec]) error {
		return s.Registry.PassOn(ctx, in.Lease, in.Value)
	})
	credentials = declare("credentials", only(registry.Expand, registry.Estimate, registry.Download, registry.Process, registry.Notify, registry.Deliver),
		(*Server).sealedCredentials)
)

// Methods about uploads (registry.Uploads).
var (
	uploadByID = declare("upload-by-id", only(registry.Cleanup), ofUpload(Registry.UploadByID))
	incoming   = declare("incoming-by-id", only(registry.Cleanup), ofUpload(Registry.IncomingByID))
	release    = declare("retire-upload", only(registry.Report, registry.Cleanup), func(s *Server, ctx context.Context, in uploadRelease) (bool, error) {
		if in.Itself != nil {
			return false, nil // the upload stays; a search for orphaned data finds it
		}
		return s.Registry.ReleaseUpload(ctx, in.Lease, in.UploadID)
	})
	batchesOf = declare("batches-of", only(registry.Report, registry.Cleanup), ofUpload(Registry.BatchesOf))
)

// Methods that look something up (registry.ItemReader, registry.Inventory, registry.Evidencing).
var (
	item       = declare("item", only(registry.Deliver, registry.Cleanup), ofID(Registry.Item))
	countItems = declare("count-items", only(registry.Report, registry.Deliver, registry.Cleanup),
		func(s *Server, ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
			return s.Registry.CountItems(ctx, q)
		})
	events = declare("events", only(registry.Cleanup), func(s *Server, ctx context.Context, in eventsQuery) ([]registry.Event, error) {
		return s.Registry.Events(ctx, in.ItemID, in.After, in.Limit)
	})
	object = declare("object", only(registry.Expand, registry.Process, registry.Delete, registry.Restore, registry.Copy), ofID(Registry.Object))
	files  = declare("files", only(registry.Process, registry.Record, registry.Delete, registry.Fixity, registry.Restore, registry.Copy), func(s *Server, ctx context.Context, in filesQuery) ([]fileRow, error) {
		rows, err := s.Registry.Files(ctx, in.ObjectID, in.Version, string(in.After), in.Limit)
		return filesOf(rows), err
	})
	depositReceipt = declare("deposit-receipt", only(registry.Record, registry.Fixity, registry.Copy), func(s *Server, ctx context.Context, in versionRef) (registry.DepositReceipt, error) {
		return s.Registry.DepositReceipt(ctx, in.ObjectID, in.Version)
	})
	premisEvents = declare("premis-events", only(registry.Record, registry.Fixity, registry.Copy), func(s *Server, ctx context.Context, in premisQuery) (registry.Page[registry.Premis], error) {
		return s.Registry.PremisEvents(ctx, in.ObjectID, in.After, in.Limit)
	})
	evidencePlaces = declare("evidence-places", only(registry.Fixity), func(s *Server, ctx context.Context, in byID) (placesOfEvents, error) {
		out, err := s.Registry.EvidencePlaces(ctx, in.ID)
		return placesOfEvents(out), err
	})
	signEvents = declare("sign-events", only(registry.Fixity), func(s *Server, ctx context.Context, in eventsSpan) ([]byte, error) {
		return s.Registry.SignEvents(ctx, in.ObjectID, in.First, in.Last)
	})
	restorationOf = declare("restoration-of", only(registry.Restore), ofID(Registry.RestorationOf))
	ping          = declareVoid("ping", everyStage, func(s *Server, ctx context.Context, _ empty) error { return s.Registry.Ping(ctx) })
)

// Methods for the content of mails and callbacks (registry.ReportReader, registry.Queue,
// registry.DeliveryReader, registry.Mailing).
var (
	items = declare("items", only(registry.Deliver), func(s *Server, ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error) {
		return s.Registry.Items(ctx, q)
	})
	failures = declare("failures", only(registry.Deliver),
		func(s *Server, ctx context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error) {
			return s.Registry.Failures(ctx, q)
		})
	why           = declare("why", only(registry.Deliver), ofID(Registry.Why))
	batchProgress = declare("batch-progress", only(registry.Deliver), ofID(Registry.BatchProgress))
	batchSafety   = declare("batch-safety", only(registry.Deliver), ofID(Registry.BatchSafety))
	reportOf      = declare("report-of", only(registry.Deliver), func(s *Server, ctx context.Context, in reportRef) (registry.BatchReport, error) {
		return s.Registry.ReportOf(ctx, in.BatchID, in.Closing)
	})
	reportJobs = declare("report-jobs", only(registry.Deliver), func(s *Server, ctx context.Context, q registry.ReportQuery) ([]registry.JobResult, error) {
		return s.Registry.ReportJobs(ctx, q)
	})
	deliveries = declare("deliveries", only(registry.Notify, registry.Deliver), ofID(Registry.Deliveries))
	attention  = declare("attention", only(registry.Deliver), noArguments(Registry.Attention))
	holds      = declare("holds", only(registry.Deliver), noArguments(Registry.Holds))
	deletions  = declare("deletions", only(registry.Deliver),
		func(s *Server, ctx context.Context, q registry.DeletionQuery) (registry.Page[registry.Deletion], error) {
			return s.Registry.Deletions(ctx, q)
		})
	queueStatus = declare("queue-status", only(registry.Deliver), noArguments(Registry.QueueStatus))
)

// ofID serves a method whose only argument is an id.
func ofID[O any](do func(Registry, context.Context, string) (O, error)) func(*Server, context.Context, byID) (O, error) {
	return func(s *Server, ctx context.Context, in byID) (O, error) { return do(s.Registry, ctx, in.ID) }
}

// ofUpload is ofID for the id of an upload. It checks that the worker may ask about the upload.
func ofUpload[O any](do func(Registry, context.Context, string) (O, error)) func(*Server, context.Context, byID) (O, error) {
	return func(s *Server, ctx context.Context, in byID) (out O, err error) {
		if err := s.mayAskOfUpload(ctx, in.ID); err != nil {
			return out, err
		}
		return do(s.Registry, ctx, in.ID)
	}
}

// noArguments serves a method without arguments.
func noArguments[O any](do func(Registry, context.Context) (O, error)) func(*Server, context.Context, empty) (O, error) {
	return func(s *Server, ctx context.Context, _ empty) (O, error) { return do(s.Registry, ctx) }
}

// result is a durable result of an item.
type result struct {
	attempt
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// announcement is an intent with its rows of the inventory.
type announcement struct {
	fenced[registry.Intent]

	Files []fileRow `json:"files,omitempty"`
}

// versionFiles are inventory rows of a version.
type versionFiles struct {
	attempt
	ObjectID string    `json:"object_id"`
	Version  int       `json:"version"`
	Files    []fileRow `json:"files"`
}

// objectLock asks for the locks of an object and of folders.
type objectLock struct {
	fenced[string]
	Folders []string `json:"folders,omitempty"`
}

// deletionStart marks an object as being deleted.
type deletionStart struct {
	attempt
	ObjectID string           `json:"object_id"`
	Last     registry.Remains `json:"last"`
}

// deletionEnd records that all bytes of an object are gone.
type deletionEnd struct {
	attempt
	ObjectID string            `json:"object_id"`
	Events   []registry.Premis `json:"events"`
}

// uploadRelease asks to remove the bytes of an upload that the item no longer needs.
type uploadRelease struct {
	attempt
	UploadID string `json:"upload_id"`
	// Itself is set by workers of older versions, which did not name their attempt.
	Itself *string `json:"itself,omitempty"`
}

// withdrawnRequest is a long poll for the withdrawn attempts of a worker, after a cursor.
type withdrawnRequest struct {
	registry.WithdrawnQuery
	Wait time.Duration `json:"wait"`
}

// readyRequest asks for a ready item, and waits.
type readyRequest struct {
	Stages []registry.Stage `json:"stages"`
	Wait   time.Duration    `json:"wait"`
}

// newTask is a task that its caller runs.
type newTask struct {
	Task  registry.NewTask      `json:"task"`
	Claim registry.ClaimRequest `json:"claim"`
}

// withdrawnLeases are withdrawn attempts and the next cursor.
type withdrawnLeases struct {
	Taken []registry.Lease `json:"taken"`
	Next  int64            `json:"next"`
}

// eventsQuery asks for events of an item.
type eventsQuery struct {
	ItemID string `json:"item_id"`
	After  int64  `json:"after"`
	Limit  int    `json:"limit"`
}

// filesQuery asks for a page of a version's files. After is a path, which need not be UTF-8.
type filesQuery struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
	After    []byte `json:"after"`
	Limit    int    `json:"limit"`
}

// versionRef names a version of an object.
type versionRef struct {
	ObjectID string `json:"object_id"`
	Version  int    `json:"version"`
}

// placesOfEvents says how far an object's events lie where.
type placesOfEvents struct {
	Last   int64                    `json:"last"`
	Places []registry.EvidencePlace `json:"places"`
	Lost   []registry.LostEvents    `json:"lost,omitempty"`
	Keys   []registry.ReceiptKey    `json:"keys,omitempty"`
}

// eventsSpan names events of an object.
type eventsSpan struct {
	ObjectID string `json:"object_id"`
	First    int64  `json:"first"`
	Last     int64  `json:"last"`
}

// premisQuery asks for a page of an object's preservation events.
type premisQuery struct {
	ObjectID string `json:"object_id"`
	After    string `json:"after"`
	Limit    int    `json:"limit"`
}

// reportRef names a report.
type reportRef struct {
	BatchID string `json:"batch_id"`
	Closing int64  `json:"closing"`
}

// credential carries the sealed secret too, which the JSON of a registry.Credential omits.
type credential struct {
	Credential registry.Credential `json:"credential"`
	Sealed     string              `json:"sealed"`
}

// fileRow is a registry.File whose paths travel as bytes: a file name need not be UTF-8 and must
// not change.
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
