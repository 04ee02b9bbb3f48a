package workers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// mrt-erc goes before mrt-datacite, mrt-dc and what the form says (reference/merritt.md, 4.2);
// local ids are merged.
func TestMetadata_Precedence(t *testing.T) {
	erc := "erc:\nwho: erc who\nwhere: l-erc\n"
	datacite := `<resource xmlns="http://datacite.org/schema/kernel-4"><creators><creator><creatorName>dc who</creatorName></creator></creators><titles><title>datacite what</title></titles></resource>`
	dc := `<DublinCore xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>dc what</dc:title><dc:date>1931</dc:date><dc:identifier>l-dc</dc:identifier></DublinCore>`
	for _, tt := range []struct {
		name  string
		files map[string]string
		bag   bool
		want  [3]string // creator, title, date
		ids   []string
	}{
		{"form alone", map[string]string{"x": "x"}, false, [3]string{"form who", "form what", "form when"}, []string{"l-form"}},
		{
			"all",
			map[string]string{"mrt-erc.txt": erc, "mrt-datacite.xml": datacite, "mrt-dc.xml": dc, "x": "x"},
			false,
			[3]string{"erc who", "datacite what", "1931"},
			[]string{"l-form", "l-erc", "l-dc"},
		},
		{"not at the top", map[string]string{"sub/mrt-erc.txt": erc}, false, [3]string{"form who", "form what", "form when"}, []string{"l-form"}},
		{
			"in a bag",
			map[string]string{"mrt-erc.txt": erc, "sub/data/mrt-dc.xml": dc},
			true,
			[3]string{"erc who", "form what", "form when"},
			[]string{"l-form", "l-erc"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			files := tt.files
			if tt.bag {
				files = bagOf(tt.files, nil)
			}
			job := r.job(registry.Spec{
				Type: registry.AutoType, URL: r.site.put("c.zip", zipOf(t, files)), Filename: "c.zip",
				Creator: "form who", Title: "form what", Date: "form when", LocalIDs: []string{"l-form"},
			})
			o := r.complete(job)
			if got := [3]string{o.Creator, o.Title, o.Date}; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			slices.Sort(o.LocalIDs)
			slices.Sort(tt.ids)
			if !slices.Equal(o.LocalIDs, tt.ids) {
				t.Errorf("local ids %v, want %v", o.LocalIDs, tt.ids)
			}
		})
	}
}

// A collection may prevent dc:identifier from becoming a local id; the rest of mrt-dc.xml counts.
func TestMetadata_SuppressDCLocalIDs(t *testing.T) {
	r := newRig(t, nil)
	r.profile(collection, registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, SuppressDCLocalIDs: true})
	dc := `<DublinCore xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>dc what</dc:title><dc:identifier>l-dc</dc:identifier></DublinCore>`
	job := r.job(registry.Spec{
		Type: registry.ContainerType, URL: r.site.put("c.zip", zipOf(t, map[string]string{"mrt-dc.xml": dc, "x": "x"})), Filename: "c.zip", LocalIDs: []string{"l-form"},
	})
	if o := r.complete(job); !slices.Equal(o.LocalIDs, []string{"l-form"}) || o.Title != "dc what" {
		t.Errorf("local ids %v, title %q, want l-form and dc what", o.LocalIDs, o.Title)
	}
}

// The system files exist and are correct; the storage manifest lists all others.
func TestSystemFiles(t *testing.T) {
	r := newRig(t, nil)
	job := r.job(registry.Spec{
		Type: registry.ContainerType, URL: r.site.put("c.zip", zipOf(t, sample())), Filename: "c.zip", Submitter: "ann",
		Title: "Jazz; Bears", Creator: "Tracy", Date: "2009-09-01", LocalIDs: []string{"one", "two"}, Notify: []string{"a@example.org"},
	})
	o := r.complete(job)
	files := r.files(o, 1)
	want := map[string]string{
		"mrt-owner.txt":      "ark:/99999/owner",
		"mrt-membership.txt": "ark:/99999/test\n",
		"mrt-erc.txt":        "erc:\nwho: Tracy\nwhat: Jazz; Bears\nwhen: 2009-09-01\nwhere: " + o.ID + "\nwhere: one;two\n",
		"mrt-mom.txt":        "primaryIdentifier: " + o.ID + "\ntype: MRT-curatorial\nrole: MRT-content\nlocalIdentifier: one;two\n",
	}
	for name, text := range want {
		if got := strings.ReplaceAll(files["system/"+name], ": \n", ":\n"); strings.TrimSpace(got) != strings.TrimSpace(text) {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, text)
		}
	}
	ingest := files["system/mrt-ingest.txt"]
	for _, line := range []string{
		"ingest:\tHoldfast 1.2.3", "job:\t" + job, "userAgent:\tann", "file:\tc.zip", "type:\tcontainer", "profile:\ttest",
		"suppliedIdentifier:\t(:unas)", "containerValidity:\tvalid", "assignedIdentifier:\t" + o.ID,
		"handlers:\testimate;provision;download;process",
	} {
		if !strings.Contains(ingest, line+"\n") {
			t.Errorf("mrt-ingest.txt lacks %q:\n%s", line, ingest)
		}
	}
	if !strings.Contains(files["system/mrt-dc.xml"], "<dc:title>Jazz; Bears</dc:title>") {
		t.Errorf("mrt-dc.xml:\n%s", files["system/mrt-dc.xml"])
	}
	wantListed(t, files)
}

// wantListed checks that a version's storage manifest names exactly the other files, with their
// digests.
func wantListed(t *testing.T, files map[string]string) {
	t.Helper()
	listed := map[string]int64{}
	reader := checkm.NewReader(strings.NewReader(files["system/mrt-manifest.txt"]), checkm.Options{})
	for {
		row, faults, err := reader.Next()
		if err != nil {
			break
		}
		if checkm.Refused(faults) || row.Digest == "" {
			t.Errorf("row %+v: %v", row, faults)
		}
		listed[row.Name] = row.Size
	}
	if len(reader.Faults()) > 0 {
		t.Errorf("the manifest is faulty: %v", reader.Faults())
	}
	want := map[string]int64{}
	for path, data := range files {
		if path != "system/mrt-manifest.txt" {
			want[path] = int64(len(data))
		}
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("mrt-manifest.txt (-files +listed):\n%s", diff)
	}
}

// An ARK in mrt-erc.txt names the object; one that differs from the form's is a content fault.
func TestIdentify_ARKInERC(t *testing.T) {
	r := newRig(t, nil)
	z := zipOf(t, map[string]string{"mrt-erc.txt": "erc:\nwhat: x\nwhere: ark:99999/fk4-own\nwhere: l1\n", "x": "x"})
	url := r.site.put("c.zip", z)
	o := r.complete(r.job(registry.Spec{Type: registry.ContainerType, URL: url, Filename: "c.zip"}))
	if o.ID != "ark:/99999/fk4own" || !slices.Equal(o.LocalIDs, []string{"l1"}) {
		t.Errorf("object %s, local ids %v", o.ID, o.LocalIDs)
	}
	if ingest := r.content(o, 1, "system/mrt-ingest.txt"); !strings.Contains(ingest, "suppliedIdentifier:\tark:99999/fk4-own\n") ||
		strings.Contains(ingest, "Identifier:\t"+o.ID) {
		t.Errorf("mrt-ingest.txt:\n%s", ingest)
	}
	it := r.fails(r.job(registry.Spec{Type: registry.ContainerType, URL: url, Filename: "c.zip", PrimaryID: "ark:/99999/fk4other"}))
	isContent(t, it, "fk4-own", "fk4other")
}

// A local id leads to its object; with another ARK beside it the deposit contradicts itself.
func TestIdentify_LocalID(t *testing.T) {
	r := newRig(t, nil)
	spec := registry.Spec{Type: registry.FileType, URL: r.site.put("f", "one"), Filename: "f", LocalIDs: []string{"shelf 7"}}
	first := r.complete(r.job(spec))
	spec.URL = r.site.put("g", "two")
	second := r.complete(r.job(spec))
	if first.ID != second.ID || second.Head != 2 {
		t.Errorf("objects %s and %s, version %d", first.ID, second.ID, second.Head)
	}
	r.valid(second, 2)
	if ingest := r.content(second, 2, "system/mrt-ingest.txt"); !strings.Contains(ingest, "retrievedIdentifier:\t"+first.ID) {
		t.Errorf("mrt-ingest.txt:\n%s", ingest)
	}
	spec.PrimaryID = "ark:/99999/fk4other"
	isContent(t, r.fails(r.job(spec)), "shelf 7", "fk4other", first.ID)
	// Another owner's ids are another matter.
	r.profile("other", registry.Profile{Owner: "ark:/99999/another", Collections: []string{"ark:/99999/other"}})
	spec.PrimaryID = ""
	third := r.complete(r.expand(r.submitTo("other", spec))[0].ID)
	if third.ID == first.ID {
		t.Error("another owner's local id led to the object")
	}
}

// A collection that lacks what every object needs is not the depositor's fault.
func TestSystemFiles_IncompleteProfile(t *testing.T) {
	r := newRig(t, nil)
	r.profile("bare", registry.Profile{})
	jobs := r.expand(r.submitTo("bare", registry.Spec{Type: registry.FileType, URL: r.site.put("f", "f"), Filename: "f"}))
	wantClass(t, r.fails(jobs[0].ID), registry.SystemFault, "bare", "profile")
}

// Names that are difficult for storages, systems or manifests are preserved byte for byte
// (reference/merritt.md, row 41).
func TestNames_Hostile(t *testing.T) {
	names := []string{
		"README 1.md", "README+2.md", "README %AF.md", "Test50%majrule.txt", "Z_5%_400C-bet.xlsx", "README cliché.md",
		"README|pipe.md", "こんにちは.md", "שלום", "مرحبا", "file☠☡☢☣.txt", "file..name..with..dots.txt", "file & name.txt",
		"∑a ≤ b.txt", "nfc-é.txt", "nfd-e\u0301.txt", "e\u0301 and é.txt", "repl\uFFFD.txt", "File%00x.md", "File%hhx.md", "File%!!x.md",
		"-rf", "#%eof", "a;b", "CON", "name.", strings.Repeat("long", 60), strings.Repeat("deep/", 40) + "x", `back\slash-is-not`,
	}
	names = slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, `\`) }) // unpack refuses it in a zip
	want := map[string]string{}
	for i, n := range names {
		want[n] = fmt.Sprintf("content %d", i)
	}
	for kind, data := range map[string]string{"zip": zipOf(t, want), "tar": tarOf(t, want)} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, nil)
			o := r.complete(r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c", data), Filename: "c"}))
			r.valid(o, 1)
			if diff := cmp.Diff(want, r.producer(o, 1)); diff != "" {
				t.Errorf("names and contents (-want +got):\n%s", diff)
			}
		})
	}
}

// Recorded times are the Registry's, however wrong the worker's clock is.
func TestR15_TimesAreTheRegistrys(t *testing.T) {
	r, _, _ := newFaultyRig(t)
	const ahead = 1000 * time.Hour
	r.wait(ahead)
	o := r.complete(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("f", "content"), Filename: "f"}))
	for what, at := range map[string]time.Time{
		"the version's time": o.Versions[0].CreatedAt, "the verification": o.Versions[0].Replicas[0].VerifiedAt,
	} {
		if off := time.Until(at) - ahead; off.Abs() > time.Hour {
			t.Errorf("%s is %v off the Registry's clock", what, off)
		}
	}
}
