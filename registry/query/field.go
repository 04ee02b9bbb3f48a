package query

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Field describes a field of the query language, for help texts.
type Field struct {
	Name    string
	Example string // an example of a value
	Means   string
}

// Fields returns all fields of the query language, in the order of their help.
func Fields() []Field {
	fields := allFields()
	out := make([]Field, len(fields))
	for i, f := range fields {
		out[i] = Field{Name: f.name, Example: f.example, Means: f.means}
	}
	return out
}

// Known returns the values that a field takes, if they are known: the states, stages and so on.
func Known(name string) []string {
	f, ok := fieldNamed(name)
	if !ok {
		return nil
	}
	_, wrong := f.one("") // no field takes an empty value
	if wrong == nil {
		return nil
	}
	return wrong.known
}

// field is a field with the function that reads its values.
type field struct {
	name, example, means string
	list                 bool // commas separate values, any of which may match
	// one reads one value. It returns the value's normal form, or what is wrong with it.
	one func(value string) (string, *valueError)
}

type valueError struct {
	problem string
	known   []string
}

func allFields() []field {
	return []field{
		{"state", "failed,held", "the state that people see", true, oneOfNames("state", stateNames())},
		{"status", "pending", "its condition in its stage", true, oneOfNames("status", texts(registry.Statuses()))},
		{"stage", "download", "where on its route it stands", true, stage},
		{"action", "batch", "the kind of item; ingest is a job", true, oneOfNames("action", actionNames())},
		{"collection", "demo", "the collection's mnemonic", true, asGiven},
		{"batch", "ID", "the jobs of a batch, by its id or at least the first 8 characters of it, in the order of its rows", true, asGiven},
		{"graph", "ID", "the items of a graph, by its id or at least the first 8 characters of it", true, asGiven},
		{"id", "0199f3c2", "an id, or at least its first 8 characters", true, idStart},
		{"name", "thesis.pdf", "part of the name", false, asGiven},
		{"title", "thesis", "part of the title", false, asGiven},
		{"error", "timeout", "part of the error message", false, asGiven},
		{"class", "content", "the class of the failure: content, system or jobs", true, oneOfNames("class", texts([]registry.ErrorClass{registry.ContentFault, registry.SystemFault, registry.JobsFault}))},
		{"cause", "9f86d081884c7d65", "failed for this cause, as shown by item failures", true, causeFingerprint},
		{"by", "alice", "who submitted it", true, asGiven},
		{"storage", "second", "a storage that it writes to", true, asGiven},
		{"held", "yes", "whether a hold keeps it from starting", false, oneOfNames("held", []string{"yes", "no"})},
		{"delayed", "yes", "whether it waits for the time of its next try", false, oneOfNames("delayed", []string{"yes", "no"})},
		{"unresolved", "yes", "whether a batch, or a row of one that still runs, failed, and no deposit corrects it", false, oneOfNames("unresolved", []string{"yes", "no"})},
		{"priority", "<10", "lower comes first; <, <=, > or >= give a range", false, comparison},
		{"retries", ">0", "how often an admin requeued it", false, comparison},
		{"older", "2h", "submitted longer ago than this: s, m, h, d, w", false, age},
		{"newer", "30m", "submitted within this time", false, age},
	}
}

// fieldNamed returns a field by its name, in upper or lower case.
func fieldNamed(name string) (field, bool) {
	fields := allFields()
	i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, name) })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// read returns the normal form of a value.
func (f field) read(value string) (string, *valueError) {
	if !f.list {
		return f.one(value)
	}
	parts := strings.Split(value, ",")
	for i, part := range parts {
		if part == "" {
			return "", &valueError{problem: fmt.Sprintf("%q has an empty value between its commas", value)}
		}
		spelled, wrong := f.one(part)
		if wrong != nil {
			return "", wrong
		}
		parts[i] = spelled
	}
	return strings.Join(parts, ","), nil
}

func texts[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

func stateNames() []string {
	states := registry.States()
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = strings.ToLower(string(s))
	}
	return out
}

func actionNames() []string {
	var out []string
	for _, r := range registry.Routes() {
		out = append(out, string(r.Action))
	}
	return out
}

func asGiven(value string) (string, *valueError) { return value, nil }

func oneOfNames(what string, names []string) func(string) (string, *valueError) {
	return func(value string) (string, *valueError) {
		lower := strings.ToLower(value)
		if slices.Contains(names, lower) {
			return lower, nil
		}
		problem := fmt.Sprintf("unknown %v %q", what, value)
		if near := registry.Nearest(lower, names); near != "" {
			problem += fmt.Sprintf("; did you mean %s?", near)
		}
		return "", &valueError{problem, names}
	}
}

// stage reads the name of a stage: one of a route, or that of a function.
func stage(value string) (string, *valueError) {
	if of := registry.Stage(strings.ToLower(value)); of.Function() != "" && registry.IsStage(of) {
		return string(of), nil
	}
	return oneOfNames("stage", texts(registry.AllStages()))(value)
}

func idStart(value string) (string, *valueError) {
	if !registry.IDStart(value) {
		return "", &valueError{problem: fmt.Sprintf("%q is not an id; give a whole id, or at least its first 8 characters", value)}
	}
	return strings.ToLower(value), nil
}

// CompareNumber splits the value of a comparison, such as <10, into operator and number.
func CompareNumber(value string) (op string, n int64, err error) {
	op = "="
	for _, known := range []string{"<=", ">=", "<", ">", "="} {
		if rest, ok := strings.CutPrefix(value, known); ok {
			op, value = known, rest
			break
		}
	}
	n, err = strconv.ParseInt(value, 10, 32)
	return op, n, err
}

func comparison(value string) (string, *valueError) {
	op, n, err := CompareNumber(value)
	if err != nil {
		return "", &valueError{problem: fmt.Sprintf("%q is not a whole number; <, <=, >, >= or = may stand before it", value)}
	}
	if op == "=" {
		op = ""
	}
	return op + strconv.FormatInt(n, 10), nil
}

// Age returns the duration that the value of a field such as older means.
func Age(value string) (time.Duration, error) {
	const day = 24 * time.Hour
	const longest = 100 * 365 * day
	if len(value) < 2 {
		return 0, fmt.Errorf("%q is no time", value)
	}
	unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day, 'w': 7 * day}[value[len(value)-1]]
	n, err := strconv.ParseUint(value[:len(value)-1], 10, 32)
	if !ok || err != nil || time.Duration(n) > longest/unit {
		return 0, fmt.Errorf("%q is no time of at most 100 years", value)
	}
	return time.Duration(n) * unit, nil
}

func age(value string) (string, *valueError) {
	lower := strings.ToLower(value)
	if _, err := Age(lower); err != nil {
		return "", &valueError{problem: fmt.Sprintf("%q is not a length of time; give a whole number and s, m, h, d or w, such as 30m, at most 100 years", value)}
	}
	if digits := strings.TrimLeft(lower[:len(lower)-1], "0"); digits != "" {
		return digits + lower[len(lower)-1:], nil
	}
	return "0" + lower[len(lower)-1:], nil
}

func causeFingerprint(value string) (string, *valueError) {
	lower := strings.ToLower(value)
	if _, err := hex.DecodeString(lower); err != nil || len(lower) != registry.FingerprintLen {
		return "", &valueError{problem: fmt.Sprintf("%q is not a cause; give the %d digits that item failures shows", value, registry.FingerprintLen)}
	}
	return lower, nil
}
