// Package protocol is how workers in other processes call the Registry over HTTP. Both ends are
// here: [Server] answers from a store, [Client] is a registry.ForWorkers that asks. Each method is
// declared once, in methods.go, with its name, its arguments, and the stages whose workers may call
// it.
//
// An error of the contract arrives with all its fields. Every write of an attempt is fenced by the
// token that claimed it. No answer means registry.ErrUnavailable. The package knows neither how a
// token is proven nor how a problem is written: the public API around it does. The protocol is no
// part of that API, and changes with the workers.
package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Path is where the methods lie below the API. Each is a POST to Path and its name, with its
// arguments in JSON.
const Path = "/work/"

// method is a call that both ends know.
type method[I, O any] struct{ name string }

// served is a method as the server has it.
type served struct {
	stages []registry.Stage // whose workers may ask it; nil: all
	serve  func(ctx context.Context, s *Server, body []byte) (any, error)
}

// table has all methods by their names.
var table = map[string]served{}

// declare puts a method into the table. Where its arguments are those of an attempt, they get the
// token that asks.
func declare[I, O any](name string, stages []registry.Stage, do func(*Server, context.Context, I) (O, error)) method[I, O] {
	table[name] = served{stages, func(ctx context.Context, s *Server, body []byte) (any, error) {
		var in I
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeBadRequest, fmt.Sprintf(
				"the arguments of %s cannot be understood: %v; is this worker of the same version as the Registry?", name, err))
		}
		if f, ok := any(&in).(interface{ fence(token string) }); ok {
			f.fence(s.worker(ctx))
		}
		return do(s, ctx, in)
	}}
	return method[I, O]{name}
}

// tell declares a method without a result.
func tell[I any](name string, stages []registry.Stage, do func(*Server, context.Context, I) error) method[I, nothing] {
	return declare(name, stages, func(s *Server, ctx context.Context, in I) (nothing, error) { return nothing{}, do(s, ctx, in) })
}

// Stages are the names of all methods, each with the stages whose workers may ask it; nil is all.
func Stages() map[string][]registry.Stage {
	out := map[string][]registry.Stage{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		out[name] = table[name].stages
	}
	return out
}

// of is a list of stages.
func of(stages ...registry.Stage) []registry.Stage { return stages }

// everyStage may ask what every attempt needs.
var everyStage []registry.Stage

// nothing is an argument, or a result, that says no more than that it came.
type nothing struct{}

// attempt names the attempt that writes.
type attempt struct {
	Lease registry.Lease `json:"lease"`
}

func (a *attempt) fence(token string) { a.Lease.Token = token }

// with is what an attempt writes.
type with[T any] struct {
	attempt
	Value T `json:"value"`
}

// byID names one thing.
type byID struct {
	ID string `json:"id"`
}
