// Package function is the protocol of programs that serve functions, for any HTTP client
// (docs/functions-protocol.md): announce functions, claim a task, renew, keep values, settle.
//
// Only workers' tokens may call it, and a token reaches only tasks of its functions. Behind it are
// the calls of the engine that every worker makes, so each write is fenced by the attempt and its
// token. The Service keeps no state: any Registry may answer each request.
package function

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/wire"
)

// Registry is what a Service needs of the Registry.
type Registry interface {
	registry.Working
	registry.Serving
	// Function is as in registry.Tasking.
	Function(ctx context.Context, name string) (registry.Function, error)
	// Item is as in registry.ItemReader.
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// Service is the protocol. It has no state.
type Service struct {
	*endpoint.Server

	Registry Registry // limited to what the caller may see
}

// Defaults of requests.
const (
	defaultLease = 30 * time.Second
	defaultStuck = 10 * time.Minute
	defaultLater = time.Minute
)

// Routes adds the operations.
func (s *Service) Routes() {
	const attempt = "/tasks/{id}/attempts/{n}"
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "announce-functions", Method: http.MethodPost, Path: "/functions", Summary: "Announce the functions that a program serves",
	}, s.announce)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "claim-task", Method: http.MethodPost, Path: claimPath, Nothing: "No task became ready in time; ask again",
		Summary: "Claim a task of the program's functions, or wait for one",
	}, s.claim)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "renew-task", Method: http.MethodPost, Path: attempt + renewPath, Summary: "Renew an attempt, report progress, and learn whether the task was taken away",
	}, s.renew)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "keep-value", Method: http.MethodPut, Path: attempt + "/values/{name}", Summary: "Keep a value with the task, unless it has one of that name, and get the value that holds",
	}, s.keep)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "settle-task", Method: http.MethodPost, Path: attempt + "/settle", Summary: "End an attempt with a result or an error",
	}, s.settle)
}

const (
	claimPath = "/tasks/claim"
	renewPath = "/renew"
)

// Waits reports whether a request is one of the operations that wait.
func Waits(r *http.Request) bool {
	path, ok := strings.CutPrefix(r.URL.Path, wire.Base+"/tasks/")
	return ok && r.Method == http.MethodPost && (path == "claim" || strings.HasSuffix(path, renewPath))
}

type announceInput struct {
	Body wire.FunctionsRequest
}

// announce records functions. A repeat changes nothing but the time.
func (s *Service) announce(ctx context.Context, in *announceInput) (*struct{}, error) {
	all := make([]registry.Function, len(in.Body.Functions))
	for i, f := range in.Body.Functions {
		location := fmt.Sprintf("body.functions[%d].name", i)
		if err := mayServe(ctx, location, f.Name); err != nil {
			return nil, err
		}
		all[i] = registry.Function{Name: f.Name, Title: f.Title, Args: f.Args, Result: f.Result, Policy: registry.FunctionPolicy{
			MaxAttempts: f.MaxAttempts, First: seconds(f.FirstSeconds), Factor: f.Factor, Most: seconds(f.MostSeconds), AtOnce: f.AtOnce,
		}}
	}
	return nil, s.Registry.Announce(ctx, all)
}

// mayServe refuses the name of a function, at a location of the request, for which the caller's
// token is not valid.
func mayServe(ctx context.Context, location, name string) error {
	if err := registry.CheckFunctionName(name); err != nil {
		return endpoint.Invalid("the request was refused", wire.Fault{Location: location, Message: err.Error()})
	}
	if token := access.Of(ctx).Token; !token.Serves([]registry.Stage{registry.Run.Of(name)}) {
		p := wire.NewProblem(http.StatusForbidden, wire.CodeForbidden,
			fmt.Sprintf("token %q is not valid for function %s; use a worker's token of stage %s", token.Name, name, registry.Run.Of(name)))
		p.Faults = []wire.Fault{{Location: location, Message: "not a function of this token", Found: name}}
		return p
	}
	return nil
}

// Attempt is the part of a path that names an attempt.
type Attempt struct {
	ID string `path:"id" maxLength:"200" doc:"id of the claimed task"`
	N  int64  `path:"n" minimum:"1" doc:"attempt of the claimed task"`
}

func (a Attempt) lease(ctx context.Context) registry.Lease {
	return registry.Lease{ItemID: a.ID, N: a.N, Token: access.Of(ctx).Token.ID}
}

// task returns the task of a request and its function. A task of a function that is not the
// token's is answered like one that does not exist.
func (s *Service) task(ctx context.Context, id string) (registry.WorkItem, registry.Function, error) {
	it, err := s.Registry.Item(ctx, id)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return it, registry.Function{}, err
	}
	name := it.Stage.Function()
	if err != nil || name == "" || !access.Of(ctx).Token.Serves([]registry.Stage{it.Stage}) {
		return registry.WorkItem{}, registry.Function{}, endpoint.NotFound("there is no task %.100q of this token's functions; drop it, and claim another one", id)
	}
	f, err := s.Registry.Function(ctx, name)
	return it, f, err
}

// lost turns the loss of a claim into a problem of its own code.
func lost(a Attempt, err error) error {
	if !errors.Is(err, registry.ErrClaimLost) {
		return err
	}
	return wire.NewProblem(http.StatusConflict, wire.CodeClaimLost, fmt.Sprintf(
		"attempt %d of task %s is over: the task was cancelled or taken away, the lease ran out, or the attempt was settled otherwise; stop its work and write nothing more", a.N, a.ID))
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
