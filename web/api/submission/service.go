// Package submission takes payloads in: it judges them, submits them, prepares graphs of
// submissions that depend on each other, and judges beforehand what is not to be submitted.
//
// What is answered is committed: the batch is there, whatever happens next. An upload is judged
// whole before it is submitted; a judgement goes on when whoever asked for it has gone. How uploads
// come in is for web/api/upload.
package submission

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/upload"
)

// Options say how payloads are judged and where they go. Server, Registry, Uploads, Staging and
// Gate must be set.
type Options struct {
	Server   *endpoint.Server
	Registry Registry // limited to what the caller may see
	Uploads  *upload.Service
	Staging  storage.Store
	ARKs     intake.ARKs   // judge supplied names
	Unpack   unpack.Limits // on what an upload may unpack to when it is judged
	TempDir  string        // of temporary files, which judging large bags needs; "": that of os.TempDir
	Gate     *gate.Gate    // that judgements go through
	Mails    MailLimits
}

// Registry is what a Service asks.
type Registry interface {
	registry.Submitting
	registry.Graphs
	registry.Uploads
	registry.Profiles
	// Item is as in registry.ItemReader.
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// Service takes payloads in. Its only state is the judgements under way in this process.
type Service struct {
	*endpoint.Server
	Options
	judgements *judgements
}

// New returns a Service. It has no goroutines but those that judge uploads, which end with the
// Server's Done.
func New(o Options) *Service {
	return &Service{Server: o.Server, Options: o, judgements: newJudgements(o.Server.Done, o.Server.Log)}
}

// Routes adds the operations.
func (s *Service) Routes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "submit-payload", Method: http.MethodPost, Path: "/batches", Status: http.StatusAccepted,
		Refuses: []int{http.StatusTooManyRequests, http.StatusInsufficientStorage},
		Summary: "Submit a payload: a URL, or an upload",
	}, s.submit)
	s.graphRoutes()
	s.checkRoute()
}
