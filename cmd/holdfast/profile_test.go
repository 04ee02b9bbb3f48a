package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/collection"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// collection is what `collection show --json` prints.
func shownCollection(t *testing.T, dir, name string) registry.Collection {
	t.Helper()
	var c registry.Collection
	r := holdfast(t, "collection", "show", name, "--json", "--dir", dir).Wants(t, exit.OK)
	if err := json.Unmarshal([]byte(r.Out), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// docExample is the profile in docs/profiles.md.
func docExample(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "profiles.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(text, "```")
	if !found || !strings.Contains(text, "retention_days: 365") {
		t.Fatalf("the page has no profile: %q", text)
	}
	return text
}

// The profile in docs/profiles.md is valid, a printed profile is accepted unchanged, and each batch
// has the version of its submission.
func TestCollectionProfiles(t *testing.T) {
	dir := up(t)
	folder := t.TempDir()
	in := func(stdin string, args ...string) clitest.Result {
		t.Helper()
		return holdfastWith(t, stdin, append(append([]string{"collection"}, args...), "--dir", dir)...)
	}
	file := clitest.WriteFile(t, filepath.Join(folder, "maps.yaml"), docExample(t))
	in("", "create", "maps", "--profile", file, "--dry-run").Wants(t, exit.OK).Says(t, "would be created")
	in("", "show", "maps").Wants(t, exit.NotFound)
	in("", "update", "maps", "--profile", file).Wants(t, exit.NotFound).Says(t, "maps")
	in("", "create", "maps", "--profile", file).Wants(t, exit.OK).Says(t, "created: collection maps")
	in("", "create", "maps", "--profile", file).Wants(t, exit.Refused).Says(t, "already")
	made := shownCollection(t, dir, "maps")
	if made.Version != 1 || made.Profile.Name != "Maps and plans" || *made.Profile.RetentionDays != 365 || !made.Profile.Callback.GoesOn {
		t.Errorf("collection %+v", made)
	}

	payload := clitest.WriteFile(t, filepath.Join(folder, "sheet.txt"), "a map")
	submitted := func() registry.Spec {
		t.Helper()
		r := holdfast(t, "submit", payload, "--collection", "maps", "--force", "--json", "--dir", dir).Wants(t, exit.OK)
		var told struct {
			BatchID string `json:"batch_id"`
		}
		for line := range strings.Lines(r.Out) {
			if err := json.Unmarshal([]byte(line), &told); err != nil {
				t.Fatal(err)
			}
		}
		var it registry.WorkItem
		var spec registry.Spec
		shown := holdfast(t, "item", "show", told.BatchID, "--json", "--dir", dir).Wants(t, exit.OK)
		if err := json.Unmarshal([]byte(shown.Out), &it); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(it.Spec, &spec); err != nil {
			t.Fatal(err)
		}
		for _, group := range []string{"item", "batch"} {
			if text := holdfast(t, group, "show", told.BatchID, "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(text, fmt.Sprintf("version %d\n", spec.ProfileVersion)) {
				t.Errorf("%s show does not say version %d:\n%s", group, spec.ProfileVersion, text)
			}
		}
		return spec
	}
	if s := submitted(); s.ProfileVersion != 1 || s.Profile.Name != "Maps and plans" {
		t.Errorf("the first batch has version %d, %+v", s.ProfileVersion, s.Profile)
	}

	for _, form := range [][]string{{"--profile"}, {"--profile", "--json"}} {
		shown := in("", append([]string{"show", "maps"}, form...)...).Wants(t, exit.OK).Out
		r := in(shown, "update", "maps", "--profile", "-").Wants(t, exit.OK).Says(t, "nothing changes", "version 1")
		if r.Out != "" {
			t.Errorf("what is shown by %v changes %s", form, r.Out)
		}
	}
	shown := in("", "show", "maps", "--profile").Wants(t, exit.OK).Out
	changed := strings.Replace(shown, "priority: 7", "priority: 3\nscan: false", 1)
	if r := in(changed, "update", "maps", "--profile", "-", "--dry-run").Wants(t, exit.OK).Says(t, "would be version 2"); r.Out != "priority: 3; it was 7\n" {
		t.Errorf("told %q", r.Out)
	}
	in(changed, "update", "maps", "--profile", "-", "--if-version", "1").Wants(t, exit.OK).Says(t, "version 2")
	in(shown, "update", "maps", "--profile", "-", "--if-version", "1").Wants(t, exit.Refused).Says(t, "at version 2, not 1")
	if s := submitted(); s.ProfileVersion != 2 || *s.Profile.Priority != 3 {
		t.Errorf("the second batch has version %d, %+v", s.ProfileVersion, s.Profile)
	}
	if got := in("", "show", "maps", "--version", "1", "--profile").Wants(t, exit.OK).Out; got != shown {
		t.Errorf("version 1 is shown as\n%s, was\n%s", got, shown)
	}
	in("", "show", "maps", "--version", "3").Wants(t, exit.NotFound).Says(t, "no version 3")

	var history []collection.ProfileChange
	for line := range strings.Lines(in("", "history", "maps", "--json").Wants(t, exit.OK).Out) {
		var c collection.ProfileChange
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		history = append(history, c)
	}
	if len(history) != 2 || history[0].Version != 2 || history[0].Actor == "" || history[1].Version != 1 {
		t.Fatalf("history %+v", history)
	}
	if diff := cmp.Diff([][]string{{"priority: 3; it was 7"}, {"created"}}, [][]string{history[0].Changes, history[1].Changes}); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if one := in("", "history", "maps", "--limit", "1").Wants(t, exit.OK).Says(t, "there are more").Out; !strings.Contains(one, "it was 7") || strings.Contains(one, "created") {
		t.Errorf("the newest alone:\n%s", one)
	}
	in("", "create", "plans", "--owner", "ark:/99999/o", "--member-of", "ark:/99999/plans").Wants(t, exit.OK)
	if plans := shownCollection(t, dir, "plans"); plans.Profile.Name != "plans" || plans.Profile.Collections[0] != "ark:/99999/plans" {
		t.Errorf("plans %+v", plans)
	}
	// What is sent counts for the collection's quota from its first byte on.
	in("name: plans\nowner: ark:/99999/o\ncollections: [ark:/99999/plans]\nupload_bytes: 4\n", "update", "plans", "--profile", "-").Wants(t, exit.OK)
	r := holdfast(t, "submit", payload, "--collection", "plans", "--dir", dir)
	r.Wants(t, exit.NoSpace).Says(t, "5 bytes", "all uploads of collection plans together may have 4 bytes")
	if !strings.Contains(r.Err, "send ") {
		t.Errorf("it was sent and then refused: %s", r.Err)
	}
}

// All faults of a profile are reported with the file's line, whether the command or the Registry
// finds them.
func TestCollectionProfiles_Faults(t *testing.T) {
	dir := up(t)
	file := filepath.Join(t.TempDir(), "bad.yaml")
	for _, tt := range []struct {
		text string
		code exit.Code
		says []string
	}{
		{"ownr: ark:/99999/o\nscan: yes\n", exit.Usage, []string{
			"bad.yaml is not a valid profile", "bad.yaml:1:1: ownr is unknown; did you mean owner?", "bad.yaml:2:7: scan is text; want true or false",
		}},
		{"owner: nobody\ncollections: [ark:/99999/c]\nmail:\n  to:\n    - a@example.org\n    - nobody\nstorages: [none]\nbag_profile:\n  Nonsense: 1\n", exit.Usage, []string{
			"the collection was not changed", "bad.yaml:1:8: owner: ", "bad.yaml:6:7: mail.to[1]: not a mail address", "bad.yaml:7:12: storages[0]: ", "bad.yaml:9:13: bag_profile.Nonsense: ",
		}},
		{"owner: ark:/99999/o\n", exit.Usage, []string{"bad.yaml:1:1: collections: missing"}},
	} {
		clitest.WriteFile(t, file, tt.text)
		holdfast(t, "collection", "create", "maps", "--profile", file, "--dir", dir).Wants(t, tt.code).Says(t, tt.says...)
	}
	holdfast(t, "collection", "create", "maps", "--dir", dir).Wants(t, exit.Usage).Says(t, "--profile FILE")
	holdfast(t, "collection", "update", "default", "--dir", dir).Wants(t, exit.Usage).Says(t, "--profile FILE")
	holdfast(t, "collection", "update", "default", "--profile", file, "--if-version", "0", "--dir", dir).Wants(t, exit.Usage).Says(t, "--if-version")
	holdfast(t, "collection", "create", "maps", "--profile", file+".none", "--dir", dir).Wants(t, exit.NotFound).Says(t, "no such file")
	holdfastWith(t, "name: [", "collection", "update", "default", "--profile", "-", "--dir", dir).Wants(t, exit.Usage).Says(t, "standard input:1: not valid YAML")
	if c := shownCollection(t, dir, "default"); c.Version != 1 {
		t.Errorf("changed: %+v", c)
	}
}

const importedProfile = `ProfileID: old_maps_content
ProfileDescription: Old maps
Owner: ark:/99999/o
Collection.1: ark:/99999/c
Notification.1: ann@example.org
NotificationSuppression: full
StorageNode: 9501
CallbackURL: https://ann:geheim-und-lang@r.example.org/x
Context: maps
`

func TestCollectionImport(t *testing.T) {
	dir := up(t)
	folder := t.TempDir()
	file := clitest.WriteFile(t, filepath.Join(folder, "old_maps_content"), importedProfile)
	in := func(args ...string) clitest.Result {
		t.Helper()
		r := holdfast(t, append(append([]string{"collection", "import"}, args...), "--dir", dir)...)
		if strings.Contains(r.Out+r.Err, "geheim") {
			t.Errorf("%v tells the password:\n%s%s", args, r.Out, r.Err)
		}
		return r
	}
	prints := func(want string, args ...string) clitest.Result {
		t.Helper()
		r := in(args...).Wants(t, exit.OK)
		if r.Out != want+"\n" {
			t.Errorf("%v prints %q, want %q", args, r.Out, want)
		}
		return r
	}
	prints("old_maps: would be created, version 1", file, "--dry-run").Says(t, "old_maps_content:9: Context: left out: ", "old_maps_content:6: NotificationSuppression: changed: mail.failures_only")
	holdfast(t, "collection", "show", "old_maps", "--dir", dir).Wants(t, exit.NotFound)
	in(file, "--storage", "9501=none").Wants(t, exit.Usage).Says(t, "old_maps_content:7: storages[0]: unknown storage")
	prints("old_maps: created, version 1", file, "--storage", "9501=storage").Says(t, "credential set old_maps https://r.example.org --basic ann")
	want := registry.Profile{
		Name: "old_maps", Description: "Old maps", Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}, Storages: []string{"storage"},
		DigestAlgorithm: registry.DefaultDigest,
		Mail:            &registry.MailRules{To: []string{"ann@example.org"}, FailuresOnly: true},
		Callback:        &registry.Callback{URL: "https://r.example.org/x/mc/{job}", GoesOn: true},
	}
	if diff := cmp.Diff(want, shownCollection(t, dir, "old_maps").Profile); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	none := holdfast(t, "collection", "credential", "list", "old_maps", "--json", "--dir", dir).Wants(t, exit.OK)
	if none.Out != "" {
		t.Errorf("a credential nobody asked for: %s", none.Out)
	}
	prints("old_maps: unchanged, version 1", file, "--storage", "9501=storage", "--set-credentials")
	if r := holdfast(t, "collection", "credential", "list", "old_maps", "--dir", dir).Wants(t, exit.OK); !strings.Contains(r.Out, "https://r.example.org") || !strings.Contains(r.Out, "ann") {
		t.Errorf("credentials:\n%s", r.Out)
	}
	in(file).Wants(t, exit.Refused).Says(t, "old_maps already", "--update")
	prints("old_maps: would be changed, version 2", file, "--update", "--dry-run")
	prints("old_maps: changed, version 2", file, "--update")

	owner := clitest.WriteFile(t, filepath.Join(folder, "x_owner"), "ProfileID: x_owner\nAggregate: MRT-owner\n")
	r := in(owner, file, "--json").Wants(t, exit.Partly)
	var first, second collection.Imported
	lines := strings.SplitN(r.Out, "\n", 2)
	for i, into := range []*collection.Imported{&first, &second} {
		if err := json.Unmarshal([]byte(lines[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	if first.Outcome != "refused" || !strings.Contains(first.Error, "of an owner") || first.Collection != "" {
		t.Errorf("the owner's: %+v", first)
	}
	if second.Outcome != "unchanged" || second.Version != 2 || len(second.Properties) != 9 || second.Credential != "https://r.example.org" || second.CredentialSet {
		t.Errorf("the collection's: %+v", second)
	}
	in(file, "--storage", "9501").Wants(t, exit.Usage).Says(t, "NODE=NAME")
}
