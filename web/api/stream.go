package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// streamed is an answer of any length that is made while it is sent.
type streamed struct {
	contentType string
	filename    string
	write       func(io.Writer) error
}

// objectParam is the object in a path.
func objectParam() *huma.Param {
	return &huma.Param{Name: "id", In: "path", Required: true, Description: "The object's ARK, percent-encoded", Schema: &huma.Schema{Type: "string"}}
}

// streamRoute adds an operation whose answer is made while it is sent. open refuses, before anything is sent; what fails after
// that breaks the connection off, so that nobody takes a part for the whole.
func (s *server) streamRoute(api huma.API, mux *http.ServeMux, o operation, params []*huma.Param, contentType string, open func(*http.Request) (*streamed, error)) {
	op := s.describe(o)
	op.Parameters = params
	documentAs(api, &op, contentType, &huma.Schema{Type: "string"})
	mux.HandleFunc(o.method+" "+wire.Base+o.path, func(w http.ResponseWriter, r *http.Request) {
		err := s.permit(r.Context(), o.id)
		for key := range r.URL.Query() {
			known := slices.ContainsFunc(params, func(p *huma.Param) bool { return p.In == "query" && p.Name == key })
			if err == nil && !known {
				err = invalid("nothing was sent", wire.Fault{Location: "query." + key, Message: "unknown query parameter"})
			}
		}
		var out *streamed
		if err == nil {
			out, err = open(r)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", out.contentType)
		h.Set("Content-Disposition", disposition(out.filename))
		h.Set("Cache-Control", "private, no-cache")
		if err := out.write(w); err != nil {
			if r.Context().Err() == nil && !errors.Is(err, context.Canceled) {
				s.log.ErrorContext(r.Context(), "answer broke off", "path", webserver.Path(r), "request", callOf(r.Context()).id, "err", err)
			}
			_ = http.NewResponseController(w).Flush() // what came until then is worth having; the break is what tells
			panic(http.ErrAbortHandler)
		}
	})
}
