package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// DeliveryReader lists what receivers were told.
type DeliveryReader interface {
	// Deliveries lists what receivers were told of an item, oldest first.
	Deliveries(ctx context.Context, itemID string) ([]Delivery, error)
}

// Notifying has messages made that no step of a job makes.
type Notifying interface {
	// Redeliver has it told once more how a job ended, to the callback that its collection has now,
	// by an item of action deliver, which it returns. Of a batch its last report, or why it could
	// not be read, is mailed once more: to the addresses that its submission named and those that
	// its collection has now, by an item each, of which the first is returned. ErrNoCallback when
	// there is none, ErrNoMail when there is no address or no mail server, ErrInvalid for an item
	// of which nothing is told (yet), ErrIdempotencyConflict as for Submit.
	Redeliver(ctx context.Context, r RedeliverRequest) (WorkItem, error)
	// MakeDigest makes a mail to each address unless this period's was made, by whichever process,
	// and returns how many it made. ErrInvalid when [DigestRequest.Check] refuses it.
	MakeDigest(ctx context.Context, r DigestRequest) (made int, err error)
}

// Callback says whom a collection has told how its jobs ended.
type Callback struct {
	// URL is https:// or http:// without user, password or query, since everybody may see it who
	// sees the job; {job} stands for the job's id. What the receiver asks for is a credential of
	// the collection for its origin.
	URL string `json:"url" doc:"https:// or http://, without user, password and query; {job} stands for the job's id"`
	// GoesOn: a receiver that cannot be told does not fail the job. Its delivery becomes an item of
	// its own, which goes on for days.
	GoesOn bool `json:"goes_on,omitempty" doc:"A receiver that cannot be told does not fail the job: its delivery goes on for days"`
	// CompletedOnly: jobs that fail are not told of.
	CompletedOnly bool `json:"completed_only,omitempty" doc:"Jobs that fail are not told of"`
}

// jobPlace stands for the job's id in a callback's address.
const jobPlace = "{job}"

// mostCallbackURL bounds a callback's address, in bytes.
const mostCallbackURL = 2000

// Check returns ErrInvalid, with the reason, unless a collection can have this callback. The
// address is not repeated.
func (c Callback) Check() error {
	u, err := url.Parse(c.For("a"))
	switch {
	case len(c.URL) > mostCallbackURL:
		return fmt.Errorf("%w: a callback's address has %d bytes at most", ErrInvalid, mostCallbackURL)
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%w: a callback's address is https://HOST/..., or http://", ErrInvalid)
	case u.User != nil || strings.ContainsAny(c.URL, "?#"):
		return fmt.Errorf("%w: a callback's address has no user, password, query or fragment; what its receiver asks for is set by collection credential set", ErrInvalid)
	}
	if other, err := url.Parse(c.For("b")); err != nil || other.Host != u.Host {
		return fmt.Errorf("%w: a callback's host does not depend on the job", ErrInvalid)
	}
	return nil
}

// For is the address to be told of a job.
func (c Callback) For(jobID string) string {
	return strings.ReplaceAll(c.URL, jobPlace, url.PathEscape(jobID))
}

// Target names the receiver for people.
func (c Callback) Target() string {
	u, err := url.Parse(c.For(""))
	if err != nil {
		return "its callback"
	}
	return u.Scheme + "://" + u.Host
}

// DeliverySpec is the immutable input of an item of action deliver, and names one message: to a
// callback that a job ended so, or by mail to one address.
type DeliverySpec struct {
	Subject string `json:"subject"` // the job; of a mail the batch, of a digest the item of action deliver itself
	// State is what is told, and Times how often the item had been sent back before: it may fail
	// more than once.
	State    State    `json:"state"`
	Times    int      `json:"times"`
	Callback Callback `json:"callback,omitzero"` // whom to tell, unless it is a mail
	// Mail is what a mail tells, "" of a callback; To its address.
	Mail    MailKind `json:"mail,omitempty"`
	To      string   `json:"to,omitempty"`
	Closing int64    `json:"closing,omitempty"` // of the report that it tells
	// Period and Until are when a digest's period begins and ends, in seconds since 1970.
	Period int64 `json:"period,omitempty"`
	Until  int64 `json:"until,omitempty"`
	// Again: a person wants it told once more, and why, whether it was delivered or not.
	Again  bool   `json:"again,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Why is the reason that was given for ending a batch, in words that its people may read.
	Why string `json:"why,omitempty"`
}

// ID is the message's: whoever is told twice knows by it.
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

// Title says for people what the item is about.
func (d DeliverySpec) Title() string {
	if d.Mail != "" {
		return "mail: " + d.mailTold()
	}
	return fmt.Sprintf("tell %s that job %s is %s", d.Callback.Target(), d.Subject, strings.ToLower(string(d.State)))
}

// Text says for people what is told, to whom and why.
func (d DeliverySpec) Text() string {
	text := fmt.Sprintf("%s that job %s is %s, message %s", d.Callback.Target(), d.Subject, strings.ToLower(string(d.State)), d.ID())
	if d.Mail != "" {
		text = fmt.Sprintf("%s by mail: %s, message %s", d.To, d.mailTold(), d.ID())
	}
	if d.Reason != "" {
		text += ", reason: " + d.Reason
	}
	return text
}

// Kind says by which way the message goes: callback, or mail- and what it tells.
func (d DeliverySpec) Kind() string {
	if d.Mail != "" {
		return "mail-" + string(d.Mail)
	}
	return "callback"
}

// Target names the receiver for people: the callback's server, or the address.
func (d DeliverySpec) Target() string {
	if d.Mail != "" {
		return d.To
	}
	return d.Callback.Target()
}

// Masked is the message as it may be kept for ever: a mail's address is shown in part only.
func (d DeliverySpec) Masked() DeliverySpec {
	if d.To != "" {
		d.To = MaskAddress(d.To)
	}
	return d
}

// DeliverySpecIn reads the spec of an item; ok is false when it is not about a delivery.
func DeliverySpecIn(raw json.RawMessage) (d DeliverySpec, ok bool) {
	return d, json.Unmarshal(raw, &d) == nil && d.Subject != ""
}

// Delivery is a message to a receiver, and what came of the tries to deliver it.
type Delivery struct {
	ID      string     `json:"delivery_id"` // the message's
	Subject string     `json:"subject"`     // the item that it tells of
	Kind    string     `json:"kind"`        // callback, mail-queued, mail-report, mail-failed, mail-stopped, mail-safe or mail-digest
	State   State      `json:"state"`       // that it tells
	Target  string     `json:"target"`      // the receiver, for people: a server, or a mail address
	Tries   int        `json:"tries"`
	TriedAt *time.Time `json:"tried_at,omitempty"` // last
	SentAt  *time.Time `json:"sent_at,omitempty"`
	Status  int        `json:"http_status,omitempty"` // of the last answer to a callback; 0: none came
	Error   string     `json:"error,omitempty"`       // of the last try
	ItemID  string     `json:"item_id,omitempty"`     // of action deliver, that goes on with it, or did
}

// Text says for people how the delivery stands.
func (d Delivery) Text() string {
	tries := fmt.Sprintf("%d tries", d.Tries)
	if d.Tries == 1 {
		tries = "1 try"
	}
	told := string(d.State)
	if kind, ok := strings.CutPrefix(d.Kind, "mail-"); ok {
		told = "mail " + kind
		if d.State == StateFailed {
			told += ", which tells of failures,"
		}
	}
	text := fmt.Sprintf("%s to %s: ", told, d.Target)
	switch {
	case d.SentAt != nil:
		return text + fmt.Sprintf("delivered at %s, %s", d.SentAt.UTC().Format(time.DateTime), tries)
	case d.Error != "":
		return text + fmt.Sprintf("not delivered, %s; %s", tries, d.Error)
	}
	return text + "not delivered, " + tries
}

// DeliveryTry is what one try came to. Error is "" when it was delivered.
type DeliveryTry struct {
	Message DeliverySpec `json:"message"`
	Status  int          `json:"http_status"`
	Error   string       `json:"error,omitempty"`
}

// EventDelivery is the type of the events of an item that tell of tries to deliver what became of
// it.
const EventDelivery = "delivery"

// ErrNoCallback says that there is nobody to be told.
var ErrNoCallback = errors.New("the collection has no callback")

// ErrNoMail says that nobody can be told by mail.
var ErrNoMail = errors.New("no address is to be told by mail, or the service has no mail server")

// Delivering is how workers tell receivers what became of items.
type Delivering interface {
	// NoteDelivery notes what a try came to, with an event of the message's subject, and returns
	// how the delivery stands. The lease's item is the subject itself or one of action deliver for
	// it, else ErrInvalid. A message that was delivered stays so whatever comes after. Of a subject
	// that was purged only the event is kept.
	NoteDelivery(ctx context.Context, l Lease, try DeliveryTry) (Delivery, error)
	// PassOn makes an item of action deliver that goes on with a message of the lease's item, its
	// subject. A repeat makes no second one.
	PassOn(ctx context.Context, l Lease, message DeliverySpec) error
}

// RedeliverRequest asks that it be told again how a job ended, or what a batch's last report says.
type RedeliverRequest struct {
	ItemID         string `json:"item_id"`
	Reason         string `json:"reason,omitempty"`
	Actor          string `json:"actor,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"` // "" for none
}

// Durable results of a job that say whom it tells that it completed, where that is not what its
// spec says.
const (
	// ResultCallback is the [Callback] that a requeue has aimed the job at: the one that its
	// collection had then.
	ResultCallback = "callback"
	// ResultUntold says that an admin has given the delivery up, an [Untold].
	ResultUntold = "untold"
)

// Untold is who ended the tries to tell a job's receiver, and why.
type Untold struct {
	Target string    `json:"target"` // the receiver, for people
	Actor  string    `json:"actor"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// Text says so for people.
func (u Untold) Text() string {
	text := fmt.Sprintf("%s was not told: given up by %s at %s", u.Target, u.Actor, u.At.UTC().Format(time.DateTime))
	if u.Reason != "" {
		text += ": " + u.Reason
	}
	return text
}

// Receiver is whom a job tells that it completed: the callback that it was submitted under, or the
// one that a requeue has aimed it at. It is nil when there is none, or the delivery was given up.
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

// Untold says who has given up to tell the job's receiver; ok is false when nobody has.
func (it WorkItem) Untold() (u Untold, ok bool) {
	raw, given := it.Results[ResultUntold]
	return u, given && json.Unmarshal(raw, &u) == nil
}

// tells says whether the item's next or present step has a receiver to tell.
func (it WorkItem) tells() bool {
	if it.Action != Ingest || it.Stage != Notify || it.Status == Completed {
		return false
	}
	to, err := it.Receiver()
	return err == nil && to != nil
}

// OutcomeText says of a job in a few words what its state does not: that its object is preserved
// although the job did not complete, or that it completed and its receiver was not told. It is ""
// when there is nothing to add.
func (it WorkItem) OutcomeText() string {
	stopped := it.Status == Failed || it.Status == Deleted
	switch _, given := it.Untold(); {
	case given && it.Status == Completed:
		return "preserved; callback given up"
	case it.Commitment != Preserved || !stopped:
		return ""
	case it.tells() || it.Stage == Notify && given:
		return "preserved; callback not delivered"
	}
	return "preserved; the job did not complete"
}
