package checkm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/checkm"
)

// TestMerrittCases judges every manifest in Merritt's documentation.
func TestMerrittCases(t *testing.T) {
	dir := casesDir(t)
	tests := []struct {
		file     string
		kind     checkm.Kind
		rows     int64
		refused  int64
		unsound  bool
		wantFlaw []string
	}{
		{file: "sampleFiles/4blocks.checkm", kind: checkm.Object, rows: 2},
		{file: "sampleFiles/bigHunt.checkm", kind: checkm.Object, rows: 3},
		{file: "sampleFiles/call911.checkm", kind: checkm.Object, rows: 2},
		{file: "sampleFiles/sampleBatchOfContainers.checkm", kind: checkm.ContainerBatch, rows: 3},
		{file: "sampleFiles/sampleBatchOfFiles.checkm", kind: checkm.FileBatch, rows: 3},
		{file: "sampleFiles/sampleBatchOfManifests.checkm", kind: checkm.Batch, rows: 3},
		{file: "manifests/4blocks_alg_uppercase.checkm", kind: checkm.Object, rows: 2},
		{file: "manifests/4blocks_dup_filename.checkm", kind: checkm.Object, rows: 3, refused: 1, wantFlaw: []string{"8 error name-duplicate"}},
		{file: "manifests/4blocks_dup_filename_diff_folders.checkm", kind: checkm.Object, rows: 3},
		{file: "manifests/4blocks_incorrect_algorithm.checkm", kind: checkm.Object, rows: 2, refused: 1, wantFlaw: []string{"7 error algorithm"}},
		{file: "manifests/4blocks_incorrect_filesize.checkm", kind: checkm.Object, rows: 2, refused: 1, wantFlaw: []string{"7 error size"}},
		{file: "manifests/4blocks_incorrect_md5_format.checkm", kind: checkm.Object, rows: 2, refused: 1, wantFlaw: []string{"6 error digest"}},
		{file: "manifests/4blocks_incorrect_url_hostname.checkm", kind: checkm.Object, rows: 2},
		{file: "manifests/4blocks_incorrect_url_protocol.checkm", kind: checkm.Object, rows: 2, refused: 1, wantFlaw: []string{"7 error url-scheme"}},
		{file: "manifests/4blocks_missing_fname.checkm", kind: checkm.Object, rows: 2},
		{file: "manifests/4blocks_missing_url.checkm", kind: checkm.Object, rows: 2, refused: 1, wantFlaw: []string{"6 error url-missing"}},
		{file: "manifests/4blocks_nl_after_data.checkm", kind: checkm.Object, rows: 2},
		{file: "manifests/4blocks_nl_before_data.checkm", kind: checkm.Object, rows: 2},
		{file: "manifests/4blocks_nodecl.checkm", kind: checkm.Object, rows: 2, wantFlaw: []string{"5 warning header-missing"}},
		{file: "manifests/4blocks_noeof.checkm", kind: checkm.Object, rows: 2, unsound: true, wantFlaw: []string{"7 error truncated"}},
		{file: "manifests/4blocks_nofields.checkm", kind: checkm.Object, rows: 2, wantFlaw: []string{"5 warning header-missing"}},
		{file: "manifests/4blocks_noprefix.checkm", kind: checkm.Object, rows: 2, wantFlaw: []string{"4 warning header-missing"}},
		{file: "manifests/4blocks_noprofile.checkm", rows: 2, unsound: true, wantFlaw: []string{"5 error profile-missing"}},
		{file: "manifests/4blocks_with_bad_date.checkm", kind: checkm.Object, rows: 2, wantFlaw: []string{"7 warning modified"}},
		{file: "manifests/4blocks_with_date.checkm", kind: checkm.Object, rows: 2},
		{file: "manifests/4blocks_with_moddate.checkm", kind: checkm.Object, rows: 2},
		{file: "manifests/sampleBatchOfContainers_incorrect_filename.checkm", kind: checkm.ContainerBatch, rows: 3, refused: 1, wantFlaw: []string{"7 error container-name"}},
		{file: "manifests/sampleBatchOfManifests_incorrect_filename.checkm", kind: checkm.Batch, rows: 3},
	}
	judged := map[string]bool{}
	for _, tt := range tests {
		judged[tt.file] = true
		t.Run(tt.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if kind, ok := checkm.Detect(data); !ok || kind != tt.kind {
				t.Errorf("Detect = %q, %t; want %q, true", kind, ok, tt.kind)
			}
			rep := check(t, string(data), checkm.Options{})
			if rep.Kind != tt.kind || rep.Rows != tt.rows || rep.Refused != tt.refused || rep.Sound == tt.unsound {
				t.Errorf("kind %q, %d rows, %d refused, sound %t; want %q, %d, %d, %t",
					rep.Kind, rep.Rows, rep.Refused, rep.Sound, tt.kind, tt.rows, tt.refused, !tt.unsound)
			}
			wantFaults(t, rep, tt.wantFlaw...)
		})
	}
	for _, sub := range []string{"sampleFiles", "manifests"} {
		files, err := filepath.Glob(filepath.Join(dir, sub, "*.checkm"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name := sub + "/" + filepath.Base(f); !judged[name] {
				t.Errorf("%s is not judged by this test", name)
			}
		}
	}
}

// TestMerrittNoProfileTypeGiven checks that the type given by the submitter is used where a
// manifest has no profile.
func TestMerrittNoProfileTypeGiven(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(casesDir(t), "manifests", "4blocks_noprofile.checkm"))
	if err != nil {
		t.Fatal(err)
	}
	rep := check(t, string(data), checkm.Options{Kind: checkm.Object})
	if rep.Errors > 0 || !rep.Sound || rep.Kind != checkm.Object || rep.Rows != 2 {
		t.Errorf("report = %+v, want two good rows", rep)
	}
}
