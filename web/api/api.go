// Package api serves a registry.Store over HTTP under /api/v1, and the pages beside it.
//
// Nothing is acknowledged before it is durable: an upload when its bytes and its record are stored,
// a submission when its batch is committed. Every request belongs to a token whose role allows it.
// Every refusal is a problem document (RFC 9457) that says what happened, to what, and what to do,
// and is logged. No input, however odd, is answered by a status of the 500s.
package api

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/seal"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// Registry is what the API needs of a registry.Store.
type Registry interface {
	registry.Receiving
	registry.Submitting
	registry.Working
	registry.Preserving
	registry.Commanding
	registry.Requesting
	registry.Governing
	registry.Profiling
	registry.Authorizing
	registry.Entrusting
	registry.Refusing
	registry.Deciding
	registry.Delivering
	registry.Mailing
	registry.Reading
	registry.Attesting
	registry.Subscribing
}

// Options says what to serve. Registry, Staging, Objects and Log must be set.
type Options struct {
	Registry Registry
	Staging  storage.Store // where uploads are kept
	Objects  ocfl.Roots    // the preserved objects, by storage
	Chains   Chains        // sign checkpoints; nil: an older record cannot be accepted here
	Log      *slog.Logger
	Template mint.Template    // that names are drawn from; without a NAAN the check characters of supplied ARKs are not judged
	Version  string           // of the program
	Keys     *seal.Keys       // seal credentials; nil: none can be set
	Unpack   unpack.Limits    // on what an upload may unpack to when it is judged; the zero value has defaults
	TempDir  string           // of temporary files, which judging large bags needs; "": that of os.TempDir
	Gate     *gate.Gate       // that judgements go through; nil: one with the defaults
	UI       http.Handler     // the pages, for whoever has signed in; nil: none
	SignIn   *signin.Service  // signs browsers in; nil: cookies count for nothing
	Now      func() time.Time // nil: time.Now

	// Done is closed when the server is about to stop: streams end then, which would last for ever otherwise. nil: they end
	// with their connections.
	Done <-chan struct{}
	// KeepAlive is the time between two signs of life of a stream, in which a token that has ended is noticed; 0: 15 s.
	KeepAlive time.Duration

	// UploadIdle is how long an upload may bring nothing before it counts as broken off; 0: 2 minutes.
	UploadIdle time.Duration
	// UploadKeep is how long an upload that has not ended is kept when nothing more comes of it; 0: 7 days.
	UploadKeep time.Duration
	// Uploads bound them; the zero value sets no limit but the volume's size.
	Uploads UploadLimits
	Mails   MailLimits
}

// server is what all handlers share. It has no state but that of the uploads under way.
type server struct {
	registry    Registry    // limited to what the request's token may see
	all         Registry    // for what must be known whoever asks; nothing of it is shown
	arks        intake.ARKs // judges supplied names
	staging     storage.Store
	objects     ocfl.Roots
	chains      Chains
	keys        *seal.Keys
	log         *slog.Logger
	version     string
	unpack      unpack.Limits
	tempDir     string
	ui          http.Handler
	signIn      *signin.Service
	now         func() time.Time
	idle        time.Duration
	done        <-chan struct{}
	keepUploads time.Duration
	uploads     UploadLimits
	mails       MailLimits
	keepAlive   time.Duration
	access      map[string][]registry.Role
	stages      map[string][]registry.Stage // whose workers may do an operation
	refusals    refusals
	inUse       *inUse
	receivers   *receivers
	judgements  *judgements
	gate        *gate.Gate
}

// New returns the handler for a whole server: API, health, sign-in and pages. It has no goroutines but those that judge
// uploads, which end with Options.Done, and need not be closed. Bodies are bounded here; the http.Server bounds headers and idle connections. The errors are a
// programmer's: an option is missing.
func New(o Options) (http.Handler, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	return s.handler(s.routes()), nil
}

func newServer(o Options) (*server, error) {
	if o.Registry == nil || o.Staging == nil || len(o.Objects) == 0 || o.Log == nil {
		return nil, errors.New("api: Registry, Staging, Objects and Log must be set")
	}
	s := &server{
		registry: Scoped(o.Registry), all: o.Registry, staging: o.Staging, objects: o.Objects, chains: o.Chains, keys: o.Keys, log: o.Log, version: o.Version, unpack: o.Unpack, tempDir: o.TempDir, ui: o.UI, signIn: o.SignIn,
		now: o.Now, idle: o.UploadIdle, done: o.Done, keepAlive: o.KeepAlive, access: access(), stages: stagesOf(), inUse: newInUse(), receivers: newReceivers(),
		keepUploads: o.UploadKeep, uploads: o.Uploads, mails: o.Mails, judgements: newJudgements(o.Done, o.Log), gate: o.Gate,
		arks: intake.ARKs{Template: o.Template, Objects: o.Registry},
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.gate == nil {
		s.gate = gate.New(gate.Options{})
	}
	if s.keepAlive <= 0 {
		s.keepAlive = keepAlive
	}
	if s.idle <= 0 {
		s.idle = 2 * time.Minute
	}
	if s.keepUploads <= 0 {
		s.keepUploads = 7 * 24 * time.Hour
	}
	return s, nil
}

// routes registers every operation. Those with a body or an answer of any length bypass huma, which holds them in memory.
func (s *server) routes() (*http.ServeMux, huma.API) {
	mux := http.NewServeMux()
	api := s.newHuma(mux)
	s.submitRoutes(api)
	s.batchRoutes(api)
	s.reportRoutes(api, mux)
	s.itemRoutes(api)
	s.graphRoutes(api)
	s.adminRoutes(api)
	s.queueRoutes(api)
	s.objectRoutes(api)
	s.deletionRoutes(api)
	s.restorationRoutes(api)
	s.tokenRoutes(api)
	s.sessionRoutes(api)
	s.credentialRoutes(api)
	s.subscriptionRoutes(api)
	s.feedRoutes(api)
	s.eventsRoute(api, mux)
	s.uploadRoute(api, mux)
	s.checkRoute(api, mux)
	s.tusRoutes(api, mux)
	s.contentRoute(api, mux)
	s.restoredRoute(api, mux)
	s.receiptRoute(api, mux)
	s.premisRoute(api, mux)
	s.workerRoute(mux)
	return mux, api
}

// handler puts together what stands around the operations.
func (s *server) handler(routes *http.ServeMux, api huma.API) http.Handler {
	// To write it down takes longer than all the rest of a start, and few ask for it.
	spec := sync.OnceValues(func() ([]byte, error) { return specification(api) })
	top := http.NewServeMux()
	top.Handle(wire.Base+"/", s.authenticated(s.wholeIDs(wire.Base, s.bounded(s.mostBody, s.explained(routes)))))
	top.HandleFunc("GET "+wire.Base+"/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		text, err := spec()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(text) // the reader has gone if this fails
	})
	checks := RootChecks(s.objects)
	checks["registry"], checks["staging"] = Answers(s.registry.Ping), StagingCheck(s.staging, s.uploads.full())
	Health{Log: s.log, Version: s.version, Checks: checks}.Routes(top)
	if s.signIn != nil {
		s.signInRoutes(top)
	}
	if s.ui != nil {
		top.Handle("/", s.pages())
	}
	csrf := http.NewCrossOriginProtection()
	csrf.SetDenyHandler(http.HandlerFunc(s.crossOrigin))
	return s.guarded(csrf.Handler(s.explained(top)))
}

// Specification returns the OpenAPI 3.1 document of the API, indented. It does not depend on the program's version.
func Specification() ([]byte, error) {
	s := &server{access: access(), stages: stagesOf()}
	_, api := s.routes()
	return specification(api)
}

func (s *server) submitRoutes(api huma.API) {
	register(s, api, operation{
		id: "submit-payload", method: http.MethodPost, path: "/batches", status: http.StatusAccepted,
		refuses: []int{http.StatusTooManyRequests, http.StatusInsufficientStorage},
		summary: "Submit a payload: a URL, or an upload",
	}, s.submit)
	register(s, api, operation{
		id: "remove-upload", method: http.MethodDelete, path: "/uploads/{id}", refuses: []int{http.StatusPreconditionFailed, http.StatusLocked},
		summary: "Remove an upload that was never submitted, or give up one on its way",
	}, s.dropUpload)
	register(s, api, operation{
		id: "list-uploads", method: http.MethodGet, path: "/uploads",
		summary: "List your uploads that are on their way, or with all=true also those that have ended and take room; everybody's for an admin",
	}, s.listUploads)
	register(s, api, operation{
		id: "read-upload", method: http.MethodGet, path: "/uploads/{id}", summary: "Show how far an upload is",
	}, s.readUpload)
}
