package object

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/wire"
)

// accessesKept bounds how many accesses of a day are remembered, so as not to be noted twice.
const accessesKept = 20_000

// accesses remembers which accesses were noted today. What is forgotten, at a restart or because there
// were too many, is noted a second time: the log may repeat an access, and never lacks one.
type accesses struct {
	mu    sync.Mutex
	day   string
	noted map[registry.Access]*noting
}

// noting is an access that is being noted, or was.
type noting struct {
	done chan struct{} // closed when it is durable, or failed
	err  error
}

// once calls note unless the same access was noted since midnight, UTC. Concurrent calls wait for the
// first one and have its error, so its context does not end with ctx; after an error the next call tries
// again.
func (l *accesses) once(ctx context.Context, at time.Time, key registry.Access, note func(context.Context) error) error {
	l.mu.Lock()
	if day := at.UTC().Format(time.DateOnly); day != l.day || len(l.noted) >= accessesKept {
		l.day, l.noted = day, map[registry.Access]*noting{}
	}
	if n := l.noted[key]; n != nil {
		l.mu.Unlock()
		select {
		case <-n.done:
			return n.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n := &noting{done: make(chan struct{})}
	l.noted[key] = n
	l.mu.Unlock()
	if n.err = note(context.WithoutCancel(ctx)); n.err != nil {
		l.mu.Lock()
		if l.noted[key] == n {
			delete(l.noted, key)
		}
		l.mu.Unlock()
	}
	close(n.done)
	return n.err
}

// noteExport notes an export, before its first byte is sent.
func (s *Service) noteExport(r *http.Request, o registry.Object, form string) error {
	a := accessOf(r, registry.EventExported, o)
	a.Form = form
	return s.Registry.NoteAccess(r.Context(), a)
}

// noteContent notes that a file is read, before its first byte is sent: as a part of the export that the
// request names, or as reading of single files. Either is one entry for each person, object, version, way
// and day: a viewer that asks for many ranges, or a program that fetches file by file, adds no more.
func (s *Service) noteContent(r *http.Request, o registry.Object, file string) error {
	key := accessOf(r, registry.EventFilesRead, o)
	if key.Export = r.Header.Get(wire.ExportHeader); key.Export != "" {
		key.Kind = registry.EventExported
	}
	a := key
	if key.Export == "" {
		a.File = file
	}
	return s.noteOnce(r, key, a)
}

// noteRestored notes that a restored file is fetched, before its first byte is sent.
func (s *Service) noteRestored(r *http.Request, o registry.Object, restore registry.Restoration) error {
	a := accessOf(r, registry.EventRestoreFetched, o)
	a.Version, a.Restore = restore.Version, restore.N
	return s.noteOnce(r, a, a)
}

// noteOnce notes a, unless an access of this key was noted today. A HEAD request reads nothing.
func (s *Service) noteOnce(r *http.Request, key, a registry.Access) error {
	if r.Method == http.MethodHead {
		return nil
	}
	key.Remote = ""
	return s.accesses.once(r.Context(), s.Now(), key, func(ctx context.Context) error {
		return s.Registry.NoteAccess(ctx, a)
	})
}

// accessOf describes an access to an object's version, by the caller.
func accessOf(r *http.Request, kind string, o registry.Object) registry.Access {
	caller := access.Of(r.Context())
	a := registry.Access{
		Kind: kind, Actor: caller.Token.Name, ObjectID: o.ID, Collection: o.Collection, Version: o.Head, By: registry.ByAPI, Remote: caller.Remote,
	}
	switch {
	case caller.Session.ID != "":
		a.By = registry.ByPage
	case strings.HasPrefix(r.UserAgent(), wire.CommandAgent):
		a.By = registry.ByCommand
	}
	return a
}
