package replica_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/storage"
)

// copyOf is what one storage has of the file: its bytes, in each reading the next of them and then
// the last again, and what its reading breaks off with.
type copyOf struct {
	name   string
	texts  []string
	breaks error // after the bytes; nil: io.EOF
	refuse error // at once
}

// storages has the file, in the order in which they are asked.
type storages struct {
	all   []copyOf
	opens []string
}

func (s *storages) Open(_ context.Context, _ registry.File, offset int64, not []string) (io.ReadCloser, string, error) {
	i := slices.IndexFunc(s.all, func(c copyOf) bool { return !slices.Contains(not, c.name) })
	if i < 0 {
		return nil, "", replica.ErrNowhere
	}
	c := &s.all[i]
	s.opens = append(s.opens, fmt.Sprintf("%s@%d", c.name, offset))
	if c.refuse != nil {
		return nil, c.name, c.refuse
	}
	text := c.texts[0]
	if len(c.texts) > 1 {
		c.texts = c.texts[1:]
	}
	body := io.Reader(strings.NewReader(text[min(offset, int64(len(text))):]))
	if c.breaks != nil {
		body = io.MultiReader(body, iotest.ErrReader(c.breaks))
	}
	return io.NopCloser(body), c.name, nil
}

const good = "what was stored"

func file(t *testing.T) registry.File {
	t.Helper()
	d, err := fixity.NewDigester("sha256")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = d.Write([]byte(good))
	return registry.File{Path: "producer/a", SizeBytes: int64(len(good)), Digests: d.Sums()}
}

// read copies a file until it is right, or cannot be had, as whoever can write it again does.
func read(t *testing.T, r *replica.Reader) (string, error) {
	t.Helper()
	f := file(t)
	in := r.File(f)
	for range 10 {
		var out bytes.Buffer
		if err := in.Copy(t.Context(), &out, 0); err != nil {
			return "", err
		}
		d, err := replica.NewDigester(f.Digests)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = d.Write(out.Bytes())
		if err = replica.Judge(d, f.SizeBytes, f.Digests); err == nil {
			return out.String(), nil
		} else if !in.Blame(err) {
			return "", err
		}
	}
	t.Fatal("it comes to no end")
	return "", nil
}

var (
	errAway   = errors.New("input/output error")
	errFrozen = fmt.Errorf("a: %w", storage.ErrArchived)
	errGone   = fmt.Errorf("%w: %w", replica.ErrDamaged, storage.ErrNotFound)
)

func TestReader(t *testing.T) {
	t.Parallel()
	wrong := "W" + good[1:]
	for name, c := range map[string]struct {
		all   []copyOf
		opens string
		found string
		fault error // nil: the file is had
	}{
		"right":                       {[]copyOf{{"a", []string{good}, nil, nil}, {"b", []string{wrong}, nil, nil}}, "a@0", "", nil},
		"wrong in one":                {[]copyOf{{"a", []string{wrong}, nil, nil}, {"b", []string{good}, nil, nil}}, "a@0 b@0", "a: other bytes at one reading", nil},
		"wrong once, on its way":      {[]copyOf{{"a", []string{wrong, good}, nil, nil}}, "a@0 a@0", "a: other bytes at one reading", nil},
		"wrong once, and the other":   {[]copyOf{{"a", []string{wrong, good}, nil, nil}, {"b", []string{wrong}, nil, nil}}, "a@0 b@0 a@0", "a: other bytes at one reading, b: other bytes at one reading", nil},
		"wrong in all":                {[]copyOf{{"a", []string{wrong}, nil, nil}, {"b", []string{wrong}, nil, nil}}, "a@0 b@0 a@0 b@0", "a: damaged, b: damaged", replica.ErrDamaged},
		"longer":                      {[]copyOf{{"a", []string{good + "x"}, nil, nil}, {"b", []string{good}, nil, nil}}, "a@0 b@0", "a: other bytes at one reading", nil},
		"short goes on elsewhere":     {[]copyOf{{"a", []string{good[:4]}, nil, nil}, {"b", []string{good}, nil, nil}}, "a@0 b@4", "a: short", nil},
		"broken off":                  {[]copyOf{{"a", []string{good[:4]}, errAway, nil}, {"b", []string{good}, nil, nil}}, "a@0 b@4", "a: unreadable", nil},
		"wrong and broken off":        {[]copyOf{{"a", []string{wrong[:4]}, errAway, nil}, {"b", []string{good}, nil, nil}}, "a@0 b@4 b@0", "a: unreadable", nil},
		"missing":                     {[]copyOf{{"a", nil, nil, errGone}, {"b", []string{good}, nil, nil}}, "a@0 b@0", "a: missing", nil},
		"archived":                    {[]copyOf{{"a", nil, nil, errFrozen}, {"b", []string{good}, nil, nil}}, "a@0 b@0", "a: archived", nil},
		"missing and archived":        {[]copyOf{{"a", nil, nil, errFrozen}, {"b", nil, nil, errGone}}, "a@0 b@0", "a: archived, b: missing", storage.ErrArchived},
		"archived and away":           {[]copyOf{{"a", nil, nil, errAway}, {"b", nil, nil, errFrozen}}, "a@0 b@0", "a: unreadable, b: archived", errAway},
		"damaged and away":            {[]copyOf{{"a", []string{wrong}, nil, nil}, {"b", nil, nil, errAway}}, "a@0 b@0 a@0", "a: damaged, b: unreadable", errAway},
		"damaged and missing":         {[]copyOf{{"a", []string{wrong}, nil, nil}, {"b", nil, nil, errGone}}, "a@0 b@0 a@0", "a: damaged, b: missing", replica.ErrDamaged},
		"in no storage":               {nil, "", "", replica.ErrNowhere},
		"the half of each makes none": {[]copyOf{{"a", []string{wrong[:4]}, errAway, nil}, {"b", []string{good[:8]}, nil, nil}}, "a@0 b@4", "a: unreadable, b: short", errAway},
	} {
		for _, ahead := range []int64{0, 1 << 10} {
			s := &storages{all: slices.Clone(c.all)}
			told := 0
			r := &replica.Reader{Source: s, Ahead: ahead, Elsewhere: func(path, storage string, because error) {
				if told++; path != "producer/a" || storage != "b" || !strings.HasPrefix(because.Error(), `in storage "a": `) {
					t.Errorf("%s: read %s in %s because of %v", name, path, storage, because)
				}
			}}
			got, err := read(t, r)
			if c.fault == nil && (got != good || err != nil) || c.fault != nil && !errors.Is(err, c.fault) {
				t.Errorf("%s: %q, %v; want %v", name, got, err, c.fault)
			}
			if errors.Is(c.fault, errAway) && errors.Is(err, replica.ErrDamaged) {
				t.Errorf("%s: %v is called damage, and may pass", name, err)
			}
			var found []string
			for _, f := range r.Findings() {
				found = append(found, f.Storage+": "+f.What)
			}
			if diff := cmp.Diff([]string{c.opens, c.found}, []string{strings.Join(s.opens, " "), strings.Join(found, ", ")}); diff != "" {
				t.Errorf("%s, %d ahead: opens and findings (-want +got):\n%s", name, ahead, diff)
			}
			if elsewhere := strings.Contains(c.opens, "b@") && (c.all[1].refuse == nil); (told == 1) != elsewhere {
				t.Errorf("%s: told %d times", name, told)
			}
			nowhere := new(replica.NowhereError)
			if c.fault != nil && c.all != nil && (!errors.As(err, &nowhere) || nowhere.Path != "producer/a" || len(nowhere.Found) != len(found)) {
				t.Errorf("%s: %#v", name, err)
			}
		}
	}
}

// Faults of a file are remembered as long as the Reader lives, and only for that file.
func TestReader_Useless(t *testing.T) {
	t.Parallel()
	s := &storages{all: []copyOf{{"a", nil, nil, errFrozen}, {"b", []string{good}, nil, nil}}}
	r := &replica.Reader{Source: s}
	for range 2 {
		if _, err := read(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"a@0", "b@0", "b@0"}; !slices.Equal(s.opens, want) {
		t.Errorf("opened %v, want %v", s.opens, want)
	}
	if err := r.Excluded("producer/a", "a"); !errors.Is(err, storage.ErrArchived) {
		t.Errorf("in a: %v", err)
	}
	if err := errors.Join(r.Excluded("producer/a", "b"), r.Excluded("producer/z", "a")); err != nil {
		t.Error(err)
	}
}

// A failing writer, and the end of ctx, are no storage's fault.
func TestReader_NoFaultOfTheStorage(t *testing.T) {
	t.Parallel()
	s := &storages{all: []copyOf{{"a", []string{good}, nil, nil}}}
	r := &replica.Reader{Source: s}
	full, w := io.Pipe()
	_ = full.CloseWithError(errAway)
	if err := r.File(file(t)).Copy(t.Context(), w, 0); !errors.Is(err, errAway) || len(r.Findings()) > 0 {
		t.Errorf("%v, found %v", err, r.Findings())
	}
	s.all[0].refuse = context.Canceled
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.File(file(t)).Copy(ctx, io.Discard, 0); !errors.Is(err, context.Canceled) || len(r.Findings()) > 0 {
		t.Errorf("%v, found %v", err, r.Findings())
	}
}

func ExampleReader() {
	s := &storages{all: []copyOf{{name: "disk", texts: []string{"what was stolen"}}, {name: "bucket", texts: []string{good}}}}
	r := &replica.Reader{Source: s, Ahead: 1 << 20, Elsewhere: func(path, storage string, _ error) {
		fmt.Println(path, "is read from", storage)
	}}
	d, _ := fixity.NewDigester("sha256")
	_, _ = d.Write([]byte(good))
	f := registry.File{Path: "producer/a.txt", SizeBytes: int64(len(good)), Digests: d.Sums()}
	var out strings.Builder
	err := r.File(f).Copy(context.Background(), &out, 0)
	fmt.Println(out.String(), err)
	for _, met := range r.Findings() {
		fmt.Println(met.Path, met.Storage, met.What)
	}
	// Output:
	// producer/a.txt is read from bucket
	// what was stored <nil>
	// producer/a.txt disk other bytes at one reading
}
