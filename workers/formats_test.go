package workers_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/format/siegfried"
	"github.com/holdfast/holdfast/format/siegfried/siegfriedtest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers"
)

// knowing is an identifier that knows texts by their first letter, and counts what it is asked.
type knowing struct {
	mu    sync.Mutex
	asked map[string]int // by content
	after int            // questions after which it stops; 0: never
	stop  func(context.Context) error
}

func (k *knowing) Identify(ctx context.Context, f format.File) (format.Answer, error) {
	var text []byte
	err := f.Read(ctx, func(r io.Reader) (err error) {
		text, err = io.ReadAll(r)
		return err
	})
	if err != nil {
		return format.Answer{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.after > 0 && len(k.asked) >= k.after {
		return format.Answer{}, k.stop(ctx)
	}
	k.asked[string(text)]++
	a := format.Answer{Agent: "knowing 1"}
	switch {
	case strings.HasPrefix(string(text), "large"):
		return a, format.ErrTooLarge
	case !strings.HasPrefix(string(text), "?"):
		a.Format = &format.Format{PUID: "x-fmt/" + string(text[0]), Name: "Text", Registry: "V1"}
	}
	return a, nil
}

// again forgets what was asked and returns how many questions there were.
func (k *knowing) again() (questions int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.asked {
		questions += n
	}
	k.asked, k.after = map[string]int{}, 0
	return questions
}

// puids are the formats of a version's producer files.
func (r *rig) puids(o registry.Object, version int) map[string]string {
	r.t.Helper()
	files, err := r.registry.Files(r.t.Context(), o.ID, version, "", 500)
	must(r.t, err)
	out := map[string]string{}
	for _, f := range files {
		if f.Format != nil {
			out[strings.TrimPrefix(f.Path, "producer/")] = f.Format.PUID
		}
	}
	return out
}

// events are those of one type, the newest version's last.
func (r *rig) events(o registry.Object, kind string) (out []registry.Premis) {
	r.t.Helper()
	all, err := r.registry.PremisEvents(r.t.Context(), o.ID, "", 500)
	must(r.t, err)
	for _, e := range all.Rows {
		if e.Type == kind {
			out = append(out, e)
		}
	}
	return out
}

func TestFormats_EachContentOnce(t *testing.T) {
	t.Parallel()
	k := &knowing{asked: map[string]int{}}
	r := newRig(t, func(d *workers.Deps) { d.Identifier = k })
	zip := func(files map[string]string) string { return r.site.put("c.zip", zipOf(t, files)) }
	spec := registry.Spec{Type: registry.ContainerType, Filename: "c.zip", LocalIDs: []string{"obj"}}
	spec.URL = zip(map[string]string{"a": "alpha", "b": "beta", "odd": "?", "big": "large"})
	o := r.complete(r.job(spec))
	if n := k.again(); n != 4 {
		t.Errorf("asked %d times, want 4", n)
	}
	if got := r.puids(o, 1); len(got) != 2 || got["a"] != "x-fmt/a" || got["b"] != "x-fmt/b" {
		t.Errorf("formats %v", got)
	}
	events := r.events(o, "format identification")
	if len(events) != 1 || events[0].Agent != "knowing 1" || !strings.HasPrefix(events[0].Detail, "2 of 4 files identified; not identified: ") ||
		!strings.Contains(events[0].Detail, "1 of these are too large") {
		t.Fatalf("events %+v, want one with the counts", events)
	}
	spec.Mode = registry.Update
	spec.URL = zip(map[string]string{"a": "alpha", "copy of b": "beta", "c": "gamma"})
	o = r.complete(r.job(spec))
	if k.asked["alpha"]+k.asked["beta"] > 0 || k.asked["gamma"] != 1 {
		t.Errorf("asked %v, want the new content alone", k.asked)
	}
	if got := r.puids(o, 2); got["a"] != "x-fmt/a" || got["b"] != "x-fmt/b" || got["copy of b"] != "x-fmt/b" || got["c"] != "x-fmt/g" {
		t.Errorf("formats of version 2: %v", got)
	}
	events = r.events(o, "format identification")
	if len(events) != 2 || events[1].Detail != "3 of 3 files identified, 2 of them by an earlier version with the same content" {
		t.Errorf("events %+v", events)
	}
}

func TestFormats_GoOnAfterAKill(t *testing.T) {
	t.Parallel()
	ctx, kill := context.WithCancel(t.Context())
	k := &knowing{asked: map[string]int{}, after: 150, stop: func(ctx context.Context) error { kill(); <-ctx.Done(); return errTest }}
	r := newRig(t, func(d *workers.Deps) { d.Identifier = k })
	zip, files := manyFilesZip(t)
	id := r.job(registry.Spec{Type: registry.ContainerType, Filename: "c.zip", URL: r.site.put("c.zip", zip)})
	r.advance(id, registry.Process)
	if _, err := r.runAs(ctx, id); err == nil {
		t.Fatal("it was not interrupted")
	}
	before := k.again()
	o := r.complete(id)
	if after := k.again(); before < 100 || before+after > len(files)+100 {
		t.Errorf("asked %d and then %d times of %d files", before, after, len(files))
	}
	if got := len(r.puids(o, 1)); got != len(files) {
		t.Errorf("%d files have a format, want %d", got, len(files))
	}
}

func TestFormats_IdentifierDownIsTheSystemsFault(t *testing.T) {
	t.Parallel()
	c, err := siegfried.New(siegfried.Options{URL: "http://127.0.0.1:1"})
	must(t, err)
	defer c.Close()
	r := newRig(t, func(d *workers.Deps) { d.Identifier = c })
	it := r.fails(r.job(registry.Spec{Type: registry.FileType, Filename: "a", URL: r.site.put("a", "alpha")}))
	wantClass(t, it, registry.SystemFault, "siegfried", "HOLDFAST_SIEGFRIED_URL")
	if left := keys(t, r.storage, "v1"); len(left) > 0 {
		t.Errorf("stored %v", left)
	}
}

func TestFormats_BySiegfried(t *testing.T) {
	t.Parallel()
	c, err := siegfried.New(siegfried.Options{URL: siegfriedtest.Start(t)})
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	r := newRig(t, func(d *workers.Deps) { d.Identifier = c })
	o := r.complete(r.job(registry.Spec{Type: registry.FileType, Filename: "a.pdf", URL: r.site.put("a.pdf", "%PDF-1.4\n%%EOF\n")}))
	if got := r.puids(o, 1); got["a.pdf"] != "fmt/18" {
		t.Errorf("formats %v, want fmt/18", got)
	}
	if e := r.events(o, "format identification"); len(e) != 1 || !strings.HasPrefix(e[0].Agent, "siegfried 1.") || e[0].Detail != "1 of 1 files identified" {
		t.Errorf("events %+v", e)
	}
}

func TestFormats_ByMediaType(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	o := r.complete(r.job(registry.Spec{Type: registry.ContainerType, Filename: "c.zip", URL: r.site.put("c.zip", zipOf(t, map[string]string{
		"a.csv": "x", "noise": "\xff\x00\x13\x99",
	}))}))
	if manifest := r.content(o, 1, "system/mrt-manifest.txt"); !strings.Contains(manifest, "text/csv") || !strings.Contains(manifest, "octet-stream") {
		t.Errorf("mrt-manifest.txt has not the types:\n%s", manifest)
	}
	e := r.events(o, "format identification")
	if len(e) != 1 || e[0].Agent != format.Agent || e[0].Detail != "1 of 2 files identified; not identified: noise" {
		t.Errorf("events %+v", e)
	}
}
