package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// The environment variables with the number of mutations, their seed, and the only one to run.
const (
	mutationRuns = "MUTATION_RUNS"
	mutationSeed = "MUTATION_SEED"
	mutationOnly = "MUTATION_ONLY"
)

// fileset has the files of a bag or an object by name.
type fileset map[string][]byte

func (f fileset) names() []string { return slices.Sorted(maps.Keys(f)) }

// subject is valid data that mutations damage.
type subject struct {
	name  string
	files fileset
	// argument names the file that the command line names; "": the folder. Without it there is
	// nothing to judge.
	argument string
	// check is the command line that judges the files, which lie in dir.
	check func(dir string) []string
	// hide, unless it is nil, makes the rest of the subject agree with a change, as a forger does
	// who can write every file.
	hide func(fileset)
	// prove tells why a mutation may be accepted: which rule makes it equivalent to what was there.
	// Without a reason, it may not.
	prove func(before, after fileset) (reason string)
}

// mutation damages a subject in one way. done describes the change; "" if it was not applicable.
type mutation struct {
	name string
	do   func(r *rand.Rand, f fileset) (done string)
}

var mutations = []mutation{
	{"flip a bit", byteMutation(func(r *rand.Rand, b []byte, at int) []byte { b[at] ^= 1 << r.IntN(8); return b })},
	{"set a byte", byteMutation(func(r *rand.Rand, b []byte, at int) []byte { b[at] = byte(r.IntN(256)); return b })},
	{"set a letter", byteMutation(func(r *rand.Rand, b []byte, at int) []byte { b[at] = pick(r, []byte(mutationLetters)); return b })},
	{"delete a byte", byteMutation(func(_ *rand.Rand, b []byte, at int) []byte { return slices.Delete(b, at, at+1) })},
	{"insert a byte", byteMutation(func(r *rand.Rand, b []byte, at int) []byte {
		return slices.Insert(b, at, pick(r, []byte(mutationLetters)))
	})},
	{"exchange two bytes", byteMutation(func(_ *rand.Rand, b []byte, at int) []byte {
		if at > 0 {
			b[at-1], b[at] = b[at], b[at-1]
		}
		return b
	})},
	{"cut off", byteMutation(func(_ *rand.Rand, b []byte, at int) []byte { return b[:at] })},
	{"append", byteMutation(func(r *rand.Rand, b []byte, _ int) []byte { return append(b, pick(r, []byte(mutationLetters))) })},
	{"another digit", fieldMutation(regexp.MustCompile(`[0-9a-f]{32,}`), func(r *rand.Rand, field []byte, _ [][]byte) []byte {
		field[r.IntN(len(field))] = pick(r, []byte("0123456789abcdef"))
		return field
	})},
	{"capital digits", fieldMutation(regexp.MustCompile(`[0-9a-f]{32,}`), func(_ *rand.Rand, field []byte, _ [][]byte) []byte {
		return bytes.ToUpper(field)
	})},
	{"another digest", fieldMutation(regexp.MustCompile(`[0-9a-fA-F]{32,}`), func(r *rand.Rand, _ []byte, all [][]byte) []byte { return pick(r, all) })},
	{"another number", fieldMutation(regexp.MustCompile(`\b[0-9]{1,9}\b`), func(r *rand.Rand, field []byte, _ [][]byte) []byte {
		n, _ := strconv.Atoi(string(field))
		return strconv.AppendInt(nil, int64(n+2*r.IntN(2)-1), 10)
	})},
	{"another word", fieldMutation(regexp.MustCompile(`[\pL\pN/._-]+`), func(r *rand.Rand, _ []byte, all [][]byte) []byte { return pick(r, all) })},
	{"delete a word", fieldMutation(regexp.MustCompile(`[\pL\pN/._-]+`), func(*rand.Rand, []byte, [][]byte) []byte { return nil })},
	{"more space", fieldMutation(regexp.MustCompile(`[ \n]`), func(r *rand.Rand, field []byte, _ [][]byte) []byte {
		return append(field, pick(r, []byte(" \t\n\r")))
	})},
	{"delete a line", fieldMutation(aLine, func(*rand.Rand, []byte, [][]byte) []byte { return nil })},
	{"repeat a line", fieldMutation(aLine, func(_ *rand.Rand, field []byte, _ [][]byte) []byte { return append(field, field...) })},
	{"another line", fieldMutation(aLine, func(r *rand.Rand, _ []byte, all [][]byte) []byte { return pick(r, all) })},
	{"change a value", jsonMutation},
	{"delete a file", func(r *rand.Rand, f fileset) string {
		name := pick(r, f.names())
		delete(f, name)
		return name
	}},
	{"rename a file", func(r *rand.Rand, f fileset) string {
		name := pick(r, f.names())
		f[name+"~"] = f[name]
		delete(f, name)
		return name
	}},
	{"add a file", func(r *rand.Rand, f fileset) string {
		name := pick(r, f.names()) + ".new"
		f[name] = []byte("new")
		return name
	}},
	{"exchange two files", func(r *rand.Rand, f fileset) string {
		a, b := pick(r, f.names()), pick(r, f.names())
		f[a], f[b] = f[b], f[a]
		return a + " and " + b
	}},
	{"copy over a file", func(r *rand.Rand, f fileset) string {
		a, b := pick(r, f.names()), pick(r, f.names())
		f[a] = f[b]
		return a + " from " + b
	}},
}

const mutationLetters = "aZ09 \t\r\n:/.%\"\\{}[],-*\x00\xff"

var aLine = regexp.MustCompile(`[^\n]*\n`)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// byteMutation changes one place in one file.
func byteMutation(change func(r *rand.Rand, b []byte, at int) []byte) func(*rand.Rand, fileset) string {
	return func(r *rand.Rand, f fileset) string {
		name := pick(r, f.names())
		if len(f[name]) == 0 {
			return ""
		}
		at := r.IntN(len(f[name]))
		f[name] = change(r, slices.Clone(f[name]), at)
		return fmt.Sprintf("%s at %d", name, at)
	}
}

// fieldMutation changes one field of one file; all are the subject's fields of this kind.
func fieldMutation(kind *regexp.Regexp, change func(r *rand.Rand, field []byte, all [][]byte) []byte) func(*rand.Rand, fileset) string {
	return func(r *rand.Rand, f fileset) string {
		name := pick(r, f.names())
		places := kind.FindAllIndex(f[name], -1)
		if len(places) == 0 {
			return ""
		}
		var all [][]byte
		for _, other := range f.names() {
			all = append(all, kind.FindAll(f[other], -1)...)
		}
		at := pick(r, places)
		field := change(r, slices.Clone(f[name][at[0]:at[1]]), all)
		f[name] = slices.Concat(f[name][:at[0]], field, f[name][at[1]:])
		return fmt.Sprintf("%s at %d: now %q", name, at[0], field)
	}
}

// jsonMutation changes one value of a file with a JSON object.
func jsonMutation(r *rand.Rand, f fileset) string {
	var in []string
	for _, name := range f.names() {
		if strings.HasSuffix(name, ".json") {
			in = append(in, name)
		}
	}
	if len(in) == 0 {
		return ""
	}
	name := pick(r, in)
	var value any
	if json.Unmarshal(f[name], &value) != nil {
		return ""
	}
	where, changed := changeValue(r, value)
	text, err := json.Marshal(changed)
	if err != nil {
		return ""
	}
	f[name] = text
	return name + ": " + where
}

// changeValue changes a random place in a JSON value.
func changeValue(r *rand.Rand, value any) (where string, changed any) {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			return "{} became null", nil
		}
		key := pick(r, slices.Sorted(maps.Keys(v)))
		switch r.IntN(8) {
		case 0:
			delete(v, key)
			return "without " + key, v
		case 1:
			v[key+"x"] = v[key]
			delete(v, key)
			return key + " renamed", v
		case 2:
			v["new"] = v[key]
			return key + " twice", v
		}
		where, v[key] = changeValue(r, v[key])
		return key + "." + where, v
	case []any:
		if len(v) == 0 || r.IntN(4) == 0 {
			return "one more", append(v, "x")
		}
		i := r.IntN(len(v))
		where, v[i] = changeValue(r, v[i])
		return strconv.Itoa(i) + "." + where, v
	case string:
		return "string", pick(r, []any{v + "x", strings.ToUpper(v), "", nil, 7.0, []any{v}, v + "/../" + v, strings.Replace(v, "1", "2", 1)})
	}
	return "value", "x"
}

// TestMutations damages valid bags, objects and receipts, a byte or a field at a time, and
// validates each. It must be refused, unless a rule proves it equivalent. A failure prints the
// MUTATION_ONLY that repeats it.
func TestMutations(t *testing.T) {
	clitest.NoEnvironment(t)
	runs, seed := fromEnvironment(t, mutationRuns, 3500), fromEnvironment(t, mutationSeed, 16)
	subjects := mutationSubjects(t)
	first := 0
	if os.Getenv(mutationOnly) != "" {
		first = fromEnvironment(t, mutationOnly, 0)
		runs = first + 1
	}
	refused, unchanged, reasons := 0, 0, map[string]int{}
	work := t.TempDir()
	for i := first; i < runs; i++ {
		s := subjects[i%len(subjects)]
		r := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
		m, after, done := mutation{}, fileset(nil), ""
		for done == "" { // what cannot be done here is passed over
			m, after = pick(r, mutations), maps.Clone(s.files)
			done = m.do(r, after)
		}
		if s.hide != nil && r.IntN(2) == 0 {
			s.hide(after)
			done += ", hidden"
		}
		_, there := after[s.argument]
		if len(changed(s.files, after)) == 0 || s.argument != "" && !there {
			unchanged++
			continue
		}
		dir := filepath.Join(work, strconv.Itoa(i%len(subjects)))
		if i < first+len(subjects) && !become(t, dir, nil, s.files) {
			t.Fatalf("%s cannot be written", s.name)
		}
		if !become(t, dir, s.files, after) {
			t.Fatalf("%s %s: such names cannot be on a disk", m.name, done)
		}
		got := runCheck(t, s.check(dir)...)
		if !become(t, dir, after, s.files) {
			t.Fatalf("%s cannot be written again", s.name)
		}
		what := fmt.Sprintf("%s=%d %s=%d: %s: %s: %s", mutationSeed, seed, mutationOnly, i, s.name, m.name, done)
		switch got.Code {
		case exit.Content:
			refused++
		case exit.OK:
			reason := s.prove(s.files, after)
			if reason == "" {
				t.Errorf("%s: accepted without a reason\n%s%s", what, got.Out, got.Err)
			}
			reasons[s.name+": "+reason]++
		default:
			t.Errorf("%s: neither accepted nor refused, exit code %d\n%s%s", what, got.Code, got.Out, got.Err)
		}
		if os.Getenv(mutationOnly) != "" {
			t.Logf("%s\n%s%s", what, got.Out, got.Err)
		}
	}
	t.Logf("%d mutations of %d subjects: %d refused, %d changed nothing; accepted:", runs-first, len(subjects), refused, unchanged)
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%6d %s", reasons[reason], reason)
	}
	if first == 0 && refused+unchanged == runs {
		t.Error("nothing was ever accepted: the rules are not tested")
	}
}

func fromEnvironment(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// become replaces the files of a folder. It returns false if the new names conflict.
func become(t *testing.T, dir string, from, to fileset) bool {
	t.Helper()
	for _, name := range changed(from, to) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if data, ok := to[name]; ok {
			if os.MkdirAll(filepath.Dir(file), 0o755) != nil || os.WriteFile(file, data, 0o644) != nil {
				return false
			}
			continue
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		for folder := filepath.Dir(file); folder != dir && os.Remove(folder) == nil; {
			folder = filepath.Dir(folder) // no empty folder is left
		}
	}
	return true
}
