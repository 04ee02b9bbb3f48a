package endpoint

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// Streamed is an answer of any length that is produced while it is sent.
type Streamed struct {
	ContentType string
	Filename    string
	Size        int64 // in bytes; 0: unknown
	Write       func(io.Writer) error
}

// StreamRows is the number of rows that a streamed answer reads at a time.
const StreamRows = 500

// Stream adds an operation with a streamed answer. open can refuse before anything is sent. If
// Write fails later, the connection is aborted, so that nobody takes a part for the whole.
func (s *Server) Stream(o Operation, params []*huma.Param, contentType string, open func(*http.Request) (*Streamed, error)) {
	op := s.Describe(o)
	op.Parameters = params
	s.DocumentAs(&op, contentType, &huma.Schema{Type: "string"})
	s.HandleFunc(o.Method+" "+o.Path, func(w http.ResponseWriter, r *http.Request) {
		err := s.Permit(r.Context(), o.ID)
		for key := range r.URL.Query() {
			known := slices.ContainsFunc(params, func(p *huma.Param) bool { return p.In == "query" && p.Name == key })
			if err == nil && !known {
				err = Invalid("the request was refused", wire.Fault{Location: "query." + key, Message: "unknown query parameter"})
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
		if out.Size > 0 {
			h.Set("Content-Length", strconv.FormatInt(out.Size, 10))
		}
		if err := out.Write(w); err != nil {
			if r.Context().Err() == nil && !errors.Is(err, context.Canceled) {
				s.Log.ErrorContext(r.Context(), "streaming an answer failed", "path", webserver.Path(r), "request", access.Of(r.Context()).RequestID, "err", err)
			}
			_ = http.NewResponseController(w).Flush() // the part sent so far is useful; the aborted connection shows that it is a part
			panic(http.ErrAbortHandler)
		}
	})
}

// Disposition returns a Content-Disposition with the file's name (RFC 6266), or without it if the
// name cannot be encoded.
func Disposition(name string) string {
	if v := mime.FormatMediaType("attachment", map[string]string{"filename": name}); v != "" {
		return v
	}
	return "attachment"
}
