package evidencereport

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/holdfast/holdfast/registry/receipt"
)

// Verdict says whether a report is as it was made.
type Verdict struct {
	Report  receipt.Report
	Signed  bool
	Trusted bool // by one of the keys that were given
	Files   int
	Faults  []string // the first mostFaults; none: it is whole and unchanged
}

// mostFaults is how many faults are listed, and mostManifest the largest manifest in bytes.
const (
	mostFaults   = 100
	mostManifest = 1 << 20
)

// Is reports whether a folder or zip has the signature file of a report.
func Is(report fs.FS) bool {
	f, err := report.Open(SignatureFile)
	if err != nil {
		return false
	}
	begin, err := io.ReadAll(io.LimitReader(f, int64(len(receipt.ReportMagic))))
	return cmp.Or(err, f.Close()) == nil && string(begin) == receipt.ReportMagic
}

// Check verifies a report: signature, manifest and every file, and that there are no others. An error
// means that it could not be read.
func Check(report fs.FS, keys []receipt.PublicKey) (v Verdict, err error) {
	fault := func(format string, args ...any) {
		if len(v.Faults) < mostFaults {
			v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
		}
	}
	text, err := readSmall(report, SignatureFile)
	if err != nil {
		return v, err
	}
	if v.Report, v.Trusted, err = receipt.ReadReport(text, keys); err != nil {
		fault("%s: %v", SignatureFile, err)
	}
	v.Signed = v.Report.Key != ""
	manifest, err := readSmall(report, ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		fault("%s is missing", ManifestFile)
		return v, nil
	} else if err != nil {
		return v, err
	}
	if sum := sha256.Sum256(manifest); hex.EncodeToString(sum[:]) != v.Report.Manifest {
		fault("%s is not the one that was signed", ManifestFile)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(manifest)) {
		digest, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || want[name] != "" || !fs.ValidPath(name) {
			fault("%s has a malformed line", ManifestFile)
			continue
		}
		want[name] = digest
	}
	err = fs.WalkDir(report, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() || path == ManifestFile || path == SignatureFile:
			return nil
		case want[path] == "":
			fault("%s is not in the manifest", path)
			return nil
		}
		got, err := digestOf(report, path)
		if err == nil && got != want[path] {
			fault("%s was changed: it has another digest than the manifest says", path)
		}
		delete(want, path)
		v.Files++
		return err
	})
	for name := range want {
		fault("%s is missing", name)
	}
	return v, err
}

// readSmall reads a file of at most mostManifest bytes.
func readSmall(report fs.FS, name string) ([]byte, error) {
	f, err := report.Open(name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = io.Copy(&b, io.LimitReader(f, mostManifest))
	return b.Bytes(), cmp.Or(err, f.Close())
}

// digestOf returns a file's SHA-256 in hex.
func digestOf(report fs.FS, name string) (string, error) {
	f, err := report.Open(name)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), cmp.Or(err, f.Close())
}
