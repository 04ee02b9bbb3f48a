// Package protocol is how workers in other processes call the Registry over HTTP. Both ends are
// here: [Server] answers from a store, and [Client] is a registry.ForWorkers that calls it. Each
// method is declared once, in methods.go, with its name, its arguments, and the stages whose
// workers may call it.
//
// Errors of the contract arrive with all their fields. Every write of an attempt is fenced by the
// token that claimed it. A call without an answer fails with registry.ErrUnavailable. The public
// API around this package authenticates tokens and writes problems. The protocol is no part of that
// API: it changes with the workers.
//
// The Registry is upgraded first, its workers after it. So a Registry serves the workers of its own
// version of the protocol and of earlier ones ([Version], [Oldest]). It refuses a worker that is newer
// or too old as if it were away for a while: the worker waits, and no item is charged.
package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Path is the path of the methods below the API. Each method is a POST to Path plus its name, with
// its arguments as JSON.
const Path = "/work/"

// Version is the version of the protocol that both ends of this program speak. It goes up in each
// release in which workers call a new method, send what an earlier Registry would overlook, or rely
// on something new in an answer. Oldest is the earliest version of workers that the Registry still
// serves: that of the release before, or earlier.
const (
	Version = 1
	Oldest  = 1
)

// parameter has the worker's version in the address of each request. Without it the version is 1.
const parameter = "version"

// versioned adds the version to a path.
func versioned(path string) string { return path + "?" + parameter + "=" + strconv.Itoa(Version) }

// Speaks returns a *wire.Problem if the Registry does not serve workers of the version that a request
// names. It is one of those that mean "not now", so that the worker asks again.
func Speaks(r *http.Request) error {
	text := r.URL.Query().Get(parameter)
	if text == "" {
		return nil
	}
	theirs, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return wire.NewProblem(http.StatusBadRequest, wire.CodeBadRequest, fmt.Sprintf("%.100q is no version of the workers' protocol", text))
	case theirs > Version:
		return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeProtocol, fmt.Sprintf(
			"this worker is newer than the Registry: it speaks version %d of the workers' protocol, and the Registry speaks version %d; upgrade the Registry first", theirs, Version))
	case theirs < Oldest:
		return wire.NewProblem(http.StatusServiceUnavailable, wire.CodeProtocol, fmt.Sprintf(
			"this worker is too old for the Registry: it speaks version %d of the workers' protocol, and the Registry serves version %d and later; upgrade the worker", theirs, Oldest))
	}
	return nil
}

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

	in, out reflect.Type
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
	table[name] = served{stages: stages, in: reflect.TypeFor[I](), out: reflect.TypeFor[O](), serve: func(ctx context.Context, s *Server, body []byte) (any, error) {
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
