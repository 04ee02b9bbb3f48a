package endpoint

import (
	"errors"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// contractRefusal is the problem of an error of the Registry's contract that has no other place in answerTo, or nil.
func contractRefusal(err error) *wire.Problem {
	var (
		claim *registry.NotClaimable
		owner *registry.OwnerMismatch
		none  *registry.NoObject
		query *registry.QueryError
		turn  *registry.PriorityError
		gone  *registry.GoneError
		other *registry.VersionError
	)
	switch {
	case errors.As(err, &claim), errors.As(err, &owner), errors.As(err, &none):
		return wire.NewProblem(http.StatusConflict, wire.CodeConflict, err.Error())
	case errors.As(err, &gone):
		return wire.NewProblem(http.StatusGone, wire.CodeGone, err.Error())
	case errors.As(err, &query):
		// A query can be read and be too much to ask all the same.
		p := wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, query.Error())
		p.Faults = []wire.Fault{valid.QueryFault("query.q", query)}
		return p
	case errors.As(err, &other):
		return wire.NewProblem(http.StatusPreconditionFailed, wire.CodeVersion, other.Error())
	case errors.As(err, &turn):
		return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, err.Error())
	case errors.Is(err, errors.ErrUnsupported):
		return wire.NewProblem(http.StatusNotImplemented, wire.CodeInternal, "this Registry does not have that yet; update it")
	}
	return nil
}

// ordinary tells a refusal that is nothing to write home about: a worker asks for an item again and again.
func ordinary(err error) bool {
	var claim *registry.NotClaimable
	return errors.As(err, &claim)
}
