package delivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/credential"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/workers/result"
)

// Callbacks sends callbacks about jobs, with the credentials and signing keys of the job's
// collection.
type Callbacks struct {
	Registry deliveries
	HTTP     *callback.Client
	Wallet   func(collection string) *credential.Wallet // a collection's credentials
	Now      func() time.Time
}

// Deliver makes one try to deliver a message about a job, and records the outcome. It does not
// repeat a message that an earlier attempt delivered, unless a person requested that. An error
// means that the message was not delivered.
func (c *Callbacks) Deliver(ctx context.Context, item *base.Item, job registry.WorkItem, m registry.DeliverySpec) error {
	return deliverOnce(ctx, c.Registry, item, m, func() (int, error) { return c.send(ctx, job, m) })
}

func (c *Callbacks) send(ctx context.Context, job registry.WorkItem, m registry.DeliverySpec) (status int, err error) {
	body, err := callbackBody(job, m)
	if err != nil {
		return 0, err
	}
	address := m.Callback.For(m.Subject)
	u, err := url.Parse(address)
	if err != nil {
		return 0, base.Fatal(errors.New("the callback's address is invalid; correct the collection's profile"))
	}
	secrets := c.Wallet(job.Collection)
	authorization, err := secrets.Header(ctx, u.Scheme+"://"+u.Host)
	if err != nil {
		return 0, err
	}
	keys, err := secrets.SigningKeys(ctx)
	if err != nil {
		return 0, err
	}
	ctx, span := tracing.Call(ctx, "callback")
	defer func() { span.End(err) }()
	span.Set("server.address", u.Hostname())
	parent := cmp.Or(tracing.Parent(ctx), registry.TraceOf(job.Spec).Parent)
	return c.HTTP.Send(ctx, address, callback.Message{ID: m.ID(), At: c.Now(), Body: body, Trace: parent}, authorization, keys...)
}

// message is the body of a callback: Merritt's fields under Merritt's names (its handler
// HandlerCallback), and Holdfast's. Unknown values are omitted.
type message struct {
	JobID            string     `json:"jobID"`
	PackageName      string     `json:"packageName,omitempty"`
	SubmissionDate   time.Time  `json:"submissionDate"`
	CompletionDate   *time.Time `json:"completionDate,omitempty"`
	JobStatus        string     `json:"jobStatus"` // COMPLETED or FAILED
	JobStatusMessage string     `json:"jobStatusMessage,omitempty"`
	PrimaryID        string     `json:"primaryID,omitempty"`
	LocalID          string     `json:"localID,omitempty"` // several are separated by "; "
	VersionID        int        `json:"versionID,omitempty"`
	HashAlgorithm    string     `json:"hashAlgorithm,omitempty"` // of the payload, as the depositor stated it
	HashValue        string     `json:"hashValue,omitempty"`
	ObjectCreator    string     `json:"objectCreator,omitempty"`
	ObjectTitle      string     `json:"objectTitle,omitempty"`
	ObjectDate       string     `json:"objectDate,omitempty"`
	QueuePriority    int        `json:"queuePriority"`
	PersistentURL    string     `json:"persistentURL,omitempty"`

	DeliveryID string              `json:"delivery_id"`
	ItemID     string              `json:"item_id"`
	BatchID    string              `json:"batch_id,omitempty"`
	Row        int64               `json:"row,omitempty"`
	Line       int64               `json:"line,omitempty"`
	Collection string              `json:"collection"`
	State      registry.State      `json:"state"`
	ObjectID   string              `json:"object_id,omitempty"`
	Version    int                 `json:"version,omitempty"`
	LocalIDs   []string            `json:"local_ids,omitempty"`
	Files      int64               `json:"files,omitempty"` // in the version, including system files
	SizeBytes  int64               `json:"size_bytes,omitempty"`
	Inventory  string              `json:"inventory,omitempty"` // ALGORITHM:HEX of the version's OCFL inventory
	Stage      registry.Stage      `json:"stage,omitempty"`     // in which it failed
	Error      string              `json:"error,omitempty"`
	ErrorClass registry.ErrorClass `json:"error_class,omitempty"`
}

func callbackBody(job registry.WorkItem, m registry.DeliverySpec) ([]byte, error) {
	var spec registry.Spec
	if err := json.Unmarshal(job.Spec, &spec); err != nil {
		return nil, fmt.Errorf("decode spec of item %s: %w", job.ID, err)
	}
	b := message{
		JobID: job.ID, PackageName: spec.Filename, SubmissionDate: spec.SubmittedAt, JobStatus: strings.ToUpper(string(m.State)),
		PrimaryID: spec.PrimaryID, LocalID: strings.Join(spec.LocalIDs, "; "), ObjectCreator: spec.Creator, ObjectTitle: spec.Title,
		ObjectDate: spec.Date, QueuePriority: job.Priority,
		DeliveryID: m.ID(), ItemID: job.ID, BatchID: job.ParentID, Row: job.Row, Line: job.Line, Collection: job.Collection, State: m.State, LocalIDs: spec.LocalIDs,
	}
	if spec.Digest != nil {
		b.HashAlgorithm, b.HashValue = spec.Digest.Algorithm, spec.Digest.Value
	}
	if m.State != registry.StateCompleted {
		b.JobStatusMessage, b.Error, b.ErrorClass, b.Stage, b.CompletionDate = job.Note, job.Note, job.ErrorClass, job.Stage, job.FinishedAt
		return json.Marshal(b)
	}
	var p result.Plan
	if err := json.Unmarshal(job.Results[registry.ResultPlan], &p); err != nil {
		return nil, fmt.Errorf("read the plan of item %s: %w", job.ID, err)
	}
	b.CompletionDate, b.PrimaryID, b.VersionID, b.LocalIDs, b.LocalID = &p.Created, p.ObjectID, p.Version, p.LocalIDs, strings.Join(p.LocalIDs, "; ")
	b.ObjectCreator, b.ObjectTitle, b.ObjectDate = p.Creator, p.Title, p.Date
	b.ObjectID, b.Version, b.Files, b.SizeBytes, b.Inventory = p.ObjectID, p.Version, p.Files, p.Bytes, p.Algorithm+":"+p.Digest
	if strings.HasPrefix(p.ObjectID, "ark:") {
		b.PersistentURL = noid.Resolver + p.ObjectID
	}
	return json.Marshal(b)
}
