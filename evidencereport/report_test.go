package evidencereport_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/evidencereport"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/survey"
)

// record is a record of a period.
type record struct{ key *receipt.Key }

func at(day int) time.Time { return time.Date(2026, 3, day, 12, 30, 15, 123, time.UTC) }

func (record) CountPeriod(context.Context, survey.Query) (survey.Counts, error) {
	return survey.Counts{
		Holdings: []survey.Holding{{Collection: "maps", Start: survey.Amount{Objects: 1, Versions: 2, Files: 3, Bytes: 4}, End: survey.Amount{Objects: 5, Versions: 6, Files: 7, Bytes: 8}}},
		Formats:  []survey.Format{{PUID: "fmt/353", Name: "Tagged Image File Format", MIMEType: "image/tiff", Files: 7, Bytes: 8}},
		Ingests:  []survey.Ingest{{Collection: "maps", First: 4, Updates: 1, FilesWritten: 4, BytesAdded: 4}},
		Failures: []survey.Failure{{Collection: "maps", Stage: registry.Download, Class: registry.ContentFault, Cause: "0011223344556677", Title: "=404 from example.org", Times: 2}},
		Coverage: []survey.Coverage{{Storage: "a", Files: survey.Share{All: 7, Checked: 3, Written: 4}, Bytes: survey.Share{All: 8, Checked: 4, Written: 2}}, {Storage: "lost", Files: survey.Share{All: 1}}},
		Copies:   []survey.Copies{{Collection: "maps", Copies: 2, Versions: 6}}, Incidents: 1,
		Software: []survey.Software{{Name: "Holdfast 1.2", First: at(1), Last: at(2), Events: 3}},
		Programs: []survey.Program{{Kind: registry.KindWorker, Version: "1.2", First: at(1), Last: at(31), Days: 30}},
		Policies: []survey.Policy{{Collection: "maps", Version: 2, Since: at(1), By: "ann", Profile: registry.Profile{Owner: "ark:/99999/o", Storages: []string{"a", "b"}, Terms: registry.Terms{PreservationLevel: "full"}}}},
		Keys:     []survey.Key{{ID: "aa", PublicKey: "bb", FirstUsed: at(1)}},
	}, nil
}

func (record) Incidents(_ context.Context, _ survey.Query, each func(survey.Incident) error) error {
	return each(survey.Incident{Collection: "maps", Premis: registry.Premis{
		ID: "e1", ObjectID: "ark:/99999/x", Version: 1, ItemID: "i1", Type: "fixity check", At: at(3), Agent: "Holdfast 1.2", Outcome: "failure",
		Detail: "v1/content/producer/a.tif compared by sha512: damaged in storage a; good in storage b", Seq: 9,
	}})
}

func (record) PeriodDeletions(_ context.Context, _ survey.Query, each func(survey.Deletion) error) error {
	approved, deleted := at(5), at(6)
	return each(survey.Deletion{Collection: "maps", Tombstone: "cc", Deletion: registry.Deletion{
		ObjectID: "ark:/99999/y", Status: registry.DeletionDeleted, Reason: "rights, withdrawn", AskedBy: "ann", AskedAt: at(4), ApprovedBy: "ben", ApprovedAt: &approved, DeletedAt: &deleted,
		Last: registry.Remains{Version: 1, Inventory: "sha512:aa", Files: "sha256:bb"}, ItemID: "i2",
	}})
}

func (record) Accesses(_ context.Context, _ survey.Query, each func(survey.Access) error) error {
	for _, a := range []survey.Access{
		{ID: "f1", At: at(7), Kind: registry.EventExported, Actor: "eve", Access: registry.Access{ObjectID: "ark:/99999/x", Version: 1, Collection: "maps", By: registry.ByAPI, Form: "zip"}},
		{ID: "f2", At: at(8), Kind: survey.RestoreRequested, Actor: "dora", Access: registry.Access{ObjectID: "ark:/99999/x", Version: 1, Collection: "maps"}, Reason: "a fire"},
	} {
		if err := each(a); err != nil {
			return err
		}
	}
	return nil
}

func (record) Backups(_ context.Context, _ survey.Query, each func(survey.Backup) error) error {
	for _, day := range []int{9, 10, 12} {
		b := registry.Backup{Name: "holdfast-abc-" + at(day).Format("20060102") + ".tar.zst", Place: "s3://bucket/backups", Bytes: 5, Database: true, Objects: 4, Versions: 6, Program: "1.2"}
		if err := each(survey.Backup{ID: "b", At: at(day), Backup: b}); err != nil {
			return err
		}
	}
	return nil
}

func (r record) SignReport(_ context.Context, report receipt.Report) ([]byte, error) {
	report.Registry = "urn:uuid:00000000-0000-4000-a000-000000000000"
	return r.key.SignReport(report), nil
}

func options(key *receipt.Key) evidencereport.Options {
	return evidencereport.Options{
		Query:  survey.Query{From: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)},
		Source: record{key}, Storages: []evidencereport.Storage{
			{Storage: registry.Storage{Name: "a", State: registry.StorageInUse, Objects: 4}, Address: "file:///srv/a"}, {Storage: registry.Storage{Name: "b", State: registry.StorageFilling, Offsite: true}, Address: "s3://bucket/b"},
		},
		Copies: []registry.CollectionCopies{{Collection: "maps", CopyPolicy: registry.CopyPolicy{Copies: 2, Offsite: 1}, Objects: 4, Short: registry.Amount{Objects: 1}}},
	}
}

// made returns a report as a zip, and its files.
func made(t *testing.T, o evidencereport.Options) ([]byte, fstest.MapFS) {
	t.Helper()
	var b bytes.Buffer
	if err := evidencereport.WriteZip(t.Context(), &b, o); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.File {
		text, err := fs.ReadFile(archive, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = &fstest.MapFile{Data: text}
	}
	return b.Bytes(), files
}

// TestWriteZip: a report reads as testdata/report.txt does, and the same record gives the same bytes.
// UPDATE_GOLDEN=1 writes that file.
func TestWriteZip(t *testing.T) {
	t.Parallel()
	text, files := made(t, options(nil))
	if again, _ := made(t, options(nil)); !bytes.Equal(text, again) {
		t.Error("the same record gives other bytes")
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != evidencereport.ManifestFile && name != evidencereport.SignatureFile {
			all.WriteString("== " + name + "\n" + string(files[name].Data) + "\n")
		}
	}
	const golden = "testdata/report.txt"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestCheck: an unchanged report is right, signed or not, and every change of one is found.
func TestCheck(t *testing.T) {
	t.Parallel()
	key, err := receipt.ParseKey(receipt.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []*receipt.Key{key, nil} {
		_, files := made(t, options(k))
		v, err := evidencereport.Check(files, []receipt.PublicKey{key.Public()})
		if err != nil || len(v.Faults) > 0 || v.Signed != (k != nil) || v.Trusted != (k != nil) || v.Files != len(files)-2 || !evidencereport.Is(files) {
			t.Errorf("signed %t: %+v %v", k != nil, v, err)
		}
	}
	for what, change := range map[string]func(fstest.MapFS){
		"a file changed": func(m fstest.MapFS) { m["access.csv"].Data = append(m["access.csv"].Data, ' ') },
		"a file removed": func(m fstest.MapFS) { delete(m, "incidents.csv") },
		"a file added":   func(m fstest.MapFS) { m["more.csv"] = &fstest.MapFile{} },
		"the manifest changed": func(m fstest.MapFS) {
			m[evidencereport.ManifestFile].Data = append(m[evidencereport.ManifestFile].Data, "x"...)
		},
		"the manifest removed": func(m fstest.MapFS) { delete(m, evidencereport.ManifestFile) },
		"the period changed": func(m fstest.MapFS) {
			m[evidencereport.SignatureFile].Data = bytes.Replace(m[evidencereport.SignatureFile].Data, []byte("2026-04"), []byte("2026-05"), 1)
		},
		"the signature cut off": func(m fstest.MapFS) {
			m[evidencereport.SignatureFile].Data = m[evidencereport.SignatureFile].Data[:bytes.IndexByte(m[evidencereport.SignatureFile].Data, '\n')+1]
		},
	} {
		_, files := made(t, options(key))
		change(files)
		if v, err := evidencereport.Check(files, nil); err != nil || len(v.Faults) == 0 {
			t.Errorf("%s: %+v %v", what, v, err)
		}
	}
	if evidencereport.Is(fstest.MapFS{"README.txt": {}}) {
		t.Error("any folder is a report")
	}
}

// TestWriteZip_Fails: a report whose record cannot be read has no end.
func TestWriteZip_Fails(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.Source = failing{record{}}
	var b bytes.Buffer
	if err := evidencereport.WriteZip(t.Context(), &b, o); err == nil {
		t.Fatal("no error")
	}
	if _, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len())); err == nil {
		t.Error("it looks whole")
	}
}

type failing struct{ record }

func (failing) Accesses(context.Context, survey.Query, func(survey.Access) error) error {
	return io.ErrUnexpectedEOF
}
