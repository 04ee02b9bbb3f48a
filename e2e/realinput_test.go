package e2e

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// realInput is a real input as a depositor submits it, and its expected outcome. The payload is its
// name on the test's server.
type realInput struct {
	row     int    // of the table of real inputs
	name    string // what sets it apart from others of the row
	payload string
	args    []string

	completed []object // what is preserved, an object for each job that completes
	failed    int      // jobs that fail, or the whole batch, since the deposit is wrong
	system    bool     // they do so since the system could not have it
	faults    []fault  // of the manifest, as the depositor is told
	told      []string // what else the depositor is told
	refused   bool     // as an uploaded file it is not even accepted
	warnings  []fault  // what stands in the history as odd
	check     func(t *testing.T, h *holdfast, s summary)
}

// fault is a rule that was broken on a line of a manifest.
type fault struct {
	line int
	rule string
}

// wantFaults fails the test unless a text tells of all these faults.
func wantFaults(t *testing.T, what, text string, faults []fault) {
	t.Helper()
	for _, f := range faults {
		if !regexp.MustCompile(fmt.Sprintf(`line %d(, column \d+)?( \([^)]+\))?: %s;`, f.line, f.rule)).MatchString(text) {
			t.Errorf("%s says %q, without %s on line %d", what, text, f.rule, f.line)
		}
	}
}

// object is what a producer gets back: contents by name.
type object map[string]string

// String implements fmt.Stringer: objects with the same names and bytes have the same text.
func (o object) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(o)) {
		sum := md5.Sum([]byte(o[name]))
		fmt.Fprintf(&b, "%q %s, ", name, hex.EncodeToString(sum[:]))
	}
	return b.String()
}

// TestRealInputs takes every real input through the whole pipeline and back out, each row of the
// table by its number. Hostile names have their own test.
func TestRealInputs(t *testing.T) {
	t.Parallel()
	in := newInputs(t)
	second := t.TempDir()
	// A fault of the system shows at once instead of after its retries.
	h := up(t, "HOLDFAST_MAX_ATTEMPTS=1", noEventWaits, "HOLDFAST_STORAGE_URL=second=file://"+second)
	t.Run("rows", func(t *testing.T) {
		seen := map[int]bool{}
		for _, row := range in.rows() {
			seen[row.row] = true
			t.Run(strings.TrimSpace(fmt.Sprintf("%02d %s %s", row.row, row.payload, row.name)), func(t *testing.T) {
				t.Parallel()
				row.run(t, h.in(t), in)
			})
		}
		for n := 1; n <= 40; n++ {
			if !seen[n] {
				t.Errorf("row %d is missing", n)
			}
		}
	})
	t.Run("every job passed the six stages", func(t *testing.T) { sixStages(t, h.in(t)) })
	t.Run("all objects verify", func(t *testing.T) { h.in(t).must(0, "object", "verify", "--all") })
	t.Run("nothing is left in staging of what completed", func(t *testing.T) {
		done := completedJobs(h.in(t))
		for name := range files(t, filepath.Join(h.dir, "staging")) {
			for _, id := range done {
				if strings.Contains(name, id) {
					t.Errorf("left behind: %s", name)
				}
			}
		}
	})
	t.Run("the Registry is made again", func(t *testing.T) { sameAgain(t, h, second) })
}

// in is the same Holdfast, driven by another test.
func (h *holdfast) in(t *testing.T) *holdfast {
	other := *h
	other.t = t
	return &other
}

// run submits an input and compares what becomes of it.
func (in realInput) run(t *testing.T, h *holdfast, from *inputs) {
	t.Helper()
	s, code := h.submit(append([]string{from.url + "/" + in.payload}, in.args...)...)
	want := 0
	switch {
	case in.failed > 0 && len(in.completed) > 0:
		want = 3
	case in.system:
		want = 1
	case in.failed > 0:
		want = 6
	}
	if code != want || s.Completed != len(in.completed) || (s.State == "Completed") != (in.failed == 0) {
		t.Fatalf("exit=%d state=%s completed=%d (%s), want %d, %d completed, %d failed", code, s.State, s.Completed, s.told(), want, len(in.completed), in.failed)
	}
	if failed := max(s.Failed, 1); in.failed > 0 && failed != in.failed {
		t.Errorf("%d failed, want %d", failed, in.failed)
	}
	for _, j := range s.Jobs {
		class := "content"
		if in.system {
			class = "system"
		}
		if j.State == "Failed" && j.ErrorClass != class || j.State == "Completed" && (j.ARK == "" || j.ObjectID != j.ARK) {
			t.Errorf("job %+v, want a failed one to be of class %s", j, class)
		}
	}
	wantFaults(t, "the depositor's report", s.told(), in.faults)
	says(t, "the depositor's report", s.told(), in.told...)
	compareObjects(t, in.completed, preserved(t, h, s))
	if len(in.warnings) > 0 || in.failed == 0 {
		wantHistory(t, h, s, in.warnings)
	}
	if in.refused {
		in.refusedAsUpload(t, h, from)
	}
	if in.check != nil {
		in.check(t, h, s)
	}
}

// told is what a summary says is wrong with the batch and its jobs.
func (s summary) told() string {
	texts := []string{s.Error}
	for _, j := range s.Jobs {
		texts = append(texts, j.Error)
	}
	return strings.Join(texts, "\n")
}

// refusedAsUpload submits the same bytes as a file. They must be refused with the same faults,
// which `holdfast check` reports without a service.
func (in realInput) refusedAsUpload(t *testing.T, h *holdfast, from *inputs) {
	t.Helper()
	path := from.file(t, in.payload)
	for _, r := range []result{
		h.must(6, append([]string{"submit", "--json", path}, in.args...)...),
		h.runIn("", append([]string{"check", "--json", path}, in.args...)...),
	} {
		got := faultsOf(t, r)
		for _, f := range in.faults {
			if r.code != 6 || !slices.Contains(got, f) {
				t.Errorf("exit=%d, refused for %v, want 6 and %v among them", r.code, got, f)
			}
		}
	}
}

// faultsOf are the faults in the first line that a command printed, each of which says all there is
// to say.
func faultsOf(t *testing.T, r result) []fault {
	t.Helper()
	first, _, _ := strings.Cut(r.stdout, "\n")
	var answer struct {
		Faults []struct {
			Line     int    `json:"line"`
			Rule     string `json:"rule"`
			Expected string `json:"expected"`
			Found    string `json:"found"`
			Fix      string `json:"fix"`
		} `json:"faults"`
	}
	if err := json.Unmarshal([]byte(first), &answer); err != nil {
		t.Fatalf("%s: %v", r.stdout, err)
	}
	var got []fault
	for _, f := range answer.Faults {
		if f.Line == 0 || f.Rule == "" || f.Expected == "" || f.Found == "" || f.Fix == "" {
			t.Errorf("a fault that does not say all: %+v", f)
		}
		got = append(got, fault{f.Line, f.Rule})
	}
	return got
}

// preserved exports what the completed jobs of a batch stored.
func preserved(t *testing.T, h *holdfast, s summary) []object {
	t.Helper()
	var got []object
	for _, j := range s.Jobs {
		if j.State == "Completed" {
			got = append(got, export(t, h, j.ObjectID, "--version", fmt.Sprint(j.Version)))
		}
	}
	return got
}

// export is what the producer gets back of an object.
func export(t *testing.T, h *holdfast, id string, args ...string) object {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	h.must(0, append([]string{"object", "export", id, "--out", out}, args...)...)
	return files(t, out)
}

func compareObjects(t *testing.T, want, got []object) {
	t.Helper()
	texts := func(objects []object) []string {
		var all []string
		for _, o := range objects {
			all = append(all, o.String())
		}
		slices.Sort(all)
		return all
	}
	if w, g := texts(want), texts(got); !slices.Equal(w, g) {
		t.Errorf("preserved:\n%s\nwant:\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

// wantHistory checks that the history of a submission's batch or job has its warnings, and no
// others, once.
func wantHistory(t *testing.T, h *holdfast, s summary, want []fault) {
	t.Helper()
	type event struct {
		Type string `json:"type"`
		Data struct {
			Count int      `json:"count"`
			First []string `json:"first"`
		} `json:"data"`
	}
	var found []string
	ids := []string{s.BatchID}
	for _, j := range s.Jobs {
		ids = append(ids, j.ItemID)
	}
	for _, id := range ids {
		for _, e := range rows[event](h, "item", "history", id) {
			if e.Type == "manifest-warnings" {
				found = append(found, e.Data.First...)
			}
		}
	}
	if len(found) != len(want) {
		t.Errorf("warnings %q, want %d", found, len(want))
	}
	wantFaults(t, "the history", strings.Join(found, "\n"), want)
}

// sixStages checks that each completed job advanced once from every stage.
func sixStages(t *testing.T, h *holdfast) {
	t.Helper()
	type event struct {
		ItemID string `json:"item_id"`
		Data   struct {
			From string `json:"from"`
		} `json:"data"`
	}
	passed := map[string][]string{}
	for _, e := range rows[event](h, "events", "--after", "0", "--types", "advance,complete", "--limit", "0") {
		passed[e.ItemID] = append(passed[e.ItemID], e.Data.From)
	}
	want := []string{"estimate", "provision", "download", "process", "record", "notify"}
	jobs := completedJobs(h)
	for _, id := range jobs {
		if !slices.Equal(passed[id], want) {
			t.Errorf("item %s passed %v, want %v", id, passed[id], want)
		}
	}
	if len(jobs) == 0 {
		t.Error("no job completed")
	}
}

// completedJobs are the ids of all jobs that completed.
func completedJobs(h *holdfast) []string {
	var ids []string
	for _, it := range rows[item](h, "item", "list", "action:ingest state:completed", "--limit", "0") {
		ids = append(ids, it.ID)
	}
	return ids
}

// described is what an object's metadata came to.
type described struct {
	ID       string   `json:"object_id"`
	LocalIDs []string `json:"local_ids"`
	Title    string   `json:"title"`
	Creator  string   `json:"creator"`
	Date     string   `json:"date"`
	Version  int      `json:"version"`
}

// wantDescribed compares what an object is known by, its local ids in whatever order.
func wantDescribed(t *testing.T, h *holdfast, id string, want described) {
	t.Helper()
	all := rows[described](h, "object", "show", id)
	if len(all) != 1 {
		t.Fatalf("object show %s printed %d rows", id, len(all))
	}
	got := all[0]
	want.ID, want.Version = cmp.Or(want.ID, got.ID), cmp.Or(want.Version, 1)
	slices.Sort(want.LocalIDs)
	slices.Sort(got.LocalIDs)
	if !slices.Equal(got.LocalIDs, want.LocalIDs) || got.Title != want.Title || got.Creator != want.Creator || got.Date != want.Date ||
		got.ID != want.ID || got.Version != want.Version {
		t.Errorf("object %+v, want %+v", got, want)
	}
}

// jobNamed is the job of a batch that has this name.
func jobNamed(t *testing.T, s summary, name string) job {
	t.Helper()
	i := slices.IndexFunc(s.Jobs, func(j job) bool { return j.Name == name })
	if i < 0 {
		t.Fatalf("no job named %s in %+v", name, s.Jobs)
	}
	return s.Jobs[i]
}

// unpacked unpacks a container with the system's own programs.
func unpacked(t *testing.T, path string) object {
	t.Helper()
	out := t.TempDir()
	unpack(t, path, out)
	return files(t, out)
}
