package e2e

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore/postgrestest"
)

// differences are all that may differ once a Registry was made again of its storages: the rows of the
// table in docs/evidence.md, "What differs from before", in their order. A row has the fields of answers in
// which these tests see it, or else what shows it.
var differences = []difference{
	{what: "batches, jobs, uploads, tokens, subscriptions, credentials, audit entries", shown: "asked for below"},
	{what: "collections", fields: `^/collections \.rows\[\]\.(version|created_at|profile\.name)$`},
	{what: "an event's job", fields: `^/events \.rows\[\]\.item_id$`},
	{what: "when a file was last checked", fields: `^/objects?\S* \.(checked_at|unchecked|versions\[\]\.replicas\[\]\.verified_at)$`},
	{what: "a deleted object", fields: `^/gone/`},
	{what: "a local id whose only job failed after it was named", shown: "workers TestRebuild"},
	{what: "a version without a right receipt", shown: "workers TestRebuild/no_receipt"},
	{what: "a version with a receipt of format 1 or 2", shown: "workers TestRebuild_ReceiptsOfEarlierFormats"},
	{what: "a version that was written but not recorded when the database was lost", shown: "workers TestReconcile"},
}

// difference is a row of the table.
type difference struct {
	what   string // its first column
	fields string // a regular expression on "RESOURCE FIELD"; "": see shown
	shown  string
}

// seen is what people see: values by "RESOURCE ARK FIELD".
type seen map[string]string

// put adds a value of JSON, flattened.
func (s seen) put(name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			s.put(name+"."+key, value)
		}
	case []any:
		s[name+".length"] = fmt.Sprint(len(v))
		for i, value := range v {
			s.put(fmt.Sprintf("%s[%d]", name, i), value)
		}
	default:
		s[name] = fmt.Sprint(v)
	}
}

// looked is all that the API shows of collections and objects: lists, searches, objects, versions, files,
// events, receipts, PREMIS, folders and exports.
func (h *holdfast) looked(gone string) seen {
	h.t.Helper()
	out := seen{}
	of := func(kind, id string) string { // what is left of a deleted object is another kind of thing
		if id == gone {
			kind = "/gone" + kind
		}
		return kind + " " + id
	}
	type found struct {
		Rows []registry.Object `json:"rows"`
	}
	get := func(name, path string) (answer found) {
		h.t.Helper()
		status, text := h.get("/api/v1" + path)
		if out[name+" status"] = http.StatusText(status); status != http.StatusOK && !strings.HasPrefix(name, "/gone/") {
			h.t.Errorf("%s is answered with %d: %s", path, status, text)
		}
		if strings.Contains(path, "format=tar") && status == http.StatusOK {
			text = inTar(h.t, text)
		}
		var value any
		if json.Unmarshal(text, &value) != nil {
			out[name+" sha256"] = fmt.Sprintf("%x of %d bytes", sha256.Sum256(text), len(text))
			return answer
		}
		list, isList := value.(map[string]any)
		if all, ok := list["rows"].([]any); isList && ok && strings.HasPrefix(path, "/objects?") {
			for _, row := range all {
				id, _ := row.(map[string]any)["object_id"].(string)
				out.put(of(name, id)+" ", row)
				if id != gone {
					out[name+" order"] += id + " "
				}
			}
			delete(list, "rows")
		}
		out.put(name+" ", value)
		if strings.HasPrefix(path, "/objects?") {
			if err := json.Unmarshal(text, &answer); err != nil {
				h.t.Fatal(err)
			}
		}
		return answer
	}
	all := get("/objects", "/objects?limit=500").Rows
	for _, q := range []string{"collection=twice", "text=glass", "text=jazz", "local_id=plate+1"} {
		get("/objects?"+q, "/objects?limit=500&"+q)
	}
	get("/collections", "/collections")
	get("/receipt-keys", "/receipt-keys")
	get("/deletions", "/deletions?limit=500")
	for _, o := range all {
		at := "/objects/" + url.PathEscape(o.ID)
		get(of("/object", o.ID), at)
		get(of("/events", o.ID), at+"/events?limit=500")
		get(of("/premis", o.ID), at+"/premis")
		get(of("/restores", o.ID), at+"/restores")
		for v := 1; v <= o.Head; v++ {
			version := fmt.Sprintf(" v%d", v)
			get(of("/receipt", o.ID)+version, fmt.Sprintf("%s/versions/%d/receipt", at, v))
			get(of("/files", o.ID)+version, fmt.Sprintf("%s/files?limit=500&version=%d", at, v))
			get(of("/folder", o.ID)+version, fmt.Sprintf("%s/folder?path=producer/&limit=500&version=%d", at, v))
			get(of("/changes", o.ID)+version, fmt.Sprintf("%s/changes?limit=500&version=%d", at, v))
			get(of("/export", o.ID)+version, fmt.Sprintf("%s/export?format=tar&system=true&version=%d", at, v))
		}
	}
	return out
}

// inTar returns the names and contents in a tar, without the times, which for files without one are those of
// the export.
func inTar(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for archive := tar.NewReader(bytes.NewReader(text)); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out.Bytes()
		} else if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%q ", head.Name)
		if _, err := io.Copy(&out, archive); err != nil {
			t.Fatal(err)
		}
	}
}

// everyKind deposits what the real inputs lack: an update in two storages, local ids, a deletion, terms with
// an embargo, and a check of all files. It returns the updated and the deleted object when their evidence is in
// the storages.
func (h *holdfast) everyKind(second string) (ark, gone string) {
	h.t.Helper()
	h.storedIn("twice", registry.DefaultStorage, "second")
	file := filepath.Join(h.t.TempDir(), "plate.txt")
	deposit := func(text, local string) string {
		h.t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
		s, code := h.submit(file, "--collection", "twice", "--local-id", local, "--title", "Glass "+local)
		if code != 0 || len(s.Jobs) != 1 {
			h.t.Fatalf("exit=%d summary=%+v", code, s)
		}
		return s.Jobs[0].ObjectID
	}
	ark = deposit("one", "plate 1")
	if again := deposit("two", "plate 1"); again != ark {
		h.t.Fatalf("the update made %s, not %s", again, ark)
	}
	gone = deposit("three", "plate 2")
	ann, _ := h.token("--name", "ann", "--role", "operator")
	ben, _ := h.token("--name", "ben", "--role", "admin")
	if r := h.as(ann, "object", "delete", gone, "--reason", "rights were withdrawn"); r.code != 0 {
		h.t.Fatalf("asked for a deletion: %d %s", r.code, r.stderr)
	}
	r := h.as(ben, "object", "delete", gone, "--approve")
	if r.code != 0 {
		h.t.Fatalf("approved: %d %s", r.code, r.stderr)
	}
	h.must(0, "watch", strings.TrimSpace(r.stdout))
	terms := filepath.Join(h.t.TempDir(), "terms.yaml")
	if err := os.WriteFile(terms, []byte("preservation_level: full\nembargo_until: 2999-01-01\nembargo_reason: a promise\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.must(0, "object", "terms", ark, "--set", terms, "--reason", "agreed")
	before := h.object(ark).CheckedAt
	h.must(0, "object", "fixity", ark, "--reason", "to be sure")
	h.until("every file was read again", func() bool { return h.object(ark).CheckedAt.After(before) })
	h.until("all events are in the storages", func() bool { return h.evidenceKept(ark, filepath.Join(h.dir, "storage"), second) })
	return ark, gone
}

// evidenceKept reports whether each root has the last event of an object beside its bytes.
func (h *holdfast) evidenceKept(ark string, roots ...string) bool {
	h.t.Helper()
	events := rows[registry.Premis](h, "object", "events", ark, "--limit", "0")
	last := slices.MaxFunc(events, func(a, b registry.Premis) int { return cmp.Compare(a.Seq, b.Seq) }).Seq
	for _, root := range roots {
		all, err := filepath.Glob(filepath.Join(root, "*", "*", "*", "*", "extensions", "holdfast-evidence", fmt.Sprintf("events-*-%010d.jsonl", last)))
		if err != nil || len(all) == 0 {
			return false
		}
	}
	return true
}

// sameAgain loses the database, makes it again of the storages, on PostgreSQL and on SQLite, and compares
// all that people see with what was there before. Then an update and a known local id are as before.
func sameAgain(t *testing.T, h *holdfast, second string) {
	was := h.t
	h.t = t // not h.in: its processes are those that the whole test stops
	defer func() { h.t = was }()
	documented(t)
	server := postgrestest.Shared(t)
	ark, gone := h.everyKind(second)
	before := h.looked(gone)
	h.stop()
	for _, name := range []string{"registry.db", "registry.db-wal", "registry.db-shm"} {
		if err := os.Remove(filepath.Join(h.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	met := map[string]bool{}
	env := h.env
	for _, database := range []string{server.Schema(t), ""} {
		if h.database, h.env = database, env; database != "" {
			h.env = append(slices.Clone(env), "HOLDFAST_DATABASE_URL="+database)
			if r := h.runIn("", "migrate"); r.code != 0 {
				t.Fatalf("migrate ended with %d: %s", r.code, r.stderr)
			}
		}
		for range 2 { // wherever it is then, the next run goes on
			cmd := exec.Command(binary, "rebuild", "--dir", h.dir)
			cmd.Env = h.environment()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			_, _ = cmd.Process.Kill(), cmd.Wait() // the next run tells more than the errors
		}
		r := h.runIn("", "rebuild", "--dir", h.dir)
		whole := r.code == 0 && !strings.Contains(r.stdout, "in storage") && strings.Contains(r.stdout, "1 tombstone of deleted ones, 0 with faults, 0 not readable")
		done := r.code == 2 && strings.Contains(r.stderr, "needs a new database") // the killed one had come to its end
		if !whole && !done {
			t.Fatalf("rebuild ended with %d: %s%s", r.code, r.stdout, r.stderr)
		}
		h.start()
		for name, fields := range differing(before, h.looked(gone)) {
			i := slices.IndexFunc(differences, func(d difference) bool {
				return d.fields != "" && regexp.MustCompile(d.fields).MatchString(name)
			})
			if i < 0 {
				t.Errorf("%s: is not the same as before: %v", name, fields)
				continue
			}
			met[differences[i].what] = true
		}
		h.must(0, "object", "verify", "--all")
		h.must(0, "object", "audit", "--all")
		if left := h.list(); len(left) != 0 {
			t.Errorf("%d items are there", len(left))
		}
		if database != "" {
			h.stop()
		}
	}
	for _, d := range differences {
		if d.fields != "" && !met[d.what] {
			t.Errorf("%q does not differ: remove it from the list and from docs/evidence.md", d.what)
		}
	}
	file := filepath.Join(t.TempDir(), "plate.txt")
	if err := os.WriteFile(file, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, args := range map[int][]string{3: {"--local-id", "plate 1"}, 4: {"--update", "--ark", ark}} {
		s, code := h.submit(append([]string{file, "--collection", "twice"}, args...)...)
		if code != 0 || len(s.Jobs) != 1 || s.Jobs[0].ObjectID != ark || s.Jobs[0].Version < 3 {
			t.Errorf("%v: exit=%d summary=%+v, want version %d of %s", args, code, s, version, ark)
		}
	}
	if s, code := h.submit(file, "--collection", "twice", "--local-id", "plate 2"); code == 0 || !strings.Contains(s.told(), "deleted") {
		t.Errorf("a local id of a deleted object: exit=%d %+v", code, s)
	}
}

// documented compares the list of differences with the table of docs/evidence.md.
func documented(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "What differs from\nbefore:\n\n| what | afterwards |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var said, known []string
	for line := range strings.Lines(table) {
		said = append(said, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	for _, d := range differences {
		known = append(known, d.what)
	}
	if !ok || !slices.Equal(said, known) {
		t.Errorf("docs/evidence.md lists %q, and this test %q", said, known)
	}
}

// differing returns the values that differ, by resource and field: not by object, version or place in a
// list.
func differing(before, after seen) map[string][]string {
	out := map[string][]string{}
	for name := range before {
		if _, there := after[name]; !there {
			after[name] = "(missing)"
		}
	}
	for name, is := range after {
		was, there := before[name]
		if !there {
			was = "(missing)"
		}
		if was == is {
			continue
		}
		kind := anyIndex.ReplaceAllString(anyObject.ReplaceAllString(name, ""), "[]")
		if len(out[kind]) < 3 {
			out[kind] = append(out[kind], fmt.Sprintf("%s: %q, before %q", name, is, was))
		}
	}
	return out
}

var anyObject, anyIndex = regexp.MustCompile(` ark:\S+( v\d+)?`), regexp.MustCompile(`\[\d+\]`)
