package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// The least length of the beginning of an id that stands for the whole, the length of a whole one, and how many are named that it could mean.
const (
	leastID         = 8
	wholeID         = 36 // of items, graphs and uploads; those of tokens and sessions are shorter
	mostAmbiguities = 10
)

// candidate is something that an id in short could mean, with a word or two for people.
type candidate struct{ id, about string }

// wholeIDs completes ids that a request's address gives in short: the beginning of an id, of 8 characters or more, of a batch, item, graph,
// upload, token or session. It is the one place for all operations and pages. It looks only at what the request's token may see, so that nobody learns of
// others' ids, and leaves what begins none of them as it is: the operation says that there is no such thing. Workers
// send whole ids only. base is what stands before the address: "" for the pages. What could be several is refused, with their ids.
func (s *server) wholeIDs(base string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, base)
		parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 3)
		if len(parts) < 2 || len(parts[1]) < leastID || len(parts[1]) >= wholeID || reads[parts[0]] == "" {
			next.ServeHTTP(w, r)
			return
		}
		meant, err := s.meant(r.Context(), parts[0], strings.ToLower(parts[1]))
		switch {
		case err != nil:
			s.fail(w, r, err)
			return
		case len(meant) > 1 && base == "": // a page: the search lists them
			http.Redirect(w, r, "/?q="+url.QueryEscape("id:"+parts[1]), http.StatusSeeOther)
			return
		case len(meant) > 1:
			s.fail(w, r, ambiguous(parts[1], meant))
			return
		case len(meant) == 1:
			parts[1] = meant[0].id
			whole := *r
			whole.URL = new(url.URL)
			*whole.URL = *r.URL
			whole.URL.Path, whole.URL.RawPath = base+"/"+strings.Join(parts, "/"), ""
			r = &whole
		}
		next.ServeHTTP(w, r)
	})
}

func ambiguous(text string, meant []candidate) error {
	var b strings.Builder
	for i, c := range meant {
		if i == mostAmbiguities {
			b.WriteString(", and others")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", c.id, c.about)
	}
	return invalid(text+" begins the ids of several: "+b.String(), wire.Fault{Location: "path.id", Message: "give more of the id that you mean"})
}

// reads are the operations that show the things that a part of the address is for.
var reads = map[string]string{
	"batches": "read-batch", "items": "read-item", "graphs": "read-graph", "uploads": "read-upload", "tokens": "list-tokens",
	"sessions": "list-sessions",
}

// meant returns what the beginning of an id could mean, of a kind of thing that has a part of the address for itself; nothing
// where the id is whole or no part of one, or for whoever may not be shown such a thing: the operation answers them.
func (s *server) meant(ctx context.Context, kind, start string) ([]candidate, error) {
	if shown, known := reads[kind]; !known || !s.may(callOf(ctx).token, shown) {
		return nil, nil
	}
	begins := func(id string) bool { return len(start) < len(id) && strings.HasPrefix(id, start) }
	switch kind {
	case "batches":
		return s.meantItems(ctx, registry.Batch, start)
	case "items":
		return s.meantItems(ctx, "", start)
	case "graphs":
		return s.meantGraphs(ctx, start)
	case "uploads":
		if !shortItem(start) {
			return nil, nil // of parts that are sent one after the other, none needs the list
		}
		uploads, err := s.registry.IncomingOf(ctx, "")
		var out []candidate
		for _, u := range uploads {
			if begins(u.ID) {
				out = append(out, candidate{u.ID, u.Filename})
			}
		}
		return out, err
	case "tokens":
		tokens, err := s.registry.Tokens(ctx)
		var out []candidate
		for _, t := range tokens {
			if begins(t.ID) {
				out = append(out, candidate{t.ID, t.Name})
			}
		}
		return out, err
	case "sessions":
		if s.signIn == nil {
			return nil, nil
		}
		sessions, err := NewAccount(s.signIn).Sessions(ctx)
		var out []candidate
		for _, one := range sessions {
			if begins(one.ID) {
				out = append(out, candidate{one.ID, one.Name})
			}
		}
		return out, err
	}
	return nil, nil
}

// shortItem says that text may begin an item's id without being whole.
func shortItem(start string) bool { return len(start) < wholeID && registry.IDStart(start) }

func (s *server) meantItems(ctx context.Context, action registry.Action, start string) (out []candidate, err error) {
	if !shortItem(start) {
		return nil, nil
	}
	p, err := s.registry.Items(ctx, registry.ItemQuery{Action: action, Limit: mostAmbiguities + 1, Match: only("id", start)})
	for _, it := range p.Rows {
		out = append(out, candidate{it.ID, strings.TrimSpace(string(it.State) + " " + it.Name)})
	}
	return out, err
}

// meantGraphs asks for an item of one graph after the other.
func (s *server) meantGraphs(ctx context.Context, start string) (out []candidate, err error) {
	if !shortItem(start) {
		return nil, nil
	}
	q := only("graph", start)
	for len(out) <= mostAmbiguities {
		p, err := s.registry.Items(ctx, registry.ItemQuery{Limit: 1, Match: q})
		if err != nil || len(p.Rows) == 0 {
			return out, err
		}
		id := p.Rows[0].GraphID
		out = append(out, candidate{id, "with " + p.Rows[0].Name})
		q.Terms = append(q.Terms, registry.Term{Field: "graph", Value: id, Not: true})
	}
	return out, nil
}

func only(field, value string) registry.Query {
	return registry.Query{Terms: []registry.Term{{Field: field, Value: value}}}
}
