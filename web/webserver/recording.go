package webserver

import (
	"bytes"
	"net/http"
)

// Recording is an http.ResponseWriter that keeps the answer in memory, for handlers that are called
// within the process.
type Recording struct {
	Status int
	Body   bytes.Buffer
	header http.Header
}

// NewRecording returns an empty Recording. Its status is 200 until the handler sets another one.
func NewRecording() *Recording { return &Recording{Status: http.StatusOK, header: http.Header{}} }

// Header implements http.ResponseWriter.
func (r *Recording) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *Recording) WriteHeader(status int) { r.Status = status }

// Write implements http.ResponseWriter.
func (r *Recording) Write(p []byte) (int, error) { return r.Body.Write(p) }
