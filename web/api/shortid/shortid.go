// Package shortid completes short ids: the first 8 or more characters of an id, if they are unique
// among the ids that the caller may see.
//
// The place of an id tells its kind: a part of a path, a field of an input with the tag `id`, a
// term of a query. Workers send complete ids only.
package shortid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// Lengths of ids, and how many candidates an error lists.
const (
	leastID         = 8
	wholeID         = 36 // of items, graphs and uploads; those of tokens and sessions are shorter
	mostAmbiguities = 10
)

// Completer completes short ids. Without a Registry it serves only to make a specification.
type Completer struct {
	Registry Registry // limited to what the caller may see
	Access   *access.Table
	SignIn   *signin.Service // nil: there are no sessions
}

// Registry is what a Completer needs of the Registry.
type Registry interface {
	registry.Receiving
	Items(ctx context.Context, q registry.ItemQuery) (registry.Page[registry.WorkItem], error)
	Tokens(ctx context.Context) ([]registry.Token, error)
}

// candidate is a thing that a short id may mean, with a description for people.
type candidate struct{ id, about string }

// ambiguity is the error of a short id with several candidates.
type ambiguity struct {
	*wire.Problem
	text string
}

// Unwrap returns the API's problem.
func (a *ambiguity) Unwrap() error { return a.Problem }

func ambiguous(location, text string, meant []candidate) error {
	var b strings.Builder
	for i, one := range meant {
		if i == mostAmbiguities {
			b.WriteString(", and others")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", one.id, one.about)
	}
	return &ambiguity{text: text, Problem: wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, text+" is ambiguous, it begins several ids: "+b.String()+
		"; give more characters", wire.Fault{Location: location, Message: "give more characters of the id"})}
}

// Whole completes a short id of a kind of thing: a batch, item, graph, upload, token or session. It
// considers only what the caller's token may see, so that nobody learns the ids of others. A text
// that begins no id is returned unchanged: the operation then answers that there is no such thing.
// An ambiguous id is an *ambiguity.
func (c *Completer) Whole(ctx context.Context, kind, location, text string) (string, error) {
	if len(text) == wholeID && reads[kind] != "" {
		return strings.ToLower(text), nil // ids are lower-case
	}
	if len(text) < leastID || len(text) > wholeID || reads[kind] == "" {
		return text, nil
	}
	meant, err := c.meant(ctx, kind, strings.ToLower(text))
	switch {
	case err != nil:
		return text, err
	case len(meant) > 1:
		return text, ambiguous(location, text, meant)
	case len(meant) == 1:
		return meant[0].id, nil
	}
	return text, nil
}

// query completes the ids of batches in a query. It returns an invalid query unchanged, for the
// caller to refuse.
func (c *Completer) query(ctx context.Context, location, text string) (string, error) {
	q, err := query.Parse(text)
	if err != nil {
		return text, nil //nolint:nilerr // see above
	}
	changed := false
	for i, t := range q.Terms {
		if t.Field != "batch" {
			continue
		}
		values := query.Values(t)
		for n, v := range values {
			if len(v) < leastID {
				return text, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "the query was refused; correct the fields that the errors name", wire.Fault{
					Location: location, Found: v, Message: fmt.Sprintf("batch:%s is too short to identify a batch; give at least the first %d characters of its id", v, leastID),
				})
			}
			if values[n], err = c.Whole(ctx, "batches", location, v); err != nil {
				return text, err
			}
		}
		q.Terms[i].Value = strings.Join(values, ",")
		changed = changed || q.Terms[i].Value != t.Value
	}
	if !changed {
		return text, nil
	}
	return q.String(), nil
}

// tagID is the tag of input fields that are ids or queries. Its value is the kind of thing,
// taggedQuery, or taggedScope: then the field Scope tells the kind.
const (
	tagID       = "id"
	taggedQuery = "query"
	taggedScope = "scope"
)

// Has reports whether a type has such fields.
func Has(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return Has(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && (f.Tag.Get(tagID) != "" || f.Type != t && Has(f.Type)) {
				return true
			}
		}
	default:
	}
	return false
}

// Input completes the ids in an operation's input.
func (c *Completer) Input(ctx context.Context, in reflect.Value) error { return c.input(ctx, "", in) }

// input completes the ids in an operation's input or a part of it, at a location of the request.
func (c *Completer) input(ctx context.Context, location string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return c.input(ctx, location, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := c.input(ctx, fmt.Sprintf("%s[%d]", location, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || !Has(f.Type) && f.Tag.Get(tagID) == "" {
				continue
			}
			if err := c.field(ctx, locationOf(location, f), v, i); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

func (c *Completer) field(ctx context.Context, location string, in reflect.Value, i int) (err error) {
	field, kind := in.Field(i), in.Type().Field(i).Tag.Get(tagID)
	text := ""
	switch kind {
	case "":
		return c.input(ctx, location, field)
	case taggedQuery:
		text, err = c.query(ctx, location, field.String())
	case taggedScope:
		kind = map[registry.HoldScope]string{registry.HoldBatch: "batches", registry.HoldItem: "items"}[registry.HoldScope(in.FieldByName("Scope").String())]
		fallthrough
	default:
		text, err = c.Whole(ctx, kind, location, field.String())
	}
	if err == nil {
		field.SetString(text)
	}
	return err
}

// locationOf returns the location of an input's field, as huma names it.
func locationOf(within string, f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case f.Tag.Get("query") != "":
		return "query." + f.Tag.Get("query")
	case f.Anonymous:
		return within
	case within == "" && f.Name == "Body":
		return "body"
	}
	return within + "." + name
}

// Address completes the ids in a request's path and, on the pages, also those in its query. base is
// the prefix of the path, "" for the pages. The pages answer an ambiguous id with a search; fail
// answers other errors.
func (c *Completer) Address(base string, fail func(http.ResponseWriter, *http.Request, error), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := *r.URL
		path := strings.TrimPrefix(r.URL.Path, base)
		var err error
		if parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 3); len(parts) > 1 {
			given := parts[1]
			if parts[1], err = c.Whole(r.Context(), parts[0], "path.id", given); parts[1] != given {
				address.Path, address.RawPath = base+"/"+strings.Join(parts, "/"), ""
			}
		}
		if query := r.URL.Query(); base == "" && err == nil {
			for _, name := range []string{"q", "match"} {
				given := query.Get(name)
				text, wrong := c.query(r.Context(), "query."+name, given)
				if err = errors.Join(err, wrong); text != given {
					query.Set(name, text)
					address.RawQuery = query.Encode()
				}
			}
		}
		several := new(ambiguity)
		switch {
		case err != nil && base == "" && errors.As(err, &several):
			search := "id:" + several.text
			if !strings.Contains(r.URL.Path, several.text) {
				search += " action:batch" // of a query's batch:
			}
			http.Redirect(w, r, "/?q="+url.QueryEscape(search), http.StatusSeeOther)
			return
		case err != nil:
			fail(w, r, err)
			return
		case address != *r.URL:
			whole := *r
			whole.URL = &address
			r = &whole
		}
		next.ServeHTTP(w, r)
	})
}

// reads maps a part of a path to the operation that shows such things.
var reads = map[string]string{
	"batches": "read-batch", "items": "read-item", "graphs": "read-graph", "uploads": "read-upload", "tokens": "list-tokens",
	"sessions": "list-sessions",
}

// meant returns the candidates for a short id of a kind of thing. It returns none if the text
// cannot be a short id, or if the caller may not see such things: the operation then answers.
func (c *Completer) meant(ctx context.Context, kind, start string) ([]candidate, error) {
	if shown, known := reads[kind]; !known || !c.Access.May(access.Of(ctx).Token, shown) {
		return nil, nil
	}
	begins := func(id string) bool { return len(start) < len(id) && strings.HasPrefix(id, start) }
	switch kind {
	case "batches":
		return c.meantItems(ctx, registry.Batch, start)
	case "items":
		return c.meantItems(ctx, "", start)
	case "graphs":
		return c.meantGraphs(ctx, start)
	case "uploads":
		if !shortItem(start) {
			return nil, nil // the many requests that send an upload's parts then do not read the list
		}
		return c.meantUploads(ctx, begins)
	case "tokens":
		tokens, err := c.Registry.Tokens(ctx)
		var out []candidate
		for _, t := range tokens {
			if begins(t.ID) {
				out = append(out, candidate{t.ID, t.Name})
			}
		}
		return out, err
	case "sessions":
		if c.SignIn == nil {
			return nil, nil
		}
		sessions, err := c.SignIn.Sessions(ctx, access.Person(ctx))
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

// shortItem reports whether text may be a short id of an item.
func shortItem(start string) bool { return len(start) < wholeID && registry.IDStart(start) }

func (c *Completer) meantItems(ctx context.Context, action registry.Action, start string) (out []candidate, err error) {
	if !shortItem(start) {
		return nil, nil
	}
	p, err := c.Registry.Items(ctx, registry.ItemQuery{Action: action, Limit: mostAmbiguities + 1, Match: only("id", start)})
	for _, it := range p.Rows {
		out = append(out, candidate{it.ID, strings.TrimSpace(string(it.State) + " " + it.Name)})
	}
	return out, err
}

// meantUploads searches incoming and complete uploads.
func (c *Completer) meantUploads(ctx context.Context, begins func(id string) bool) (out []candidate, err error) {
	incoming, err := c.Registry.IncomingOf(ctx, "")
	for _, u := range incoming {
		if begins(u.ID) {
			out = append(out, candidate{u.ID, u.Filename})
		}
	}
	var stored registry.Page[registry.Upload]
	for more := true; err == nil && more && len(out) <= mostAmbiguities; more = stored.Next != "" {
		stored, err = c.Registry.StoredUploads(ctx, "", stored.Next)
		for _, u := range stored.Rows {
			if begins(u.ID) {
				out = append(out, candidate{u.ID, u.Filename})
			}
		}
	}
	return out, err
}

// meantGraphs finds one item of each graph in turn.
func (c *Completer) meantGraphs(ctx context.Context, start string) (out []candidate, err error) {
	if !shortItem(start) {
		return nil, nil
	}
	q := only("graph", start)
	for len(out) <= mostAmbiguities {
		p, err := c.Registry.Items(ctx, registry.ItemQuery{Limit: 1, Match: q})
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
