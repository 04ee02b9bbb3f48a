package endpoint

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// Streamed is an answer of any length that is made while it is sent.
type Streamed struct {
	ContentType string
	Filename    string
	Write       func(io.Writer) error
}

// StreamRows is how many rows are read at a time for an answer that is a stream.
const StreamRows = 500

// Stream adds an operation whose answer is made while it is sent. open refuses, before anything is
// sent; what fails after that breaks the connection off, so that nobody takes a part for the whole.
func (s *Server) Stream(o Operation, params []*huma.Param, contentType string, open func(*http.Request) (*Streamed, error)) {
	op := s.Describe(o)
	op.Parameters = params
	s.DocumentAs(&op, contentType, &huma.Schema{Type: "string"})
	s.HandleFunc(o.Method+" "+o.Path, func(w http.ResponseWriter, r *http.Request) {
		err := s.Permit(r.Context(), o.ID)
		for key := range r.URL.Query() {
			known := slices.ContainsFunc(params, func(p *huma.Param) bool { return p.In == "query" && p.Name == key })
			if err == nil && !known {
				err = Invalid("nothing was sent", wire.Fault{Location: "query." + key, Message: "unknown query parameter"})
			}
		}
		var out *Streamed
		if err == nil {
			out, err = open(r)
		}
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", out.ContentType)
		h.Set("Content-Disposition", Disposition(out.Filename))
		h.Set("Cache-Control", "private, no-cache")
		if err := out.Write(w); err != nil {
			if r.Context().Err() == nil && !errors.Is(err, context.Canceled) {
				s.Log.ErrorContext(r.Context(), "answer broke off", "path", webserver.Path(r), "request", access.Of(r.Context()).RequestID, "err", err)
			}
			_ = http.NewResponseController(w).Flush() // what came until then is worth having; the break is what tells
			panic(http.ErrAbortHandler)
		}
	})
}

// Disposition names the file in a form that every browser understands (RFC 6266), or not at all.
func Disposition(name string) string {
	if v := mime.FormatMediaType("attachment", map[string]string{"filename": name}); v != "" {
		return v
	}
	return "attachment"
}
