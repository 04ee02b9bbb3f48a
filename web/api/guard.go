package api

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/submission"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// bodyTime bounds how long such a body may take.
const bodyTime = 30 * time.Second

// guarded names every request, sets what every answer carries, and turns a panic into a problem of
// this request alone.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Note(r.Context(), nil)
		id := rand.Text()
		r = r.WithContext(access.With(r.Context(), access.Caller{RequestID: id}))
		h := w.Header()
		h.Set(wire.RequestIDHeader, id)
		h.Set("X-Content-Type-Options", "nosniff")
		if strings.HasPrefix(r.URL.Path, wire.Base) {
			h.Set("Cache-Control", "no-store")
		}
		watched := &watchedWriter{ResponseWriter: w}
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
	// The status is out already: breaking the connection is the only way left to say that this is
	// not all. A reader who has gone is no fault of ours.
	if !aborted && r.Context().Err() == nil {
		s.Log.ErrorContext(r.Context(), "request panicked in its answer", "request", access.Of(r.Context()).RequestID, "path", webserver.Path(r),
			"err", fmt.Sprint(cause), "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// watchedWriter knows whether an answer has begun.
type watchedWriter struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (w *watchedWriter) WriteHeader(status int) {
	w.begun = w.begun || status >= http.StatusOK // 1xx come before the answer
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watchedWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap serves http.ResponseController.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// bounded reads the body of everything but files, so that one that is too large or broken off is
// refused as such.
func (s *server) bounded(most func(*http.Request) int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bringsFile(r) {
			next.ServeHTTP(w, r)
			return
		}
		most := most(r)
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // where it cannot be set, the server's own holds
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		_ = control.SetReadDeadline(time.Time{})
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			s.Fail(w, r, wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeTooLarge, fmt.Sprintf(
				"the body of %s %s is larger than %d bytes; payloads go to POST %s", r.Method, webserver.Path(r), most, upload.Path)))
			return
		case err != nil:
			s.Fail(w, r, wire.NewProblem(http.StatusBadRequest, wire.CodeBrokenOff,
				fmt.Sprintf("the body of %s %s ended early; send it again", r.Method, webserver.Path(r))))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// bringsFile says whether the body of a request is a file, or a part of one, which is never read
// whole.
func bringsFile(r *http.Request) bool {
	return r.URL.Path == upload.Path || r.URL.Path == submission.CheckPath || (r.Method == http.MethodPatch || r.Method == http.MethodPost) && strings.HasPrefix(r.URL.Path, upload.Path+"/")
}

// mostBody is how large the body of a request may be. Workers send more, each for what it may ask.
func (s *server) mostBody(r *http.Request) int64 {
	if name := endpoint.WorkerMethod(r); name != "" && s.access.May(access.Of(r.Context()).Token, access.Worker(name)) {
		return protocol.MaxBody
	}
	return endpoint.MaxBody
}

// mostForm is how large a form of the pages may be.
func mostForm(*http.Request) int64 { return endpoint.MaxBody }

// explained answers what mux has no route for with a problem in place of the mux's bare words.
func (s *server) explained(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		// Only the handler of the mux knows which methods there are.
		probe := discarded{}
		h.ServeHTTP(probe, r)
		if allow := probe.Header().Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
			s.Fail(w, r, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed,
				fmt.Sprintf("%s cannot be used on %s; use %s", r.Method, webserver.Path(r), allow)))
			return
		}
		s.Fail(w, r, endpoint.NotFound("there is nothing at %s; the API is described at %s/openapi.json", webserver.Path(r), wire.Base))
	})
}

// discarded is a http.ResponseWriter of which only the headers are wanted.
type discarded http.Header

// Header implements http.ResponseWriter.
func (d discarded) Header() http.Header { return http.Header(d) }

// Write implements http.ResponseWriter.
func (d discarded) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (d discarded) WriteHeader(int) {}

// crossOrigin refuses what a browser sends from another site's page.
func (s *server) crossOrigin(w http.ResponseWriter, r *http.Request) {
	s.Fail(w, r, wire.NewProblem(http.StatusForbidden, wire.CodeCrossOrigin,
		fmt.Sprintf("%s %s was sent from another site's page; use the pages here, or the command line", r.Method, webserver.Path(r))))
}
