// Package submission accepts payloads and tasks: it judges and submits them, prepares graphs of
// those that depend on each other, and checks payloads without submitting them.
//
// When it answers a submission, the batch is committed. It judges an upload completely before it
// submits it, and a judgement goes on after its caller has disconnected. Receiving uploads is the
// task of web/api/upload.
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

// Options configure a Service. Server, Registry, Uploads, Staging and Gate must be set.
type Options struct {
	Server   *endpoint.Server
	Registry Registry // limited to what the caller may see
	Uploads  *upload.Service
	Staging  storage.Store
	ARKs     intake.ARKs   // judge supplied names
	Unpack   unpack.Limits // on unpacking an upload to judge it
	TempDir  string        // folder of temporary files for judging large bags; "": os.TempDir
	Gate     *gate.Gate    // admits judgements
	Mails    MailLimits
}

// Registry is what a Service needs of the Registry.
type Registry interface {
	registry.Submitting
	registry.Graphs
	registry.Tasking
	registry.Scheduling
	registry.Uploads
	registry.Profiles
	registry.CorrectionReader
	// Item is as in registry.ItemReader.
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// Service accepts payloads. Its only state are the judgements of this process.
type Service struct {
	*endpoint.Server
	Options
	judgements *judgements
}

// New returns a Service. Its goroutines judge uploads and end with the Server's Done.
func New(o Options) *Service {
	return &Service{Server: o.Server, Options: o, judgements: newJudgements(o.Server.Done, o.Server.Log)}
}

// Routes adds the operations.
func (s *Service) Routes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "submit-payload", Method: http.MethodPost, Path: "/batches", Status: http.StatusAccepted,
		Refuses: []int{http.StatusTooManyRequests, http.StatusInsufficientStorage},
		Summary: "Submit a payload: a URL or an upload",
	}, s.submit)
	s.graphRoutes()
	s.taskRoutes()
	s.scheduleRoutes()
	s.checkRoute()
}
