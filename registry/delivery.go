package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// DeliveryReader lists deliveries.
type DeliveryReader interface {
	// Deliveries lists the deliveries about an item, oldest first.
	Deliveries(ctx context.Context, itemID string) ([]Delivery, error)
}

// Notifying creates messages that no step of a job creates.
type Notifying interface {
	// Redeliver queues another delivery of a job's outcome to its collection's present callback, as
	// an item of action deliver, which it returns. For a batch it mails the last report again, or
	// why the batch could not be read: one item for each address of the submission and of the
	// collection; it returns the first. ErrNoCallback: there is no callback. ErrNoMail: there is no
	// address or no mail server. ErrInvalid: there is nothing to deliver (yet).
	// ErrIdempotencyConflict as for Submit.
	Redeliver(ctx context.Context, r RedeliverRequest) (WorkItem, error)
	// RedeliverJobs queues another delivery of the outcome of each job of a batch that completed or
	// failed, as Redeliver does, for the next [RedeliveredAtOnce] jobs in row order. ErrNoCallback:
	// there is no callback. ErrInvalid: the item is no batch. A repeat with its idempotency key
	// queues nothing.
	RedeliverJobs(ctx context.Context, r RedeliverJobsRequest) (Redelivered, error)
	// MakeDigest creates a mail to each address unless a process has created this period's, and one
	// between periods, at most once an hour, when a check could not mend a damaged file. It returns
	// how many it created. ErrInvalid: [DigestRequest.Check] refuses it.
	MakeDigest(ctx context.Context, r DigestRequest) (made int, err error)
}

// Callback is the receiver of a collection's job outcomes.
type Callback struct {
	// URL is https:// or http:// without user, password or query, because everybody who sees the
	// job can see it; {job} stands for the job's id. The receiver's credential belongs to the
	// collection, under its origin.
	URL string `json:"url" doc:"https:// or http://, without user, password and query; {job} stands for the job's id"`
	// GoesOn reports that a failed delivery does not fail the job. The delivery becomes its own
	// item, which is retried for days.
	GoesOn bool `json:"goes_on,omitempty" doc:"A failed delivery does not fail the job; it is retried for days"`
	// CompletedOnly reports that failed jobs are not delivered.
	CompletedOnly bool `json:"completed_only,omitempty" doc:"Failed jobs are not delivered"`
}

// jobPlace is the placeholder for the job's id in a callback's URL.
const jobPlace = "{job}"

// mostCallbackURL is the largest length of a callback's URL, in bytes.
const mostCallbackURL = 2000

// Check returns ErrInvalid, with the reason, unless a collection can have this callback. The error
// does not repeat the URL.
func (c Callback) Check() error {
	u, err := url.Parse(c.For("a"))
	switch {
	case len(c.URL) > mostCallbackURL:
		return fmt.Errorf("%w: a callback's address has %d bytes at most", ErrInvalid, mostCallbackURL)
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%w: a callback's address is https://HOST/..., or http://", ErrInvalid)
	case u.User != nil || strings.ContainsAny(c.URL, "?#"):
		return fmt.Errorf("%w: a callback's address has no user, password, query or fragment; set the receiver's credential with: collection credential set", ErrInvalid)
	}
	if other, err := url.Parse(c.For("b")); err != nil || other.Host != u.Host {
		return fmt.Errorf("%w: a callback's host does not depend on the job", ErrInvalid)
	}
	return nil
}

// For returns the URL for a job.
func (c Callback) For(jobID string) string {
	return strings.ReplaceAll(c.URL, jobPlace, url.PathEscape(jobID))
}

// Target returns the receiver for people.
func (c Callback) Target() string {
	u, err := url.Parse(c.For(""))
	if err != nil {
		return "its callback"
	}
	return u.Scheme + "://" + u.Host
}

// DeliverySpec is the immutable input of an item of action deliver. It identifies one message: to a
// callback about a job's outcome, or by mail to one address.
type DeliverySpec struct {
	Subject string `json:"subject"` // the job; for a mail the batch; for a digest the delivery item itself
	// About is what people call the subject, its [WorkItem.Heading]. The Registry sets it; "": only the id is known.
	About string `json:"about,omitempty"`
	// State is the reported state. Times is how often the item had been requeued before, because it
	// may fail repeatedly.
	State    State    `json:"state"`
	Times    int      `json:"times"`
	Callback Callback `json:"callback,omitzero"` // receiver, unless it is a mail
	// Mail is the kind of mail, "" for a callback. To is its address.
	Mail    MailKind `json:"mail,omitempty"`
	To      string   `json:"to,omitempty"`
	Closing int64    `json:"closing,omitempty"` // closing of the report in it
	// Period and Until are the beginning and end of a digest's period, in seconds since 1970.
	Period int64 `json:"period,omitempty"`
	Until  int64 `json:"until,omitempty"`
	// Again: a person requested another delivery, for Reason, whether or not it was delivered.
	Again  bool   `json:"again,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Why is the reason given for ending a batch, for its depositors.
	Why string `json:"why,omitempty"`
	// Trace is that of the subject. The Registry sets it.
	Trace *Trace `json:"trace,omitempty"`
}

// ID returns the message's id, by which receivers deduplicate.
func (d DeliverySpec) ID() string {
	if d.Mail != "" {
		return d.mailID()
	}
	id := "msg_" + d.Subject + "_" + strings.ToLower(string(d.State))
	if d.State == StateFailed && d.Times > 0 {
		id += fmt.Sprintf("_%d", d.Times)
	}
	return id
}

// Called returns what people call the subject.
func (d DeliverySpec) Called() string { return cmp.Or(d.About, d.Subject) }

// Title describes the item for people.
func (d DeliverySpec) Title() string {
	if d.Mail != "" {
		return "mail: " + d.mailTold()
	}
	return fmt.Sprintf("tell %s that job %s is %v", d.Callback.Target(), d.Called(), strings.ToLower(string(d.State)))
}

// Text describes message, receiver and reason for people.
func (d DeliverySpec) Text() string {
	text := fmt.Sprintf("%s that job %s is %v, message %s", d.Callback.Target(), d.Subject, strings.ToLower(string(d.State)), d.ID())
	if d.Mail != "" {
		text = fmt.Sprintf("%s by mail: %v, message %s", d.To, d.mailTold(), d.ID())
	}
	if d.Reason != "" {
		text = fmt.Sprintf("%v, reason: %s", text, d.Reason)
	}
	return text
}

// Kind returns callback, or mail- and the kind of mail.
func (d DeliverySpec) Kind() string {
	if d.Mail != "" {
		return "mail-" + string(d.Mail)
	}
	return "callback"
}

// Target returns the receiver for people: the callback's server, or the address.
func (d DeliverySpec) Target() string {
	if d.Mail != "" {
		return d.To
	}
	return d.Callback.Target()
}

// Masked returns the message as it may be kept for ever: with a masked mail address, and without what
// people call its subject.
func (d DeliverySpec) Masked() DeliverySpec {
	d.About = ""
	if d.To != "" {
		d.To = MaskAddress(d.To)
	}
	return d
}

// DeliverySpecIn decodes the spec of an item; ok is false if it is not about a delivery.
func DeliverySpecIn(raw json.RawMessage) (d DeliverySpec, ok bool) {
	return d, json.Unmarshal(raw, &d) == nil && d.Subject != ""
}

// Delivery is a message to a receiver with the result of its tries.
type Delivery struct {
	ID      string     `json:"delivery_id"` // the message's
	Subject string     `json:"subject"`     // item in the message
	Kind    string     `json:"kind"`        // callback, mail-queued, mail-report, mail-failed, mail-stopped, mail-safe or mail-digest
	State   State      `json:"state"`       // reported state
	Target  string     `json:"target"`      // receiver, for people: a server, or a mail address
	Tries   int        `json:"tries"`
	TriedAt *time.Time `json:"tried_at,omitempty"` // last
	SentAt  *time.Time `json:"sent_at,omitempty"`
	Status  int        `json:"http_status,omitempty"` // of the last answer to a callback; 0: no answer
	Error   string     `json:"error,omitempty"`       // of the last try
	ItemID  string     `json:"item_id,omitempty"`     // item of action deliver that delivers it
}

// Text describes the delivery for people.
func (d Delivery) Text() string {
	tries := fmt.Sprintf("%d tries", d.Tries)
	if d.Tries == 1 {
		tries = "1 try"
	}
	text := fmt.Sprintf("outcome %v for %s: ", d.State, d.Target)
	if kind, ok := strings.CutPrefix(d.Kind, "mail-"); ok {
		text = fmt.Sprintf("mail %s to %s: ", kind, d.Target)
		if d.State == StateFailed {
			text = fmt.Sprintf("mail %s, which tells of failures, to %s: ", kind, d.Target)
		}
	}
	switch {
	case d.SentAt != nil:
		return text + fmt.Sprintf("delivered at %s, %v", d.SentAt.UTC().Format(time.DateTime), tries)
	case d.Error != "":
		return text + fmt.Sprintf("not delivered, %v; %s", tries, d.Error)
	}
	return text + fmt.Sprintf("not delivered, %v", tries)
}

// DeliveryTry is the result of one try. Error is "" if it was delivered.
type DeliveryTry struct {
	Message DeliverySpec `json:"message"`
	Status  int          `json:"http_status"`
	Error   string       `json:"error,omitempty"`
}

// EventDelivery is the type of events about tries to deliver an item's outcome.
const EventDelivery = "delivery"

// ErrNoCallback says that there is no receiver.
var ErrNoCallback = errors.New("the collection has no callback")

// ErrNoMail says that there is no address or no mail server.
var ErrNoMail = errors.New("there is no mail address, or the service has no mail server")

// Delivering records workers' deliveries.
type Delivering interface {
	// NoteDelivery records the result of a try with an event of the message's subject, and returns
	// the delivery. ErrInvalid: the lease's item is neither the subject nor a delivery item for it.
	// A delivered message stays delivered. For a purged subject only the event is kept.
	NoteDelivery(ctx context.Context, l Lease, try DeliveryTry) (Delivery, error)
	// PassOn creates an item of action deliver that continues with a message about the lease's
	// item. A repeat creates no second one.
	PassOn(ctx context.Context, l Lease, message DeliverySpec) error
}

// RedeliverRequest requests another delivery of a job's outcome, or of a batch's last report.
type RedeliverRequest struct {
	ItemID         string `json:"item_id"`
	Reason         string `json:"reason,omitempty"`
	Actor          string `json:"actor,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"` // "" for none
}

// RedeliverJobsRequest requests another delivery of the outcomes of a batch's jobs.
type RedeliverJobsRequest struct {
	BatchID        string `json:"batch_id"`
	After          string `json:"after,omitempty"` // Next of the call before
	Reason         string `json:"reason,omitempty"`
	Actor          string `json:"actor,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"` // "" for none
}

// RedeliveredAtOnce is of how many jobs one call of RedeliverJobs takes account.
const RedeliveredAtOnce = 250

// Redelivered says what a call of RedeliverJobs did.
type Redelivered struct {
	Queued int64  `json:"queued"` // deliveries
	Next   string `json:"next,omitempty"`
}

// Durable results of a job that replace the receiver in its spec.
const (
	// ResultCallback is the [Callback] that the collection had when the job was requeued.
	ResultCallback = "callback"
	// ResultUntold records that an admin gave up the delivery, an [Untold].
	ResultUntold = "untold"
)

// Untold says who gave up the delivery to a job's receiver, and why.
type Untold struct {
	Target string    `json:"target"` // receiver, for people
	Actor  string    `json:"actor"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Text describes it for people.
func (u Untold) Text() string {
	text := fmt.Sprintf("%s was not told: given up by %s at %s", u.Target, u.Actor, u.At.UTC().Format(time.DateTime))
	if u.Reason != "" {
		text += ": " + u.Reason
	}
	return text
}

// Receiver returns the callback for the job's completion: that of its submission, or of its
// requeue. It is nil if there is none or the delivery was given up.
func (it WorkItem) Receiver() (*Callback, error) {
	if _, given := it.Results[ResultUntold]; given {
		return nil, nil
	}
	var spec struct {
		Profile struct {
			Callback *Callback `json:"callback"`
		} `json:"profile"`
	}
	var err error
	if raw, aimed := it.Results[ResultCallback]; aimed {
		err = json.Unmarshal(raw, &spec.Profile.Callback)
	} else if len(it.Spec) > 0 {
		err = json.Unmarshal(it.Spec, &spec)
	}
	if err != nil {
		return nil, fmt.Errorf("read whom item %s tells: %w", it.ID, err)
	}
	return spec.Profile.Callback, nil
}

// Untold returns who gave up the delivery to the job's receiver; ok is false if nobody did.
func (it WorkItem) Untold() (u Untold, ok bool) {
	raw, given := it.Results[ResultUntold]
	return u, given && json.Unmarshal(raw, &u) == nil
}

// notifies reports whether the item's next or present step must notify a receiver.
func (it WorkItem) notifies() bool {
	if it.Action != Ingest || it.Stage != Notify || it.Status == Completed {
		return false
	}
	to, err := it.Receiver()
	return err == nil && to != nil
}

// OutcomeText describes what the job's state does not say: that the object is preserved although
// the job did not complete, or that the job completed and its receiver was not notified. Otherwise
// it is "".
func (it WorkItem) OutcomeText() string {
	stopped := it.Status == Failed || it.Status == Deleted
	switch _, given := it.Untold(); {
	case given && it.Status == Completed:
		return "preserved; callback given up"
	case it.Commitment != Preserved || !stopped:
		return ""
	case it.notifies() || it.Stage == Notify && given:
		return "preserved; callback not delivered"
	}
	return "preserved; the job did not complete"
}
