// Package protocol is how workers in other processes call the Registry over HTTP. Both ends are
// here: [Server] answers from a store, and [Client] is a registry.ForWorkers that calls it. Each
// method is declared once, in methods.go, with its name, its arguments, and the stages whose
// workers may call it.
//
// Errors of the contract arrive with all their fields. Every write of an attempt is fenced by the
// token that claimed it. A call without an answer fails with registry.ErrUnavailable. The public
// API around this package authenticates tokens and writes problems. The protocol is no part of that
// API: it changes with the workers.
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

// Path is the path of the methods below the API. Each method is a POST to Path plus its name, with
// its arguments as JSON.
const Path = "/work/"

// method is a call that both ends know.
type method[I, O any] struct {
	name   string
	shares bool
}

// served is a method on the server's side.
type served struct {
	stages []registry.Stage // whose workers may call it; nil: all
	serve  func(ctx context.Context, s *Server, body []byte) (any, error)
	shares bool // with other calls of a request
}

// shared says that calls of a method share requests with others: they are short, and frequent.
func (m method[I, O]) shared() method[I, O] {
	on := table[m.name]
	on.shares, m.shares = true, true
	table[m.name] = on
	return m
}

// table holds all methods by name.
var table = map[string]served{}

// declare adds a method to the table. If the arguments name an attempt, the server sets the
// attempt's token to the caller's.
func declare[I, O any](name string, stages []registry.Stage, do func(*Server, context.Context, I) (O, error)) method[I, O] {
	table[name] = served{stages: stages, serve: func(ctx context.Context, s *Server, body []byte) (any, error) {
		var in I
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeBadRequest, fmt.Sprintf(
				"the arguments of %s could not be decoded: %v; check that this worker has the same version as the Registry.", name, err))
		}
		if f, ok := any(&in).(interface{ fence(token string) }); ok {
			f.fence(s.worker(ctx))
		}
		return do(s, ctx, in)
	}}
	return method[I, O]{name: name}
}

// declareVoid declares a method without a result.
func declareVoid[I any](name string, stages []registry.Stage, do func(*Server, context.Context, I) error) method[I, empty] {
	return declare(name, stages, func(s *Server, ctx context.Context, in I) (empty, error) { return empty{}, do(s, ctx, in) })
}

// Stages returns the names of all methods, each with the stages whose workers may call it; nil
// means all.
func Stages() map[string][]registry.Stage {
	out := map[string][]registry.Stage{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		out[name] = table[name].stages
	}
	return out
}

// only is a list of stages.
func only(stages ...registry.Stage) []registry.Stage { return stages }

// everyStage is for methods that every attempt needs.
var everyStage []registry.Stage

// empty is a request or result without content.
type empty struct{}

// attempt names the attempt that calls.
type attempt struct {
	Lease registry.Lease `json:"lease"`
}

func (a *attempt) fence(token string) { a.Lease.Token = token }

// fenced is an attempt with a value to write.
type fenced[T any] struct {
	attempt
	Value T `json:"value"`
}

// byID is the id of the thing that is asked for.
type byID struct {
	ID string `json:"id"`
}
