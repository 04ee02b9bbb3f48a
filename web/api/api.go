// Package api assembles the Registry's HTTP server: the API under /api/v1, the workers' protocol,
// health, sign-in and the pages.
//
// The operations are in the packages below it, one per subject: upload, submission, function, item,
// queue, object, checkpoint, collection, outbound, event, evidencereport, account. Shared code is in
// endpoint, access, scope, shortid, valid, lookup and redact. A subject imports these and no other
// subject, except that submission submits what upload has received. The tests of operations are here:
// they call the whole server over HTTP.
//
// Nothing is acknowledged before it is durable: an upload when its bytes and its record are stored,
// a submission when its batch is committed. Every request has a token whose role allows it. Every
// refusal is a logged problem document (RFC 9457) that says what happened, to what, and what to do.
// No input causes a 5xx status.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/metrics/state"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/account"
	"github.com/holdfast/holdfast/web/api/checkpoint"
	"github.com/holdfast/holdfast/web/api/collection"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/event"
	"github.com/holdfast/holdfast/web/api/evidencereport"
	"github.com/holdfast/holdfast/web/api/function"
	"github.com/holdfast/holdfast/web/api/item"
	"github.com/holdfast/holdfast/web/api/object"
	"github.com/holdfast/holdfast/web/api/outbound"
	"github.com/holdfast/holdfast/web/api/process"
	"github.com/holdfast/holdfast/web/api/queue"
	"github.com/holdfast/holdfast/web/api/scope"
	"github.com/holdfast/holdfast/web/api/shortid"
	"github.com/holdfast/holdfast/web/api/submission"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/health"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// Options configure the server. Registry, Staging, Objects and Log must be set.
type Options struct {
	Registry scope.Registry
	Staging  storage.Store     // stores uploads
	Objects  ocfl.Roots        // the preserved objects, by storage
	Chains   checkpoint.Chains // signs checkpoints; nil: this server cannot accept an older record
	Log      *slog.Logger
	Template noid.Template    // for minting ARKs; without a NAAN the check characters of supplied ARKs are not checked
	Version  string           // of the program
	Source   string           // the Registry's permanent identifier, for /healthz
	Keys     *secret.Keys     // encrypt credentials; nil: none can be set
	Unpack   unpack.Limits    // on unpacking an upload to judge it; the zero value means the defaults
	TempDir  string           // folder of temporary files for judging large bags; "": os.TempDir
	Gate     *gate.Gate       // admits judgements; nil: one with the defaults
	SignIn   *signin.Service  // signs in browsers; nil: cookies are ignored
	Now      func() time.Time // nil: time.Now
	// UI returns the handler of the pages, given what they read and do; nil means no pages.
	UI func(ForPages) (http.Handler, error)

	// Done is closed when the server begins to stop. Streams, which would not end otherwise, then
	// end. nil: they end with their connections.
	Done <-chan struct{}
	// KeepAlive is the interval of a stream's keep-alive messages and of checks of its token; 0: 15
	// s.
	KeepAlive time.Duration

	// UploadIdle is the time without a byte after which an upload counts as broken off; 0: 2
	// minutes.
	UploadIdle time.Duration
	// UploadKeep is how long an incoming upload is kept without further bytes; 0: 7 days.
	UploadKeep time.Duration
	// Uploads limit uploads; the zero value means no limit but the volume's size.
	Uploads upload.Limits
	Mails   submission.MailLimits
}

// ForPages is what the pages read and do on behalf of the caller. All of it needs the contexts of
// requests that the handler of [New] passes to the pages.
type ForPages struct {
	API http.RoundTripper // performs requests of the API in this process, as the caller
	// May reports whether the caller may call an operation of the API.
	May func(ctx context.Context, operation string) bool
	// Caller returns the caller's session, or one without an ID for a caller who sent a token.
	Caller func(context.Context) registry.Session
	// UploadUse returns the room and quotas of uploads that the caller may see.
	UploadUse func(context.Context) ([]registry.UploadUse, error)
	// Changes tells when something has changed that the caller may see.
	Changes interface {
		FeedEnd(ctx context.Context) (int64, error)
		AwaitFeed(ctx context.Context, after int64) error
		Good(ctx context.Context) error
		Done() <-chan struct{}
	}
	// Specification returns the OpenAPI document of [Specification], rendered once.
	Specification func() ([]byte, error)
}

// server holds the handlers around the operations.
type server struct {
	*endpoint.Server
	registry scope.Registry // limited to what the caller may see
	access   *access.Table
	ids      *shortid.Completer
	signIn   *signin.Service
	pages    http.Handler // nil: none
	health   health.Server
	metrics  http.Handler
	// metricsAlone has the metrics of the process, and that the database does not answer.
	metricsAlone http.Handler
	scrapers     scrapers
	bodies       shares // bytes of request bodies, by token
	waiting      shares // open long polls and streams, by token
	// specification is rendered on the first request: that takes longer than the rest of a start.
	specification func() ([]byte, error)
}

// New returns the handler of a whole server: API, health, sign-in and pages. Its only goroutines
// judge uploads and end with Options.Done, so it need not be closed. It bounds bodies; the
// http.Server bounds headers and idle connections. Errors are programming errors: a missing option,
// or pages that cannot be made.
func New(o Options) (http.Handler, error) {
	if o.Registry == nil || o.Staging == nil || len(o.Objects) == 0 || o.Log == nil {
		return nil, errors.New("api: Registry, Staging, Objects and Log must be set")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Gate == nil {
		o.Gate = gate.New(gate.Options{})
	}
	s := &server{registry: scope.New(o.Registry), access: access.NewTable(), signIn: o.SignIn}
	s.ids = &shortid.Completer{Registry: s.registry, Access: s.access, SignIn: o.SignIn}
	s.Server = endpoint.New(endpoint.Options{Registry: o.Registry, IDs: s.ids, Access: s.access, Log: o.Log, Now: o.Now, Done: o.Done})
	s.specification = sync.OnceValues(s.Specification)
	uploads := addOperations(s.Server, s.registry, o)
	s.workerRoute(o.Staging)
	if o.UI != nil {
		see := ForPages{
			API:       door{s.ids.Address(wire.Base, s.Fail, s.explained(s.Mux()))},
			May:       func(ctx context.Context, operation string) bool { return s.access.Permit(ctx, operation) == nil },
			Caller:    access.Person,
			UploadUse: uploads.Use,
			Changes:   changes{Registry: s.registry, server: s, done: o.Done},

			Specification: s.specification,
		}
		var err error
		if s.pages, err = o.UI(see); err != nil {
			return nil, err
		}
	}
	checks := health.RootChecks(o.Objects)
	checks["registry"], checks["staging"] = health.Answers(s.registry.Ping), health.StagingCheck(o.Staging, o.Uploads.Threshold())
	s.health = health.Server{Log: o.Log, Version: o.Version, Registry: o.Source, Checks: checks}
	metrics.Build(o.Version)
	collector := state.Collector{Registry: o.Registry, Log: o.Log, Volumes: []state.Volume{{Name: registry.DefaultStaging, Store: o.Staging}}}
	for _, root := range o.Objects {
		collector.Volumes = append(collector.Volumes, state.Volume{Name: root.Name, Store: root.Store()})
	}
	s.metrics, s.metricsAlone = metrics.Handler(collector), metrics.Handler(state.Unavailable{})
	return s.handler(), nil
}

// addOperations adds all operations of the API. limited is the Registry limited to what the caller
// may see.
func addOperations(s *endpoint.Server, limited scope.Registry, o Options) *upload.Service {
	uploads := upload.New(upload.Options{
		Server: s, Registry: limited, All: o.Registry, Staging: o.Staging, Idle: o.UploadIdle, Keep: o.UploadKeep, Limits: o.Uploads,
	})
	uploads.Routes()
	submission.New(submission.Options{
		Server: s, Registry: limited, Uploads: uploads, Staging: o.Staging, Unpack: o.Unpack, TempDir: o.TempDir, Gate: o.Gate, Mails: o.Mails,
		ARKs: intake.ARKs{Template: o.Template, Objects: o.Registry},
	}).Routes()
	(&function.Service{Server: s, Registry: limited}).Routes()
	(&item.Service{Server: s, Registry: limited}).Routes()
	(&process.Service{Server: s, Registry: limited}).Routes()
	(&queue.Service{Server: s, Registry: limited, Objects: o.Objects, Staging: o.Staging}).Routes()
	(&collection.Service{Server: s, Registry: limited, Objects: o.Objects}).Routes()
	(&object.Service{Server: s, Registry: limited, All: o.Registry, Objects: o.Objects, Staging: o.Staging}).Routes()
	(&checkpoint.Service{Server: s, Registry: limited, All: o.Registry, Objects: o.Objects, Chains: o.Chains}).Routes()
	(&account.Service{Server: s, Registry: limited, SignIn: o.SignIn}).Routes()
	(&outbound.Service{Server: s, Registry: limited, Keys: o.Keys}).Routes()
	(&evidencereport.Service{Server: s, Registry: limited, Objects: o.Objects}).Routes()
	(&event.Service{Server: s, Registry: limited, SignIn: o.SignIn, KeepAlive: o.KeepAlive}).Routes()
	return uploads
}

// handler puts the handlers around the operations together.
func (s *server) handler() http.Handler {
	top := http.NewServeMux()
	top.Handle(wire.Base+"/", s.authenticated(s.ids.Address(wire.Base, s.Fail, s.shared(s.bounded(s.mostBody, s.explained(s.Mux()))))))
	top.HandleFunc("GET "+wire.Base+"/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		text, err := s.specification()
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(text) // a failure means that the client has disconnected
	})
	s.health.Routes(top)
	top.HandleFunc("GET /metrics", s.tellMetrics)
	if s.signIn != nil {
		s.signInRoutes(top)
	}
	if s.pages != nil {
		top.Handle("/", s.signedIn(s.pages))
	}
	csrf := http.NewCrossOriginProtection()
	csrf.SetDenyHandler(http.HandlerFunc(s.crossOrigin))
	return s.guarded(csrf.Handler(s.explained(top)))
}

// Specification returns the OpenAPI 3.1 document of the API, indented. It is the same for all
// versions of the program.
func Specification() ([]byte, error) {
	s := endpoint.New(endpoint.Options{Access: access.NewTable()})
	addOperations(s, nil, Options{})
	return s.Specification()
}
