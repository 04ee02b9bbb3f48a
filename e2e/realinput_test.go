package e2e

import (
	"crypto/md5"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRealInputs takes every real input of the issue through the whole pipeline and back out.
func TestRealInputs(t *testing.T) {
	folder := cases(t)
	server := serveCases(t)
	h := up(t)
	inputs := []struct {
		payload string
		args    []string
		objects [][]string // names of the producer's files, an object each
	}{
		{payload: "4blocks.checkm", objects: [][]string{{"4blocks.jpg", "4blocks.txt"}}},
		{payload: "bigHunt.checkm", objects: [][]string{{"bigHunt.txt", "bigHunt2.jpg", "bigHunt3.jpg"}}},
		{payload: "call911.checkm", objects: [][]string{{"call911.jpg", "call911.txt"}}},
		{payload: "sampleBatchOfManifests.checkm", objects: [][]string{
			{"4blocks.jpg", "4blocks.txt"}, {"bigHunt.txt", "bigHunt2.jpg", "bigHunt3.jpg"}, {"call911.jpg", "call911.txt"},
		}},
		{payload: "sampleBatchOfContainers.checkm", objects: [][]string{nil, nil, nil}},
		{payload: "sampleBatchOfFiles.checkm", objects: [][]string{{"generalDrapery.jpg"}, {"goldenDragon.jpg"}, {"tumbleBug.jpg"}}},
		{payload: "tumbleBug.jpg", objects: [][]string{{"tumbleBug.jpg"}}},
		{payload: "huskyChicken.zip", args: []string{"--type", "container"}, objects: [][]string{nil}},
		{payload: "brain_v1.tar.gz", args: []string{"--type", "container"}, objects: [][]string{nil}},
	}
	for _, in := range inputs {
		t.Run(in.payload, func(t *testing.T) {
			h.t = t
			s, code := h.submit(append([]string{server + "/" + in.payload}, in.args...)...)
			if code != 0 || s.State != "Completed" || s.Completed != len(in.objects) || s.Failed != 0 {
				t.Fatalf("exit=%d summary=%+v, want %d completed", code, s, len(in.objects))
			}
			var got [][]string
			for _, j := range s.Jobs {
				if j.State != "Completed" || j.ARK == "" || j.ObjectID == "" || j.Version != 1 {
					t.Errorf("job=%+v", j)
				}
				got = append(got, exported(t, h, folder, j.ObjectID))
			}
			want := in.objects
			if want[0] == nil {
				return // the containers' own names were compared with their bytes
			}
			byFirst := func(a, b []string) int { return strings.Compare(a[0], b[0]) }
			slices.SortFunc(got, byFirst)
			if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
				t.Errorf("objects hold %v, want %v", got, want)
			}
		})
	}
	t.Run("every job passed the six stages", func(t *testing.T) {
		h.t = t
		sixStages(t, h)
	})
	t.Run("all objects verify", func(t *testing.T) {
		h.t = t
		if r := h.run("object", "verify", "--all"); r.code != 0 {
			t.Errorf("verify ended with %d: %s%s", r.code, r.stdout, r.stderr)
		}
	})
	t.Run("nothing is left in staging", func(t *testing.T) {
		if left := files(t, filepath.Join(h.dir, "staging")); len(left) != 0 {
			t.Errorf("left behind: %v", slices.Sorted(maps.Keys(left)))
		}
	})
}

// exported exports an object and holds each of its files against the sample files, or, for what came out of a
// container, against the digest in the object's own listing. It returns the names.
func exported(t *testing.T, h *holdfast, folder, object string) []string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	if r := h.run("object", "export", object, "--out", out); r.code != 0 {
		t.Fatalf("export %s ended with %d: %s", object, r.code, r.stderr)
	}
	got := files(t, out)
	for name, data := range got {
		if want, err := os.ReadFile(filepath.Join(folder, name)); err == nil && string(want) != data {
			t.Errorf("%s of %s differs from what was submitted", name, object)
		}
	}
	return slices.Sorted(maps.Keys(got))
}

// sixStages checks in the histories that each completed job was claimed and advanced once in every stage.
func sixStages(t *testing.T, h *holdfast) {
	t.Helper()
	type item struct {
		ID     string `json:"id"`
		Action string `json:"action"`
		State  string `json:"state"`
	}
	type event struct {
		Type string `json:"type"`
		Data struct {
			From string `json:"from"`
		} `json:"data"`
	}
	want := []string{"estimate", "provision", "download", "process", "record", "notify"}
	seen := 0
	for _, it := range rows[item](h, "item", "list", "--limit", "500") {
		if it.Action != "ingest" {
			continue
		}
		seen++
		var passed []string
		for _, e := range rows[event](h, "item", "history", it.ID) {
			if e.Type == "advance" || e.Type == "complete" {
				passed = append(passed, e.Data.From)
			}
		}
		if !slices.Equal(passed, want) {
			t.Errorf("item %s (%s) passed %v, want %v", it.ID, it.State, passed, want)
		}
	}
	if seen == 0 {
		t.Error("no jobs were listed")
	}
}

// TestContainers holds the files of real containers against what a second, independent reader finds in them.
func TestContainers(t *testing.T) {
	folder := cases(t)
	h := up(t)
	for payload, want := range map[string]int{"huskyChicken.zip": 3, "souvenirs.zip": 2, "outdoorStore.zip": 8, "brain_v1.tar.gz": 4} {
		t.Run(payload, func(t *testing.T) {
			h.t = t
			s, code := h.submit(filepath.Join(folder, payload))
			if code != 0 || len(s.Jobs) != 1 {
				t.Fatalf("exit=%d summary=%+v", code, s)
			}
			out := filepath.Join(t.TempDir(), "out")
			if r := h.run("object", "export", s.Jobs[0].ObjectID, "--out", out); r.code != 0 {
				t.Fatalf("export ended with %d: %s", r.code, r.stderr)
			}
			got, members := digests(files(t, out)), digests(unpacked(t, filepath.Join(folder, payload)))
			if len(got) != want || !maps.Equal(got, members) {
				t.Errorf("exported %v, the container has %v", got, members)
			}
		})
	}
}

func digests(in map[string]string) map[string]string {
	out := map[string]string{}
	for name, data := range in {
		sum := md5.Sum([]byte(data))
		out[name] = hex.EncodeToString(sum[:])
	}
	return out
}

// unpacked unpacks a container with the system's own programs.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	out := t.TempDir()
	unpack(t, path, out)
	return files(t, out)
}
