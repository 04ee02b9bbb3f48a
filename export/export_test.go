package export_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
)

// memory is an object in memory, which is listed two files at a time.
type memory struct {
	files map[string]string
	bad   map[string]string // what is really stored of some
	there map[string]string // the same in a second storage; nil: there is none
	opens []string
	slow  bool // a read gives one byte
}

func (m *memory) Files(_ context.Context, after string) ([]registry.File, error) {
	var out []registry.File
	for name, text := range m.files {
		if name > after {
			d, err := fixity.NewDigester("sha256", "sha512")
			if err != nil {
				return nil, err
			}
			_, _ = d.Write([]byte(text))
			out = append(out, registry.File{Path: name, SizeBytes: int64(len(text)), Digests: d.Sums()})
		}
	}
	slices.SortFunc(out, func(a, b registry.File) int { return strings.Compare(a.Path, b.Path) })
	return out[:min(len(out), 2)], nil
}

func (m *memory) Open(_ context.Context, f registry.File, offset int64, not []string) (io.ReadCloser, string, error) {
	m.opens = append(m.opens, fmt.Sprintf("%s@%d", f.Path, offset))
	text := m.files[f.Path]
	if bad, ok := m.bad[f.Path]; ok {
		text = bad
	}
	place := "here"
	if slices.Contains(not, place) {
		if m.there == nil {
			return nil, "", replica.ErrNowhere
		}
		if place = "there"; slices.Contains(not, place) {
			return nil, "", replica.ErrNowhere
		}
		text = m.files[f.Path]
		if bad, ok := m.there[f.Path]; ok {
			text = bad
		}
	}
	if text == missing {
		return nil, place, replica.ErrDamaged
	}
	breaks := io.EOF
	if whole, broken := strings.CutSuffix(text, cut); broken {
		text, breaks = whole, errCut
	}
	in := io.MultiReader(strings.NewReader(text[min(offset, int64(len(text))):]), iotest.ErrReader(breaks))
	if m.slow {
		in = iotest.OneByteReader(in)
	}
	return io.NopCloser(in), place, nil
}

// What is stored may end in cut: reading it breaks off there. missing is not there at all.
const (
	cut     = "<cut>"
	missing = "<missing>"
)

var errCut = errors.New("input/output error")

func object() *memory {
	return &memory{files: map[string]string{
		"producer/a.txt": "a", "producer/empty": "", "producer/sub/two\nlines 100%": strings.Repeat("text ", 300), "producer/z": "zz",
		"system/mrt-erc.txt": "erc", "system/mrt-mom.txt": "mom",
	}}
}

func lay(t *testing.T, m *memory, opts export.Options) *export.Package {
	t.Helper()
	return layFrom(t, m, &replica.Reader{Source: m}, opts)
}

func layFrom(t *testing.T, m *memory, from *replica.Reader, opts export.Options) *export.Package {
	t.Helper()
	opts.At, opts.Agent = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC), "test"
	o := registry.Object{ID: "ark:/99999/fk4x", ARK: "ark:/99999/fk4x", Title: "A\nb", LocalIDs: []string{"one", "two"}, Terms: registry.Terms{
		Rights:            &registry.Rights{Basis: registry.Copyright, Status: "copyrighted", Jurisdiction: "de", Statement: "until\n2037", URI: "https://example.org/r"},
		PreservationLevel: "full", EmbargoUntil: "2030-01-01", EmbargoReason: "a letter",
	}}
	p, err := export.New(t.Context(), o, 2, m.Files, from, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func forms() map[string]export.Options {
	return map[string]export.Options{"files": {}, "all files": {System: true}, "bag": {Bag: true}, "whole bag": {Bag: true, System: true}}
}

// TestWriteTar_FromAnyByte: from any existing beginning the rest makes the same tar, and earlier
// files are not read.
func TestWriteTar_FromAnyByte(t *testing.T) {
	t.Parallel()
	for name, opts := range forms() {
		m := object()
		p := lay(t, m, opts)
		var whole bytes.Buffer
		if err := p.WriteTar(t.Context(), &whole, 0, nil); err != nil {
			t.Fatal(err)
		}
		if size, err := p.TarSize(t.Context()); err != nil || size != int64(whole.Len()) {
			t.Errorf("%s: size %d %v, want %d", name, size, err, whole.Len())
		}
		for from := 0; from <= whole.Len(); from += 61 { // a prime, so that it meets all places of a block
			have := whole.Bytes()[:from]
			m.opens = nil
			good, err := p.CheckTar(t.Context(), bytes.NewReader(have), int64(from))
			if err != nil || good > int64(from) || len(m.opens) > 0 || from < whole.Len()-1024 && good != int64(from) {
				t.Fatalf("%s: %d of %d bytes are right: %v, asked for %v", name, good, from, err, m.opens)
			}
			rest := bytes.NewBuffer(slices.Clone(have[:good]))
			if err := p.WriteTar(t.Context(), rest, good, bytes.NewReader(have)); err != nil || !bytes.Equal(rest.Bytes(), whole.Bytes()) {
				t.Fatalf("%s: from byte %d: %d bytes, want %d: %v", name, from, rest.Len(), whole.Len(), err)
			}
			if from > whole.Len()-1024 && len(m.opens) > 0 {
				t.Fatalf("%s: from byte %d: asked for %v", name, from, m.opens)
			}
		}
	}
}

// TestContinueTar_FromAnyPoint: from any point, encoded as JSON, the rest makes the same tar, and
// no earlier byte is read.
func TestContinueTar_FromAnyPoint(t *testing.T) {
	t.Parallel()
	for name, opts := range forms() {
		m := object()
		m.slow = true
		p := lay(t, m, opts)
		var whole bytes.Buffer
		var points []export.Point
		seen := func(size int64, between bool, point func() (export.Point, error)) error {
			at, err := point()
			if err == nil && (at.Offset != size || at.Start > size || between != (at.Digests == nil)) {
				t.Errorf("%s: the point %+v at %d", name, at, size)
			}
			text, encoding := json.Marshal(at)
			points = append(points, export.Point{})
			return errors.Join(err, encoding, json.Unmarshal(text, &points[len(points)-1]))
		}
		if err := p.ContinueTar(t.Context(), &whole, export.Point{}, seen); err != nil {
			t.Fatal(err)
		}
		var once bytes.Buffer
		if err := p.WriteTar(t.Context(), &once, 0, nil); err != nil || !bytes.Equal(once.Bytes(), whole.Bytes()) {
			t.Fatalf("%s: two ways make two tars: %v", name, err)
		}
		inside := 0
		for i := 0; i < len(points); i += 13 {
			at := points[i]
			rest := bytes.NewBuffer(slices.Clone(whole.Bytes()[:at.Offset]))
			err := p.ContinueTar(t.Context(), rest, at, func(int64, bool, func() (export.Point, error)) error { return nil })
			if err != nil || !bytes.Equal(rest.Bytes(), whole.Bytes()) {
				t.Fatalf("%s: from %+v: %d bytes, want %d: %v", name, at, rest.Len(), whole.Len(), err)
			}
			if at.Digests == nil {
				continue
			}
			inside++
			wrong := at
			wrong.Digests = &fixity.State{Version: "another", Size: at.Digests.Size}
			if err := p.ContinueTar(t.Context(), io.Discard, wrong, nil); !errors.Is(err, export.ErrPoint) {
				t.Errorf("%s: digests that nobody can read: %v", name, err)
			}
		}
		if inside == 0 {
			t.Errorf("%s: no point lies in a file", name)
		}
	}
}

// A wrong byte before the point is detected at the file's end, even if no byte of the file is left
// to write.
func TestContinueTar_Damage(t *testing.T) {
	t.Parallel()
	const path = "producer/sub/two\nlines 100%"
	m := object()
	good := m.files[path]
	m.bad = map[string]string{path: "T" + good[1:]}
	var last export.Point
	err := lay(t, m, export.Options{}).ContinueTar(t.Context(), io.Discard, export.Point{}, func(_ int64, _ bool, point func() (at export.Point, err error)) (err error) {
		last, err = point()
		return err
	})
	if !errors.Is(err, replica.ErrDamaged) || last.Digests == nil || last.Digests.Size != int64(len(good)) || last.Start >= last.Offset {
		t.Fatalf("%v, at %+v", err, last)
	}
	m.bad = nil
	err = lay(t, m, export.Options{}).ContinueTar(t.Context(), io.Discard, last, func(int64, bool, func() (export.Point, error)) error { return nil })
	if !errors.Is(err, replica.ErrDamaged) {
		t.Errorf("gone on at the end of what is damaged: %v", err)
	}
}

// untar returns the files of a tar.
func untar(t *testing.T, text []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	for tr := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return got
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = string(text)
	}
}

// terms is what an export that is no bag says of the object's terms.
const terms = `Rights-Basis: copyright
Rights-Status: copyrighted
Rights-Jurisdiction: de
Rights-Statement: until 2037
Rights-URI: https://example.org/r
Preservation-Level: full
Embargo-Until: 2030-01-01
Embargo-Reason: a letter
`

// TestTerms_Name: the file of terms takes the place of none of the producer's, in no file system.
func TestTerms_Name(t *testing.T) {
	t.Parallel()
	m := &memory{files: map[string]string{"producer/Holdfast-Terms.TXT": "theirs", "producer/holdfast-terms-2.txt/a": "theirs, too"}}
	var out bytes.Buffer
	if err := lay(t, m, export.Options{}).WriteTar(t.Context(), &out, 0, nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Holdfast-Terms.TXT": "theirs", "holdfast-terms-2.txt/a": "theirs, too", "holdfast-terms-3.txt": terms}
	if diff := cmp.Diff(want, untar(t, out.Bytes())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTar_Content(t *testing.T) {
	t.Parallel()
	for name, opts := range forms() {
		m := object()
		var out bytes.Buffer
		if err := lay(t, m, opts).WriteTar(t.Context(), &out, 0, nil); err != nil {
			t.Fatal(err)
		}
		got := untar(t, out.Bytes())
		want := map[string]string{}
		for path, text := range m.files {
			if producers, ok := strings.CutPrefix(path, "producer/"); ok && opts.Bag {
				want["ark-99999-fk4x-v2/data/"+producers] = text
			} else if ok {
				want[producers] = text
			} else if opts.System && opts.Bag {
				want["ark-99999-fk4x-v2/"+path] = text
			} else if opts.System {
				want[path] = text
			}
		}
		if !opts.Bag {
			want["holdfast-terms.txt"] = terms
		}
		for path := range got {
			if _, ok := want[path]; !ok && opts.Bag {
				delete(got, path) // tag files, judged below
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !opts.Bag {
			continue
		}
		report, err := bagit.ValidateTar(t.Context(), &out, bagit.Options{})
		if err != nil || !report.Valid || report.PayloadFiles != 4 || strings.Join(report.Algorithms, " ") != "sha256 sha512" {
			t.Errorf("%s: %v, %+v", name, err, report)
		}
		tags := map[string]string{}
		for _, tag := range report.Info {
			tags[tag.Label] += tag.Value + ";"
		}
		if diff := cmp.Diff(map[string]string{
			"Bag-Software-Agent": "test;", "Bagging-Date": "2026-02-03;", "External-Identifier": "ark:/99999/fk4x;", "Internal-Sender-Identifier": "one;two;",
			"External-Description": "A b;", "Object-Version": "2;", "Payload-Oxum": "1503.4;",
			"Rights-Basis": "copyright;", "Rights-Status": "copyrighted;", "Rights-Jurisdiction": "de;", "Rights-Statement": "until 2037;", "Rights-URI": "https://example.org/r;",
			"Preservation-Level": "full;", "Embargo-Until": "2030-01-01;", "Embargo-Reason": "a letter;",
		}, tags); diff != "" {
			t.Errorf("%s: tags (-want +got):\n%s", name, diff)
		}
	}
}

// A bag always has a payload folder.
func TestTar_EmptyBag(t *testing.T) {
	t.Parallel()
	m := &memory{files: map[string]string{"system/x": "x"}}
	var out bytes.Buffer
	if err := lay(t, m, export.Options{Bag: true, System: true}).WriteTar(t.Context(), &out, 0, nil); err != nil {
		t.Fatal(err)
	}
	if report, err := bagit.ValidateTar(t.Context(), &out, bagit.Options{}); err != nil || !report.Valid {
		t.Errorf("%v %+v", err, report)
	}
}

// TestDamage: damage in the source stops the copy and is named; damage in the existing part is
// detected too.
func TestDamage(t *testing.T) {
	t.Parallel()
	const path = "producer/sub/two\nlines 100%"
	good := object().files[path]
	for name, bad := range map[string]string{"flipped": "T" + good[1:], "shorter": good[1:], "longer": good + "x"} {
		m := object()
		m.bad = map[string]string{path: bad}
		err := lay(t, m, export.Options{}).WriteTar(t.Context(), io.Discard, 0, nil)
		if !errors.Is(err, replica.ErrDamaged) || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := lay(t, object(), export.Options{})
	var whole bytes.Buffer
	if err := p.WriteTar(t.Context(), &whole, 0, nil); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < whole.Len()-1024; at += 17 {
		have := slices.Clone(whole.Bytes())
		have[at] ^= 1
		if right, err := p.CheckTar(t.Context(), bytes.NewReader(have), int64(len(have))); err != nil || right > int64(at) || right%512 != 0 {
			t.Fatalf("byte %d is wrong, and %d are called right: %v", at, right, err)
		}
	}
	in := bytes.Index(whole.Bytes(), []byte(good)) + 100 // bytes of a file that is cut off
	have := slices.Clone(whole.Bytes()[:in])
	have[in-1] ^= 1
	if err := p.WriteTar(t.Context(), io.Discard, int64(in), bytes.NewReader(have)); !errors.Is(err, replica.ErrDamaged) {
		t.Errorf("a wrong byte in what was there of a file: %v", err)
	}
}

// everyWay writes a parcel as files, as a tar that can be written again, and as a stream that
// cannot, and returns the names and contents.
func everyWay(t *testing.T, m *memory, elsewhere func(path, place string, because error)) map[string]func() (map[string]string, error) {
	t.Helper()
	opts := export.Options{System: true}
	from := func() *replica.Reader { return &replica.Reader{Source: m, Elsewhere: elsewhere} }
	untar := func(r io.Reader, err error) (map[string]string, error) {
		got := map[string]string{}
		for tr := tar.NewReader(r); err == nil; {
			var h *tar.Header
			if h, err = tr.Next(); errors.Is(err, io.EOF) {
				return got, nil
			} else if err == nil {
				var text []byte
				text, err = io.ReadAll(tr)
				got[h.Name] = string(text)
			}
		}
		return nil, err
	}
	return map[string]func() (map[string]string, error){
		"files": func() (map[string]string, error) {
			got := map[string]string{}
			for e, err := range layFrom(t, m, from(), opts).Entries(t.Context()) {
				var text bytes.Buffer
				for again := new(export.RewriteError); err == nil; {
					text.Reset()
					if err = e.Copy(t.Context(), &text, nil, 0); !errors.As(err, &again) {
						break
					}
					err = nil
				}
				if err != nil {
					return nil, err
				}
				got[e.Name] = text.String()
			}
			return got, nil
		},
		"tar": func() (map[string]string, error) {
			p := layFrom(t, m, from(), opts)
			var out bytes.Buffer
			err := p.WriteTar(t.Context(), &out, 0, nil)
			for again := new(export.RewriteError); errors.As(err, &again); {
				out.Truncate(int(again.Start))
				err = p.WriteTar(t.Context(), &out, again.Start, nil)
			}
			return untar(&out, err)
		},
		"stream": func() (map[string]string, error) {
			ahead := from()
			ahead.Ahead = 1 << 20
			var out bytes.Buffer
			err := layFrom(t, m, ahead, opts).WriteTar(t.Context(), &out, 0, nil)
			return untar(&out, err)
		},
	}
}

// TestElsewhere: any fault in one storage makes the file be read from the other. Only a file that
// no storage has right fails.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	const path = "producer/sub/two\nlines 100%"
	good := object().files[path]
	faults := map[string]string{
		"flipped": "T" + good[1:], "flipped at the end": good[:len(good)-1] + "!", "shorter": good[1:], "longer": good + "x", "none": "", "missing": missing,
		"broken off": good[:700] + cut, "broken off at once": cut, "flipped and broken off": "T" + good[1:700] + cut,
	}
	want := map[string]string{"holdfast-terms.txt": terms}
	for name, text := range object().files {
		want[strings.TrimPrefix(name, "producer/")] = text
	}
	for name, bad := range faults {
		m := object()
		m.bad, m.there = map[string]string{path: bad, "system/mrt-mom.txt": "Mom"}, map[string]string{"producer/z": "wrong, and never asked for"}
		var told []string
		for way, write := range everyWay(t, m, func(path, place string, because error) {
			told = append(told, path+" at "+place)
			if !strings.HasPrefix(because.Error(), `in storage "here": `) {
				t.Errorf("%s: because of %v", name, because)
			}
		}) {
			told = nil
			got, err := write()
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v (-want +got):\n%s", name, way, err, diff)
			}
			if diff := cmp.Diff([]string{path + " at there", "system/mrt-mom.txt at there"}, told); diff != "" {
				t.Errorf("%s, %s: told (-want +got):\n%s", name, way, diff)
			}
		}
		// Wrong at both: nothing is called whole, and the fault that may pass counts.
		for other, worse := range faults {
			m.there = map[string]string{path: worse}
			passes := strings.HasSuffix(bad, cut) || strings.HasSuffix(worse, cut)
			for way, write := range everyWay(t, m, nil) {
				switch got, err := write(); {
				case got["sub/two\nlines 100%"] == good && strings.Contains(name+other, "broken"):
					// the one had the beginning and the other the end
				case err == nil || got != nil:
					t.Errorf("%s here, %s there, %s: wrong bytes came out", name, other, way)
				case !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), `in storage "here": `) || !strings.Contains(err.Error(), `in storage "there": `):
					t.Errorf("%s here, %s there, %s: %v", name, other, way, err)
				case !passes && !errors.Is(err, replica.ErrDamaged):
					t.Errorf("%s here, %s there, %s: %v, want ErrDamaged", name, other, way, err)
				case passes && errors.Is(err, replica.ErrDamaged):
					t.Errorf("%s here, %s there, %s: %v is called damage, and may pass", name, other, way, err)
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]error{
		"producer/../x": export.ErrName, "../x": export.ErrName, "other/x": nil, // of an adopted object
		"producer//x": export.ErrName, "producer/system/mrt-erc.txt": export.ErrTwice, "producer/system": export.ErrTwice,
	} {
		m := object()
		m.files[path] = "x"
		if err := lay(t, m, export.Options{System: true}).WriteTar(t.Context(), io.Discard, 0, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	m := object()
	m.files["producer/\xff"] = "x"
	if _, err := export.New(t.Context(), registry.Object{}, 1, m.Files, &replica.Reader{Source: m}, export.Options{Bag: true}); !errors.Is(err, export.ErrName) {
		t.Errorf("a name that is not UTF-8, in a bag: %v", err)
	}
}
