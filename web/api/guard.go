package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/submission"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// bodyTime bounds the time to read a bounded body.
const bodyTime = 30 * time.Second

// guarded gives every request an id, sets the headers of every answer, and turns a panic into a
// problem of this request alone.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Note(r.Context(), nil)
		begun, at := time.Now(), &route{"none"}
		id := rand.Text()
		ctx, wait := endpoint.NoteWait(context.WithValue(r.Context(), routeKey{}, at))
		r = r.WithContext(access.With(ctx, access.Caller{RequestID: id, Remote: r.RemoteAddr}))
		h := w.Header()
		h.Set(wire.RequestIDHeader, id)
		h.Set("X-Content-Type-Options", "nosniff")
		if strings.HasPrefix(r.URL.Path, wire.Base) {
			h.Set("Cache-Control", "no-store")
		}
		watched := &watchedWriter{ResponseWriter: w}
		defer func() {
			metrics.Requested(begun, at.pattern, r.Method, cmp.Or(watched.status, http.StatusOK), wait.Load())
		}()
		defer func() {
			if cause := recover(); cause != nil {
				s.panicked(watched, r, cause)
			}
		}()
		next.ServeHTTP(watched, r)
	})
}

// panicked answers a request whose handler panicked.
func (s *server) panicked(w *watchedWriter, r *http.Request, cause any) {
	err, ok := cause.(error)
	aborted := ok && errors.Is(err, http.ErrAbortHandler)
	if !aborted && !w.begun {
		s.Fail(w, r, fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		return
	}
	// The status was already sent. Aborting the connection is the only way to show that the answer
	// is incomplete. A client that has disconnected is no fault of the server.
	if !aborted && r.Context().Err() == nil {
		s.Log.ErrorContext(r.Context(), "request panicked while answering", "request", access.Of(r.Context()).RequestID, "path", webserver.Path(r),
			"err", fmt.Sprint(cause), "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// route is the pattern of a request's route, for the metrics.
type route struct{ pattern string }

type routeKey struct{}

// noteRoute notes the route of a request: the last one, which is the most exact.
func noteRoute(ctx context.Context, pattern string) {
	if at, _ := ctx.Value(routeKey{}).(*route); at != nil && pattern != "" {
		_, path, ok := strings.Cut(pattern, " ")
		if !ok {
			path = pattern
		}
		at.pattern = path
	}
}

// watchedWriter notes whether the answer has begun, and its status.
type watchedWriter struct {
	http.ResponseWriter
	begun  bool
	status int // 0: none was set
}

// WriteHeader implements http.ResponseWriter.
func (w *watchedWriter) WriteHeader(status int) {
	if status >= http.StatusOK && !w.begun { // 1xx come before the answer
		w.begun, w.status = true, status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watchedWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// bounded reads the body of every request but uploads, so that a body that is too large or
// incomplete is refused with the right problem.
func (s *server) bounded(most func(*http.Request) int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bringsFile(r) {
			next.ServeHTTP(w, r)
			return
		}
		most := most(r)
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // if this fails, the server's own deadline holds
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		_ = control.SetReadDeadline(time.Time{})
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			s.Fail(w, r, wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, fmt.Sprintf(
				"the body of %s %s is larger than %d bytes; %s", r.Method, webserver.Path(r), most, smaller(r))))
			return
		case err != nil:
			s.Fail(w, r, wire.NewProblem(http.StatusBadRequest, wire.CodeBrokenOff,
				fmt.Sprintf("the body of %s %s ended early; send it again", r.Method, webserver.Path(r))))
			return
		}
		if kind := r.Header.Get("Content-Type"); kind == "" || strings.Contains(kind, "json") {
			if problem := unreadable(r, body); problem != nil {
				s.Fail(w, r, problem)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// unreadable returns the problem of a JSON text of which parts come back in answers that others could
// not read, or nil.
func unreadable(r *http.Request, text []byte) *wire.Problem {
	switch {
	case !utf8.Valid(text):
		return wire.NewProblem(http.StatusBadRequest, wire.CodeBadRequest,
			fmt.Sprintf("the body of %s %s is not valid UTF-8, as JSON must be", r.Method, webserver.Path(r)))
	case nestedDeeper(text, mostNested):
		return wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid,
			fmt.Sprintf("the body of %s %s is nested more than %d levels deep; make it flatter", r.Method, webserver.Path(r), mostNested))
	}
	return nil
}

// mostNested is how deep the JSON of a request may be nested. Answers wrap what was sent, and JSON
// parsers have limits: Go's 10,000, Python's about 1,000. One deeper value would make a list
// unreadable for everybody.
const mostNested = 500

// nestedDeeper reports whether objects and lists of a JSON text are nested in more than most levels.
func nestedDeeper(text []byte, most int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > most {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// smaller says what to do about a body that is too large.
func smaller(r *http.Request) string {
	switch r.URL.Path {
	case wire.Base + "/batches":
		return "send payloads to POST " + upload.Path
	case wire.Base + "/graphs":
		return "send payloads to POST " + upload.Path + ", or fewer nodes at once"
	}
	return "make it smaller"
}

// bringsFile reports whether the body of a request is a file, part of one, or a form with one. Such a
// body is never read into memory.
func bringsFile(r *http.Request) bool {
	return r.URL.Path == wire.DepositForm && strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") ||
		r.URL.Path == upload.Path || r.URL.Path == submission.CheckPath || (r.Method == http.MethodPatch || r.Method == http.MethodPost) && strings.HasPrefix(r.URL.Path, upload.Path+"/")
}

// mostBody returns the largest body of a request, in bytes. Workers may send more in the methods
// that their tokens allow.
func (s *server) mostBody(r *http.Request) int64 {
	if name := endpoint.WorkerMethod(r); name != "" && s.access.May(access.Of(r.Context()).Token, access.Worker(name)) {
		return protocol.MaxBody
	}
	return endpoint.MaxBody
}

// mostForm returns the largest body of the pages' forms, in bytes.
func mostForm(*http.Request) int64 { return endpoint.MaxBody }

// explained answers requests without a route with a problem, instead of the mux's plain text.
func (s *server) explained(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			noteRoute(r.Context(), pattern)
			mux.ServeHTTP(w, r)
			return
		}
		// Only the mux's handler knows the allowed methods.
		probe := discarded{}
		h.ServeHTTP(probe, r)
		if allow := probe.Header().Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			s.Fail(w, r, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed,
				fmt.Sprintf("%s is not allowed on %s; use %s", r.Method, webserver.Path(r), allow)))
			return
		}
		s.Fail(w, r, endpoint.NotFound("%s was not found; the API is described at %s/openapi.json", webserver.Path(r), wire.Base))
	})
}

// discarded is an http.ResponseWriter that keeps only the headers.
type discarded http.Header

// Header implements http.ResponseWriter.
func (d discarded) Header() http.Header { return http.Header(d) }

// Write implements http.ResponseWriter.
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (d discarded) WriteHeader(int) {}

// crossOrigin refuses a request that a browser sent from another site's page.
func (s *server) crossOrigin(w http.ResponseWriter, r *http.Request) {
	s.Fail(w, r, wire.NewProblem(http.StatusForbidden, wire.CodeCrossOrigin,
		fmt.Sprintf("%s %s was sent from another site's page; use the pages here, or the command line", r.Method, webserver.Path(r))))
}
