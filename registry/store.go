package registry

import (
	"context"
	"encoding/json"
	"time"
)

// Store is the system of record. One conformance suite, registrytest, holds for every implementation.
//
// Every method is one transaction: it happened whole or not at all, and a returned error other than a connection's
// loss means not at all. All methods may be called concurrently. Methods that take a Lease are fenced: they return
// [ErrClaimLost] and change nothing when the lease's attempt is not the item's live one.
type Store interface {
	Receiving
	Submitting
	Working
	Preserving
	Housekeeping
	Commanding
	Requesting
	Governing
	Profiling
	Authorizing
	Entrusting
	Refusing
	Deciding
	Delivering
	Mailing
	Reading
	Attesting
	Subscribing
	Forwarding
	// Close releases the store's resources; calls after it fail.
	Close() error
}

// Submitting is how payloads come in.
type Submitting interface {
	Releasing
	// Submit makes a batch item. The collection's profile is frozen into its spec. With an idempotency key that was
	// used before, the first answer is returned again (ErrIdempotencyConflict when the arguments differ); a
	// submission of the same uploaded bytes with the same description to the same collection within the collection's
	// window answers with the first one's id, unless that one did not complete and will not, or Force is set. What it requires by item id keeps it from starting at all,
	// but says nothing of its content: what is here already stays as it is. *GraphError says that a requirement cannot be,
	// *PriorityError that a submission cannot ask for its priority, *MailRefusedError and *MailLimitError that its Mails do not
	// allow the addresses that it names; ErrNotFound names an unknown collection, upload or required item.
	Submit(ctx context.Context, s Submission) (Receipt, error)
	// Prepare adds submissions to a graph that is not sealed yet, all of them or none, in status prepare: nothing of it
	// is dispatched before Seal. A requirement of an item that is there already locks and re-checks it: one that is
	// satisfied already is born so (R12). The same content is not looked for: every node becomes a batch of its own, as
	// with Force. With an idempotency key that was used before, the first answer is returned again. *GraphError names a
	// key that is used twice or not known, an item that requires itself, a requirement that can never be satisfied, and
	// what is beyond [MostNodes], [MostEdges] or [MostItems]; ErrNotFound an unknown graph, item, upload or collection;
	// ErrSealed a graph that is sealed; *MailRefusedError and *MailLimitError are as for Submit.
	Prepare(ctx context.Context, g Graph) (PreparedGraph, error)
	// Seal makes every item of a graph that is still in prepare pending in one act, or none: *CycleError names the items
	// of a cycle, ErrNotFound an unknown graph. What was cancelled, aborted or deleted before stays so. A repeat changes
	// nothing.
	Seal(ctx context.Context, graphID, actor string) error
}

// Submission is a payload on its way in.
type Submission struct {
	Collection     string `json:"collection,omitempty"`
	Name           string `json:"name,omitempty"`     // for people; the payload's file name when empty
	Spec           Spec   `json:"spec"`               // Profile, its version, Priority and RouteVersion are filled in by Submit
	Priority       *int   `json:"priority,omitempty"` // not below 0; nil: from the profile and the batch's size
	Actor          string `json:"actor,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"` // "" for none
	Force          bool   `json:"force,omitempty"`           // make a new batch although the same content is here already
	// Requires are items that must have completed (or settled) before this one starts.
	Requires []Requirement `json:"requires,omitempty"`
	// Limits are what uploads may come to when this one, which was meant for another collection or for
	// none, counts among the collection's from now on.
	Limits []UploadLimit `json:"limits,omitempty"`
	// Mails say to which addresses the submission may have mails sent; nil: to any. They are counted in
	// the transaction that takes it in.
	Mails *MailTerms `json:"mails,omitempty"`
}

// Receipt answers a submission.
type Receipt struct {
	BatchID   string `json:"batch_id"`
	Duplicate bool   `json:"duplicate"` // BatchID is an earlier submission of the same content or key
	// NoMail: the submission names addresses, and this Registry has no mail server: nobody is told.
	NoMail bool `json:"no_mail,omitempty"`
}

// Working is what the Base worker asks: the life cycle of an attempt.
type Working interface {
	// Claim gives the stage's best ready item, nearly always the hinted one (R20), running under a new attempt;
	// or *NotClaimable with the reason why the hinted item cannot be had. Best is first what an operator put in front of
	// everything (a priority below 0), then the collection that was served longest ago in the stage, and of that the item
	// that comes first by age and priority. A repeated RequestID returns the same claim while that attempt is live. A
	// worker that is held gets nothing, for the reason held, and the hinted item is rung for again a moment later, for
	// another worker. ErrInvalid when [ClaimRequest.Check] refuses it; ErrWorkerTaken when another token has announced r.Worker;
	// ErrClaimLost when the token that asks was revoked.
	Claim(ctx context.Context, r ClaimRequest) (Claim, error)
	// Renew extends the named attempts by r.Lease from now, notes their progress and the worker's capacity, and
	// returns those that are no longer live: their work must stop and write nothing more. It also says whether a hold
	// keeps the worker from being given anything; the capacity of such a worker counts as 0. ErrInvalid for a lease that
	// [CheckLease] refuses; ErrWorkerTaken, and nothing is renewed, when another token has announced the worker's id.
	Renew(ctx context.Context, r RenewRequest) (Renewal, error)
	// Withdrawn returns the attempts of a worker that admins have taken away since a cursor, 0 at first, and the cursor to
	// go on with. It waits for one until ctx ends, and then returns none and no error; an attempt may be told twice.
	Withdrawn(ctx context.Context, worker string, after int64) (taken []Lease, next int64, err error)
	// Settle closes an attempt and decides in the same transaction what comes next. A repeat with the same outcome
	// returns the recorded verdict (R9); ErrClaimLost when somebody else closed it.
	Settle(ctx context.Context, s Settlement) (Verdict, error)
	// SaveResult sets results[name] = value unless it is set already, and returns the value that holds. ErrInvalid when
	// [CheckResults] refuses what the item would have.
	SaveResult(ctx context.Context, l Lease, name string, value json.RawMessage) (json.RawMessage, error)
	// AddJobs adds rows of a batch as jobs, at most 500 a call and in ascending order over all calls; rows that are there
	// already are left as they are (R22). results[ResultExpanded] tells how far it has come, in the same transaction. It
	// returns how many were added.
	AddJobs(ctx context.Context, l Lease, jobs []NewJob) (added int, err error)
	// FirstOf notes the validator that a batch's address has now, and returns the id of the batch that it repeats: another one
	// with the same address, validator and description in the same collection that was submitted within the collection's
	// window and completed or is under way; "" when there is none, when the batch was submitted with Force, and when its
	// payload is an upload. Of several at the same time exactly one is the first. A repeat is answered alike, whatever the
	// validator is by then. ErrInvalid: the item is not a batch being expanded.
	FirstOf(ctx context.Context, l Lease, validator string) (batchID string, err error)
	// Reserve promises bytes of a volume to the item until it completes, replacing what it had; *NoSpaceError when the
	// volume would be filled beyond r.Threshold, and for an item at download that asks for more than it has while an earlier one that holds
	// room waits for more. Two items are never promised the same free space (R24).
	Reserve(ctx context.Context, l Lease, r Reservation) error
	// CloseReport stores the batch's report of its current closing from one snapshot of its jobs, with what changed since the
	// report before, once, and returns it: a repeat returns what is stored. ErrJobsOpen when a job was sent back since the
	// batch's turn came and there is no report of this closing yet: the batch waits for it. ErrInvalid for an item that is no
	// batch at its report.
	CloseReport(ctx context.Context, l Lease) (BatchReport, error)
	// ApplyNext carries a bulk act out on its next at most 100 items, in one transaction with the cursor, so that a kill
	// neither skips nor repeats one. What an item refuses is counted and told, and does not keep the others from it.
	// Done says that there were no more.
	ApplyNext(ctx context.Context, l Lease) (BulkProgress, error)
}

// NewJob is one row of a batch.
type NewJob struct {
	// Line is the manifest's line, 1 where there is no manifest: unique in the batch, above 0. On the wire it keeps the name that
	// it had before rows were counted, since workers and Registry are not replaced at once.
	Line     int64      `json:"row"`
	Row      int64      `json:"ordinal,omitempty"` // counted from 1 in the order of the lines; 0: not known
	Name     string     `json:"name"`
	Priority int        `json:"priority"`
	Spec     Spec       `json:"spec"`
	Fault    string     `json:"fault,omitempty"` // not empty: the row is bad; the job is born failed with this note
	Class    ErrorClass `json:"class,omitempty"` // of Fault
	Code     string     `json:"code,omitempty"`  // of Fault: the rule that the row breaks
}

// Reservation asks for room on a volume.
type Reservation struct {
	Volume    string  `json:"volume"`
	Bytes     int64   `json:"bytes"`
	Used      int64   `json:"used"`      // bytes used on the volume, as measured now
	Total     int64   `json:"total"`     // bytes the volume holds
	Threshold float64 `json:"threshold"` // share of Total that may be used and promised, 0..1
	// Staged is what lies on the volume of Bytes already, and becomes the item's done_bytes; 0: what these say.
	Staged int64 `json:"staged,omitempty"`
}

// Preserving is how content becomes an object: identity, intent, inventory.
type Preserving interface {
	// Identify settles which object an item is about, and takes all the item's locks or none (R1, R8): a supplied
	// ARK, else the ARK its local ids have under Owner, else Proposed, which then belongs to the item for ever. The
	// answer is recorded in results["ark"]; a repeat returns it. *LockedError: another item has a lock or waits for
	// it in front of this one (the item is woken when it is its turn); *IdentifierMismatch; *OwnerMismatch: the object has another owner; ErrTaken: propose another;
	// *NoObject: r.Existing, and there is none; ErrInvalid: an owner or folders that are not the item's. After an error nothing is bound.
	Identify(ctx context.Context, l Lease, r IdentifyRequest) (Identity, error)
	// Intend announces version N of an object and freezes its plan, before the first final byte is written. The
	// same item's repeat returns the plan announced first; ErrIntentOpen when another item's version is open or N is
	// not the head's successor. With in.Abandon it takes the announcement back instead, with the version's files and the
	// results that in.Forget names, once two people have decided so ([Abandonment]): ErrInvalid before that. The caller has removed what
	// was written of the version. A repeat changes nothing.
	Intend(ctx context.Context, l Lease, in Intent) (Intent, error)
	// RecordFiles adds inventory rows of an intended version, at most 1,000 a call; rows that are there are left.
	RecordFiles(ctx context.Context, l Lease, objectID string, version int, files []File) error
	// RecordVersion makes an intended version, its files and its events visible as the object's head, and, when the Registry
	// has a key for that, signs the version's receipt over what the inventory then holds, in the same transaction. Repeating
	// it changes nothing, the receipt neither. With a key it is refused when the inventory does not hold as many files and
	// bytes of the version as v says.
	RecordVersion(ctx context.Context, l Lease, v VersionRecord) error
	// LockObject takes the lock of a recorded object for the item, as Identify takes a job's: nobody else changes the
	// object until the item settles. It returns the object's head, which stays so long. *LockedError when another item
	// has the lock or stands in line before this one; the item keeps its place by its time of submission and is woken when
	// it is first. A repeat changes nothing. ErrInvalid unless the item is about this object, *GoneError when it was deleted by
	// another item.
	LockObject(ctx context.Context, l Lease, objectID string) (head int, err error)
	// MarkDeleting makes the object, whose lock the item has and whose deletion by this item was approved, one that nobody can read
	// any more, and notes what remains of it. From then on the item is only carried on. ErrIntentOpen while a version of it is
	// being written, ErrNotFound when no such deletion was approved. A repeat returns what is noted.
	MarkDeleting(ctx context.Context, l Lease, objectID string, last Remains) (Deletion, error)
	// RecordDeletion notes that no byte of a marked object is left. Repeating it changes nothing.
	RecordDeletion(ctx context.Context, l Lease, objectID string, events []Premis) error
	// StoredFile returns the file that the item is to check; ErrNotFound when the object does not have it any more.
	StoredFile(ctx context.Context, l Lease) (StoredFile, error)
	// RecordCheck notes what a check of the item's file found, with its preservation events: the file is right in every
	// storage, or damaged. A step may record several, one after the other: what it found, and what it mended. ErrNotFound
	// as for StoredFile.
	RecordCheck(ctx context.Context, l Lease, r CheckRecord) error
	// HasReplicas says whether a storage holds any version of an object that was not deleted: one that is found empty all the
	// same is not the storage that is meant. False of a storage that nobody has heard of.
	HasReplicas(ctx context.Context, storage string) (bool, error)
	// KnowsObject says whether a record leads to an object: a version of it is recorded or announced, or it was deleted.
	KnowsObject(ctx context.Context, id string) (bool, error)
	// RecordRestoration makes what the item has restored, which lies at r.Place whole and right, one that can be fetched for
	// r.Keep from now on, with its preservation events. A repeat changes nothing and returns what was recorded first: of
	// several places the one that counts. ErrNotFound when the item restores nothing, *GoneError when the object was deleted
	// meanwhile, ErrInvalid when [RestorationRecord.Check] refuses it.
	RecordRestoration(ctx context.Context, l Lease, r RestorationRecord) (Restoration, error)
}

// IdentifyRequest is what is known of an object's identity.
type IdentifyRequest struct {
	Owner    string   `json:"owner"`
	Supplied string   `json:"supplied"`  // an ARK, or ""
	LocalIDs []string `json:"local_ids"` // exact strings, no duplicates
	Proposed string   `json:"proposed"`  // a fresh ARK, chosen locally
	// Existing: the object must have a version already; Proposed is not looked at.
	Existing bool `json:"existing,omitempty"`
	// EZID: Proposed is a name that EZID is to know.
	EZID bool `json:"ezid,omitempty"`
	// Refused is the item's name as it was settled, which EZID has given to somebody else: it is forgotten, with the local ids
	// that led to it, and Proposed takes its place, unless a version was announced under it.
	Refused string `json:"refused,omitempty"`
	// Folders are further locks that the item needs, each beginning with "folder:": of folders in storages that another object could
	// be given, too. They are known once the ARK is, so they come with a second request.
	Folders []string `json:"folders,omitempty"`
}

// Identity is an object's name as it was settled.
type Identity struct {
	ARK    string `json:"ark"`
	Minted bool   `json:"minted"` // Proposed was taken
	Head   int    `json:"head"`   // the object's recorded version; 0 when it is new
	// EZIDItem is the item that EZID knows the name by: the one that it was chosen for, by whichever item the object is named
	// now. "" for names that EZID does not know from us.
	EZIDItem string `json:"ezid_item,omitempty"`
}

// Intent is an announced version of an object.
type Intent struct {
	ObjectID string          `json:"object_id"`
	Version  int             `json:"version"`
	Plan     json.RawMessage `json:"plan"` // the worker's own: everything that a repeat needs to write the same bytes
	// Abandon takes the announcement back. Forget are the durable results by which the item would go on with the version.
	Abandon bool     `json:"abandon,omitempty"`
	Forget  []string `json:"forget,omitempty"`
}

// File is one inventory row: a file as it is from version on.
type File struct {
	Path        string            `json:"path"` // logical path: producer/NAME or system/NAME
	Version     int               `json:"version"`
	ContentPath string            `json:"content_path"` // in the OCFL object
	SizeBytes   int64             `json:"size_bytes"`
	Digests     map[string]string `json:"digests"`
	MIMEType    string            `json:"mime_type,omitempty"`
	Format      *Format           `json:"format,omitempty"`  // nil: nobody asked, or nothing fitted
	Deleted     bool              `json:"deleted,omitempty"` // a tombstone: the path ends with this version
	Modified    time.Time         `json:"modified,omitzero" doc:"When the producer last changed it, as its source told, or when Holdfast wrote it, of files in system/; left out when nobody knows"`
}

// Format is what a file is in PRONOM, the registry of file formats.
type Format struct {
	PUID    string `json:"puid"`              // PRONOM's identifier, such as fmt/412
	Name    string `json:"name"`              // the format's
	Version string `json:"version,omitempty"` // of the format, such as 1.4
	// Registry is the version of PRONOM that it was found in.
	Registry string `json:"registry_version"`
	Warning  string `json:"warning,omitempty"` // why it should not be relied on
}

// VersionRecord is what becomes visible when a version is recorded.
type VersionRecord struct {
	ObjectID   string    `json:"object_id"`
	Version    int       `json:"version"`
	Collection string    `json:"collection"`
	Owner      string    `json:"owner"`
	LocalIDs   []string  `json:"local_ids"`
	Title      string    `json:"title"`
	Creator    string    `json:"creator"`
	Date       string    `json:"date"`
	Files      int64     `json:"files"` // in the version's state, system files included
	SizeBytes  int64     `json:"size_bytes"`
	CreatedAt  time.Time `json:"created_at"` // as in the OCFL inventory
	Replicas   []Replica `json:"replicas"`   // of each of the item's storages one, in their order
	Inventory  string    `json:"inventory"`  // ALGORITHM:HEX of its OCFL inventory
	Events     []Premis  `json:"events"`
}

// Replica is a version of an object in one storage.
type Replica struct {
	Storage    string    `json:"storage"`     // its name
	VerifiedAt time.Time `json:"verified_at"` // when every byte of it was last read there and found right
}

// Premis is one preservation event of an object (PREMIS 3).
type Premis struct {
	ID       string    `json:"id"` // stable: a repeat has the same
	ObjectID string    `json:"object_id"`
	Version  int       `json:"version"`
	ItemID   string    `json:"item_id"`
	Type     string    `json:"type"` // a term of id.loc.gov's eventType vocabulary
	At       time.Time `json:"at"`
	Agent    string    `json:"agent"`
	Outcome  string    `json:"outcome"`
	Detail   string    `json:"detail"`
	// The Registry sets these. Seq is the event's number in the object's chain of events, from 1 on; 0: it was recorded before
	// there were chains. Hash is of the event and of the hash before it, as docs/receipt.md says.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Housekeeping is what keeps items moving without anybody asking.
type Housekeeping interface {
	// Due returns items whose message is due, per stage shared out among its collections and by rank, at most
	// window[stage] of them outstanding, and notes
	// that they were offered: committed before it returns, so that the caller publishes after (R19).
	Due(ctx context.Context, d DueRequest) ([]Wake, error)
	// Undo makes the wakes of a failed publish due again at once.
	Undo(ctx context.Context, wakes []Wake) error
	// Reoffer makes every item due at once that was offered and not answered: what is to be called when messages were
	// lost in bulk, since the queue or this process began anew (R19). What is delivered twice costs a refused claim.
	Reoffer(ctx context.Context) error
	// Sweep takes away attempts whose lease ran out or that made no progress for their StuckAfter. It is idempotent
	// and may run in several processes. After a gap in its own heartbeat it waits one lease first (R14). It also finds the
	// causes of failures that have none yet, a bounded number at a time.
	Sweep(ctx context.Context, lease time.Duration) (lost []Lease, err error)
	// Recheck makes items of action fixity for stored files whose last check is older than Every, or that somebody asked
	// to have checked, in this order, the longest unchecked first. Files that are late stay due; one has a single check
	// at a time, and none while a failed one waits for review. It also purges completed checks. It may run in several
	// processes, and does a bounded amount at a time.
	Recheck(ctx context.Context, r RecheckRequest) (Rechecked, error)
	// PurgeExpired purges what has been kept for its time, as an admin's purge would: batches that completed, when the
	// retention of the profile that they were submitted under is over, and no earlier than the same content would not repeat them, and completed items that only carried out something
	// for others (action tidy, deliver) after 30 days. A batch waits that is covered by a hold on everything, on its collection,
	// on itself or on one of its jobs, of which somebody is still to be told, or that cannot be purged now; it is looked at
	// again a day later. It returns how many batches it purged or began to, those with many jobs by a bulk act. It may run in
	// several processes, and does a bounded amount at a time.
	PurgeExpired(ctx context.Context) (batches int, err error)
	// MakeDigest makes a mail to each address unless this period's was made, by whichever process, and returns how many it made.
	// ErrInvalid when [DigestRequest.Check] refuses it.
	MakeDigest(ctx context.Context, r DigestRequest) (made int, err error)
	// Woken delivers a value soon after a commit that made a message due. It is a hint; polling is the fallback.
	Woken() <-chan struct{}
}

// DueRequest bounds what the relay offers.
type DueRequest struct {
	Window  int           `json:"window"`  // outstanding messages a live slot of a stage, and at least this many a stage
	Renudge time.Duration `json:"renudge"` // first repeat of an unanswered message; doubles up to RenudgeMax
	// RenudgeMax is the longest wait between repeats.
	RenudgeMax time.Duration `json:"renudge_max"`
}

// Commanding is what operators do to items.
type Commanding interface {
	// Command applies an admin act to an item at once, whether or not it runs; *TransitionError when the state machine does
	// not have it, *ConfirmationNeeded when it has consequences that c does not confirm. An item that runs loses its
	// attempt to cancel, abort and delete: its worker hears of it by Withdrawn, and a late success is refused (R18). Past
	// the point of no return these three are refused (R7). A repeat with the same idempotency key changes nothing and is
	// answered with the item as it is.
	Command(ctx context.Context, c Command) (WorkItem, error)
	// Bulk makes an item of its own that carries an act out on every item that matches a query at this moment. It runs in
	// the background with progress, can be cancelled, and is one audit entry. ErrIdempotencyConflict as for Submit.
	Bulk(ctx context.Context, b BulkRequest) (WorkItem, error)
	// Redeliver has it told once more how a job ended, to the callback that its collection has now, by an item of action
	// deliver, which it returns. Of a batch its last report, or why it could not be read, is mailed once more: to the addresses
	// that its submission named and those that its collection has now, by an item each, of which the first is returned.
	// ErrNoCallback when there is none, ErrNoMail when there is no address or no mail server, ErrInvalid for an item of which
	// nothing is told (yet), ErrIdempotencyConflict as for Submit.
	Redeliver(ctx context.Context, r RedeliverRequest) (WorkItem, error)
}

// Requesting is what people ask for about preserved objects.
type Requesting interface {
	// RequestObject makes an item about a preserved object. It belongs to the object's collection and to the storage volume
	// that its version lies on, so that holds on these cover it; its first event tells what was asked, by whom and why.
	// ErrNotFound for an object or version that is not recorded, ErrInvalid when [ObjectRequest.Check] refuses it,
	// *GoneError for an object that is deleted, ErrIdempotencyConflict as for Submit. While a restore of the same version is
	// under way, or what it came to can be fetched, its item is returned and none is made.
	RequestObject(ctx context.Context, r ObjectRequest) (WorkItem, error)
	// AskForCheck has every stored file of an object checked that was not since now, as Recheck gets round to it. A repeat
	// asks anew. ErrNotFound for an unknown object.
	AskForCheck(ctx context.Context, objectID, reason, actor string) error
}

// Governing is what operators do to the whole queue.
type Governing interface {
	// SetAccepting says whether submissions are taken; a repeat replaces reason and actor. While they are not, Submit and
	// Prepare return *NotAccepting, except to a repeat of a key that was used before, and everything under way goes on.
	SetAccepting(ctx context.Context, a Accepting) error
	// AddHold stops items of a scope from starting, or a worker from being given any; what runs goes on. A repeat replaces
	// reason and actor.
	AddHold(ctx context.Context, h Hold) error
	// RemoveHold lets go what no other hold covers, unless the hold is on a collection that releases one by one: then
	// every item of it that waits and that the hold covered alone gets a hold of its own instead, of scope item, with the
	// same actor and time. ErrNotFound when there is no such hold.
	RemoveHold(ctx context.Context, scope HoldScope, key, actor string) error
	// SearchOrphans makes an item of action tidy that looks for what belongs to nobody, and removes it if it is asked to; its
	// results[ResultOrphans] is an OrphanReport. ErrInvalid when [OrphanSearch.Check] refuses it, ErrIdempotencyConflict as for
	// Submit.
	SearchOrphans(ctx context.Context, r OrphanRequest) (WorkItem, error)
}

// Profiling is how collections come to be and change.
type Profiling interface {
	// PutCollection creates a collection or makes c.Profile the next version of its profile, for submissions to come. c.Version is
	// what it is saved over: the number of the version that it was made from, AnyVersion or NoVersion; *VersionError when the
	// collection is at another one. A profile that is the same as the last changes nothing. *PriorityError refuses a priority that a
	// profile cannot ask for.
	PutCollection(ctx context.Context, c Collection, actor string) error
}

// Authorizing is who may ask: the bearer tokens.
type Authorizing interface {
	// AddToken stores a bearer token's hash. A name is given once and never again, so that an actor in the history is one
	// token for ever: ErrNameTaken. ErrTaken when there is a token with this id or hash.
	AddToken(ctx context.Context, t Token) error
	// TokenByHash returns the token with this hash, or ErrNotFound when there is none or it was revoked or has expired.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	// Tokens lists all tokens, revoked ones too, oldest first.
	Tokens(ctx context.Context) ([]Token, error)
	// Claimed lists the items that run under attempts which a token claimed; none of a token that nobody heard of.
	Claimed(ctx context.Context, tokenID string) ([]WorkItem, error)
	// RevokeToken makes a token useless from now on. A repeat changes nothing; ErrNotFound when there is none, ErrLastAdmin
	// when nobody could make another token afterwards.
	RevokeToken(ctx context.Context, id, actor string) error
}

// Entrusting is how collections and subscriptions come by credentials.
type Entrusting interface {
	Unlocking
	// PutCredential keeps a credential of a collection, or of a subscription, or replaces the one of the same origin. ErrInvalid
	// when [Credential.Check] refuses it, ErrNotFound for an unknown owner. What a subscription is failing with is forgotten, and
	// it is tried at once; so it is when one of its credentials is removed.
	PutCredential(ctx context.Context, c Credential) error
	// RemoveCredential forgets a credential; ErrNotFound when there is none. Requests under way may still use it.
	RemoveCredential(ctx context.Context, collection, origin, actor string) error
}

// Refusing is how refusals become part of the audit list.
type Refusing interface {
	// Refused notes that somebody was refused something: an event of its own, type refused. Bounding how many is the
	// caller's care.
	Refused(ctx context.Context, r Refusal) error
}

// Reading is what people and pages ask. Lists are paged by key: pass the last page's Next to go on.
type Reading interface {
	Consulting
	Telling
	Tracing
	Following
	Browsing
	Collecting
	Watching
}

// Tracing is how items hang together, and what was tried and reported.
type Tracing interface {
	// Graph returns the items of a graph with their edges, or ErrNotFound.
	Graph(ctx context.Context, id string) (GraphView, error)
	// Edges returns what an item requires and what requires it, or ErrNotFound. A batch's own jobs are not among it: Items
	// lists them.
	Edges(ctx context.Context, itemID string) (requires, required []Edge, err error)
	// Attempts lists an item's attempts, oldest first.
	Attempts(ctx context.Context, itemID string) ([]Attempt, error)
	// Reports lists a batch's reports, the newest first, those of closings below before; 0: all. It is empty before the first,
	// and for what is no batch.
	Reports(ctx context.Context, batchID string, before int64, limit int) ([]BatchReport, error)
}

// Following is what happened, in order.
type Following interface {
	// Feed lists events of all items after a cursor, oldest first.
	Feed(ctx context.Context, q FeedQuery) ([]Event, error)
	// FeedEnd returns the cursor of the newest event, 0 when there is none.
	FeedEnd(ctx context.Context) (int64, error)
	// AwaitFeed returns nil soon after there is an event beyond a cursor, at once when there is one already; ctx's error
	// when that ends first.
	AwaitFeed(ctx context.Context, after int64) error
	// Audit lists what people did and were refused, newest first.
	Audit(ctx context.Context, q AuditQuery) (Page[Event], error)
}

// Browsing is what is preserved, and what became of it.
type Browsing interface {
	// Objects lists objects, newest first.
	Objects(ctx context.Context, q ObjectQuery) (Page[Object], error)
	// PremisEvents lists an object's preservation events in the order of their chain, those that are in none first. after is
	// the Next of the page before, or AfterSeq.
	PremisEvents(ctx context.Context, objectID, after string, limit int) (Page[Premis], error)
	// Restorations lists the restores of an object, the newest first, those with a number below before; 0: all. ErrNotFound
	// for an object that is not recorded.
	Restorations(ctx context.Context, objectID string, before, limit int) ([]Restoration, error)
}

// Collecting reads collections and their profiles.
type Collecting interface {
	// Collection returns one collection, or ErrNotFound.
	Collection(ctx context.Context, mnemonic string) (Collection, error)
	// ProfileVersions lists the versions of a collection's profile, the newest first, those with a number below before; 0: all.
	// ErrNotFound for an unknown collection.
	ProfileVersions(ctx context.Context, mnemonic string, before, limit int) ([]ProfileVersion, error)
	// Collections lists all collections by mnemonic.
	Collections(ctx context.Context) ([]Collection, error)
}

// Watching is whether submissions are taken, and who works.
type Watching interface {
	// Accepting says whether submissions are taken.
	Accepting(ctx context.Context) (Accepting, error)
	// Workers lists the workers that renewed within the last minute.
	Workers(ctx context.Context) ([]WorkerInfo, error)
}

// Attesting is what receipts and PREMIS documents are made of, beside what is read in any case.
type Attesting interface {
	// FileHistory lists the files of all recorded versions by path and version, after a row: each row is a file from its
	// version on until the path's next row, and a deleted one says that there is none.
	// ErrNotFound for an object that is not recorded.
	FileHistory(ctx context.Context, objectID string, after FilePlace, limit int) ([]File, error)
	// DepositReceipt returns what is signed of a recorded version, or ErrNotFound: there is no such version, or it has no receipt.
	DepositReceipt(ctx context.Context, objectID string, version int) (DepositReceipt, error)
	// ReceiptKeys lists the public keys of all receipts, in the order of their first use.
	ReceiptKeys(ctx context.Context) ([]ReceiptKey, error)
}

// Page is a part of a list.
type Page[T any] struct {
	Rows []T    `json:"rows" nullable:"false"`
	Next string `json:"next,omitempty"` // "" when this is the end
}

// ItemQuery selects items; empty fields do not restrict.
type ItemQuery struct {
	Action     Action   `json:"action"`
	ParentID   string   `json:"parent_id"`
	Collection string   `json:"collection"`
	Status     Status   `json:"status"`
	Stage      Stage    `json:"stage"`
	Text       string   `json:"text"`   // part of the name or the note
	Match      Query    `json:"match"`  // all of its terms
	Within     []string `json:"within"` // only items of these collections; nil: all, empty: none
	After      string   `json:"after"`
	Limit      int      `json:"limit"` // 0: 50; at most 500
}

// ObjectQuery selects objects; empty fields do not restrict.
type ObjectQuery struct {
	Collection string   `json:"collection"`
	Within     []string `json:"within"` // as in ItemQuery
	LocalID    string   `json:"local_id"`
	Text       string   `json:"text"` // part of ARK, title or creator
	After      string   `json:"after"`
	Limit      int      `json:"limit"`
}

// BatchProgress is a batch's jobs, added up from their rows.
type BatchProgress struct {
	BatchID   string          `json:"batch_id"`
	State     State           `json:"state"`
	Settled   bool            `json:"settled"`  // the batch itself
	Expanded  bool            `json:"expanded"` // no more jobs will come
	Jobs      int64           `json:"jobs"`
	Open      int64           `json:"open"`
	Completed int64           `json:"completed"`
	Preserved int64           `json:"preserved"`      // settled, and not completed although the object is preserved
	Failed    int64           `json:"failed"`         // all others that settled
	Content   int64           `json:"failed_content"` // of Failed: error class content
	Held      bool            `json:"held"`           // everything that is open is held
	States    map[State]int64 `json:"states"`
	Files     int64           `json:"files"` // expected so far
	DoneFiles int64           `json:"done_files"`
	Bytes     int64           `json:"bytes"` // expected so far
	DoneBytes int64           `json:"done_bytes"`
	SizeKnown bool            `json:"size_known"` // Bytes and Files are final
	Error     string          `json:"error,omitempty"`
	Class     ErrorClass      `json:"error_class,omitempty"`
	Current   []string        `json:"current,omitempty"` // names of a few running jobs
	// DuplicateOf is the id of the earlier batch that this one repeats, which therefore has no jobs; "" when it repeats none.
	DuplicateOf string `json:"duplicate_of,omitempty"`
}

// Why is the answer to "why is it waiting?".
type Why struct {
	ItemID   string    `json:"item_id"`
	Reason   Reason    `json:"reason"`
	Sentence string    `json:"sentence"`
	Actor    string    `json:"actor,omitempty"`
	Since    time.Time `json:"since"`
	Act      string    `json:"act,omitempty"` // what would let it go
}

// Object is a preserved object as the inventory knows it.
type Object struct {
	ID         string         `json:"object_id"` // its ARK
	ARK        string         `json:"ark"`
	Tenant     string         `json:"tenant"`
	Collection string         `json:"collection"`
	Owner      string         `json:"owner"`
	LocalIDs   []string       `json:"local_ids"`
	Title      string         `json:"title"`
	Creator    string         `json:"creator"`
	Date       string         `json:"date"`
	Head       int            `json:"version"`
	Files      int64          `json:"files"`
	SizeBytes  int64          `json:"size_bytes"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Gone       DeletionStatus `json:"gone,omitempty"` // deleting or deleted: nobody can read it any more
	// CheckedAt says since when every stored file of the object was read again, or first written, and found right in every
	// storage; Unchecked is the file that was not for longest, below the object's folder; Damaged is how many are known not
	// to be right somewhere. CheckAsked is since when a check of all of them is asked for and not all queued. Lists leave
	// these out.
	CheckedAt  time.Time       `json:"checked_at,omitzero"`
	Unchecked  string          `json:"unchecked,omitempty"`
	Damaged    int64           `json:"damaged,omitempty"`
	CheckAsked *time.Time      `json:"check_asked_at,omitempty"`
	Versions   []ObjectVersion `json:"versions,omitempty"`
	// Announced is the version that is being written and not recorded yet, 0 when there is none. Lists leave it out.
	Announced int       `json:"announced_version,omitempty"`
	Deletion  *Deletion `json:"deletion,omitempty"` // the last one that was asked for; not in lists
}

// ObjectVersion is one recorded version of an object.
type ObjectVersion struct {
	Version    int       `json:"version"`
	ItemID     string    `json:"item_id"`
	Files      int64     `json:"files"`
	SizeBytes  int64     `json:"size_bytes"`
	CreatedAt  time.Time `json:"created_at"`
	RecordedAt time.Time `json:"recorded_at"`
	// Inventory is ALGORITHM:HEX of the version's OCFL inventory, as recorded; "" of one that was recorded before it was noted.
	Inventory string    `json:"inventory,omitempty"`
	Replicas  []Replica `json:"replicas"` // by storage
}
