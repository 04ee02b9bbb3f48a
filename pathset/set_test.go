package pathset_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/pathset"
)

// naive keeps names as they are and compares each with all.
type naive struct {
	files   map[string]int
	folders map[string]int
}

func (n naive) add(name string, at int) pathset.Clash {
	if before, ok := n.files[name]; ok {
		return pathset.Clash{Kind: pathset.Same, At: before}
	}
	var c pathset.Clash
	if before, ok := n.folders[name]; ok {
		c = pathset.Clash{Kind: pathset.FileFolder, At: before}
	}
	n.files[name] = at
	for end := range name {
		if name[end] != '/' {
			continue
		}
		folder := name[:end]
		if _, known := n.folders[folder]; known {
			continue
		}
		n.folders[folder] = at
		if before, ok := n.files[folder]; ok && (c.Kind == pathset.Fine || before < c.At) {
			c = pathset.Clash{Kind: pathset.FileFolder, At: before, Folder: folder}
		}
	}
	return c
}

// TestSet_Random compares a set with the comparison of each name with all before it.
func TestSet_Random(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		want := naive{map[string]int{}, map[string]int{}}
		s := pathset.NewSet()
		for at := 1; at < 300; at++ {
			parts := make([]string, 1+r.IntN(4))
			for i := range parts {
				parts[i] = string(rune('a' + r.IntN(6)))
			}
			name := strings.Join(parts, "/")
			if got, want := s.Add(name, at), want.add(name, at); got != want {
				t.Fatalf("seed %d, name %d, %s: %+v, want %+v", seed, at, name, got, want)
			}
		}
	}
}

// TestSet_AddAll checks that AddAll gives each name the same result as Add, however the names are
// divided into portions.
func TestSet_AddAll(t *testing.T) {
	t.Parallel()
	seen := map[pathset.Kind]int{}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		one, all := pathset.NewSet(), pathset.NewSet()
		one.LimitFolders(200)
		all.LimitFolders(200)
		for at := 1; at < 2000; {
			files := make([]pathset.File, r.IntN(200))
			for i := range files {
				parts := make([]string, 1+r.IntN(5))
				for p := range parts {
					parts[p] = []string{"a", "b", "A", "B", "é", "e\u0301", "É", "ab", "x", "y"}[r.IntN(10)]
				}
				files[i] = pathset.File{Name: strings.Join(parts, "/"), At: at}
				at++
			}
			all.AddAll(files)
			for _, f := range files {
				if want := one.Add(f.Name, f.At); f.Clash != want {
					t.Fatalf("seed %d, %d, %s: %+v, want %+v", seed, f.At, f.Name, f.Clash, want)
				}
				seen[f.Clash.Kind]++
			}
		}
	}
	for _, kind := range []pathset.Kind{pathset.Fine, pathset.Variant, pathset.FileFolder, pathset.Same, pathset.TooMany} {
		if seen[kind] == 0 {
			t.Errorf("no name had clash %d", kind)
		}
	}
}

// TestSet_Many checks that none of 20,000 names is taken for another and that each is found again.
func TestSet_Many(t *testing.T) {
	t.Parallel()
	const many = 20_000
	name := func(i int) string { return fmt.Sprintf("Box_%d/é/File%08d.tif", i/100, i) }
	s := pathset.NewSet()
	for i := range many {
		if c := s.Add(name(i), i+1); c.Kind != pathset.Fine {
			t.Fatalf("%s: %+v", name(i), c)
		}
	}
	for i := range many {
		if c := s.Add(name(i), many+i); c != (pathset.Clash{Kind: pathset.Same, At: i + 1}) {
			t.Fatalf("%s again: %+v", name(i), c)
		}
		if i%1000 != 0 {
			continue
		}
		if c := s.Add(strings.ToLower(name(i)), many+i); c != (pathset.Clash{Kind: pathset.Variant, At: i + 1}) {
			t.Fatalf("%s in small letters: %+v", name(i), c)
		}
	}
}

func TestSet_Folders(t *testing.T) {
	t.Parallel()
	s := pathset.NewSet()
	for at, tt := range []struct {
		name   string
		folder bool
		want   pathset.Clash
	}{
		{"a", true, pathset.Clash{}},
		{"a", true, pathset.Clash{}},
		{"a", false, pathset.Clash{Kind: pathset.FileFolder, At: 1}},
		{"b", false, pathset.Clash{}},
		{"b", true, pathset.Clash{Kind: pathset.FileFolder, At: 4}},
		{"c", false, pathset.Clash{}},
		{"c/d", true, pathset.Clash{Kind: pathset.FileFolder, At: 6, Folder: "c"}},
		{"C/e", false, pathset.Clash{Kind: pathset.Variant, At: 6, Folder: "C"}},
	} {
		add := s.Add
		if tt.folder {
			add = s.AddFolder
		}
		if got := add(tt.name, at+1); got != tt.want {
			t.Errorf("%d, %s: %+v, want %+v", at+1, tt.name, got, tt.want)
		}
	}
}

// TestSet_TooManyFolders checks that a list of nothing but folders is limited in memory, and that
// names beyond the limit are not accepted.
func TestSet_TooManyFolders(t *testing.T) {
	t.Parallel()
	s := pathset.NewSet()
	s.LimitFolders(10)
	for i, want := range []pathset.Kind{pathset.Fine, pathset.Fine, pathset.TooMany, pathset.TooMany} {
		if c := s.Add(fmt.Sprintf("%d/b/c/d/f", i), i+1); c.Kind != want {
			t.Errorf("name %d: %+v, want %d", i, c, want)
		}
	}
	if c := s.Add("0/b/c/x", 5); c.Kind != pathset.Fine {
		t.Errorf("a folder that is known: %+v", c)
	}
}

// TestSet_TooManyFiles checks the limits of files and of names that differ by case only. The latter
// keeps adding a name fast.
func TestSet_TooManyFiles(t *testing.T) {
	t.Parallel()
	s := pathset.NewSet()
	s.LimitFiles(2)
	for i, want := range []pathset.Kind{pathset.Fine, pathset.Fine, pathset.TooMany} {
		if c := s.Add(fmt.Sprint("f", i), i+1); c.Kind != want {
			t.Errorf("file %d: %+v, want %d", i, c, want)
		}
	}
	if c := s.Add("f0", 4); c != (pathset.Clash{Kind: pathset.Same, At: 1}) {
		t.Errorf("a file that is known: %+v", c)
	}
	s = pathset.NewSet()
	last := pathset.Clash{}
	for i := range 2000 {
		name := []byte("abcdefghijkl")
		for bit := range name {
			if i>>bit&1 == 1 {
				name[bit] -= 'a' - 'A'
			}
		}
		if last = s.Add(string(name), i+1); i == 999 && last.Kind != pathset.Variant {
			t.Errorf("variant %d: %+v", i, last)
		}
	}
	if last.Kind != pathset.TooMany {
		t.Errorf("the last of 2,000 variants: %+v", last)
	}
}

func TestLongPart(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 128)
	for name, want := range map[string]string{
		"a/b": "", strings.Repeat("x", 255) + "/" + strings.Repeat("y", 255): "", "a/" + long + "/b": long, long: long,
	} {
		if got := pathset.LongPart(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
