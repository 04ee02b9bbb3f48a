package api

import (
	"context"
	"errors"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Matching is the query of a list (docs/query.md).
type Matching struct {
	Q string `query:"q" id:"query" maxLength:"2000" doc:"Words and field:value terms, all of which must match, such as state:failed collection:demo error:timeout older:2h; see docs/query.md"`
}

// query reads what is asked for.
func (m Matching) query() (registry.Query, []wire.Fault) { return readQuery("query.q", m.Q) }

// readQuery reads a query, and says what is wrong with it at a location of the request.
func readQuery(location, text string) (registry.Query, []wire.Fault) {
	q, err := registry.ParseQuery(text)
	var wrong *registry.QueryError
	if errors.As(err, &wrong) {
		return q, []wire.Fault{queryFault(location, wrong)}
	}
	return q, nil
}

// queryFault is what is wrong with a query at a location of the request.
func queryFault(location string, wrong *registry.QueryError) wire.Fault {
	return wire.Fault{
		Location: location, Column: wrong.Position, Message: wrong.Error(), Found: wrong.Word, Expected: strings.Join(wrong.Known, ", "),
	}
}

type countInput struct {
	Matching
}

func (s *server) countItems(ctx context.Context, in *countInput) (*output[wire.ItemCounts], error) {
	q, faults := in.query()
	if err := invalid("the items cannot be counted", faults...); err != nil {
		return nil, err
	}
	states, err := s.registry.CountItems(ctx, registry.ItemQuery{Match: q})
	if err != nil {
		return nil, err
	}
	counts := wire.ItemCounts{States: states}
	for _, n := range states {
		counts.Total += n
	}
	return &output[wire.ItemCounts]{Body: counts}, nil
}
