package query_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

func TestKnown(t *testing.T) {
	for field, want := range map[string]string{"state": "failed", "Stage": "download", "held": "yes", "class": "content", "action": "batch"} {
		if got := query.Known(field); !slices.Contains(got, want) {
			t.Errorf("%s: %v has no %s", field, got, want)
		}
	}
	for _, field := range []string{"collection", "name", "older", "id", "nothing", ""} {
		if got := query.Known(field); got != nil {
			t.Errorf("%s: %v", field, got)
		}
	}
}

func TestParse(t *testing.T) {
	type term = registry.Term
	for _, tt := range []struct {
		text  string
		terms []term
		again string // what String makes of it; "" for text itself
	}{
		{text: ""},
		{" \t ", nil, " "},
		{text: "timeout", terms: []term{{Value: "timeout"}}},
		{text: "state:failed collection:x error:timeout", terms: []term{{Field: "state", Value: "failed"}, {Field: "collection", Value: "x"}, {Field: "error", Value: "timeout"}}},
		{"STATE:Failed,HELD", []term{{Field: "state", Value: "failed,held"}}, "state:failed,held"},
		{text: `error:"time out" -"two words"`, terms: []term{{Field: "error", Value: "time out"}, {Value: "two words", Not: true}}},
		{`"plain" name:"plain"`, []term{{Value: "plain"}, {Field: "name", Value: "plain"}}, "plain name:plain"},
		{`"say \"no\" \\ \n"`, []term{{Value: `say "no" \ \n`}}, `"say \"no\" \\ \\n"`},
		{text: `5"`, terms: []term{{Value: `5"`}}},
		{"ark:/99999/fk4 https://h/x", []term{{Value: "ark:/99999/fk4"}, {Value: "https://h/x"}}, `"ark:/99999/fk4" "https://h/x"`},
		{"12:30 :x", []term{{Value: "12:30"}, {Value: ":x"}}, `"12:30" ":x"`},
		{text: `-state:held -"-x"`, terms: []term{{Field: "state", Value: "held", Not: true}, {Value: "-x", Not: true}}},
		{"priority:=5 retries:>00 older:007D newer:00h", []term{{Field: "priority", Value: "5"}, {Field: "retries", Value: ">0"}, {Field: "older", Value: "7d"}, {Field: "newer", Value: "0h"}}, "priority:5 retries:>0 older:7d newer:0h"},
		{"id:0199F3C2-7ABC", []term{{Field: "id", Value: "0199f3c2-7abc"}}, "id:0199f3c2-7abc"},
		{text: "Ünïcode", terms: []term{{Value: "Ünïcode"}}},
	} {
		q, err := query.Parse(tt.text)
		if err != nil || !reflect.DeepEqual(q.Terms, tt.terms) {
			t.Errorf("%q: %+v (%v), want %+v", tt.text, q.Terms, err, tt.terms)
			continue
		}
		want := strings.TrimSpace(tt.again)
		if tt.again == "" {
			want = tt.text
		}
		if got := q.String(); got != want {
			t.Errorf("%q: told as %q, want %q", tt.text, got, want)
		}
	}
}

func TestParse_Faults(t *testing.T) {
	for _, tt := range []struct {
		text     string
		position int
		word     string
		says     string
		known    string // one of those
	}{
		{"x sate:failed", 3, "sate:failed", "did you mean state?", "collection"},
		{"weather:fine", 1, "weather:fine", "quote it", "state"},
		{"state:faild", 7, "faild", "did you mean failed?", "updatereporting"},
		{"é stage:lunch", 9, "lunch", `unknown stage "lunch"`, "download"},
		{"status:done", 8, "done", "unknown status", "completed"},
		{"class:mine", 7, "mine", "unknown class", "content"},
		{"action:dance", 8, "dance", "unknown action", "ingest"},
		{"held:maybe", 6, "maybe", "unknown held", "yes"},
		{"state:", 1, "state:", "state needs a value, such as state:failed,held", ""},
		{`state:""`, 1, `state:""`, "needs a value", ""},
		{"state:failed,,held", 7, "failed,,held", "empty value", ""},
		{"-", 1, "-", "the word is empty", ""},
		{`""`, 1, `""`, "the word is empty", ""},
		{`a "b c`, 3, `"b c`, "not closed", ""},
		{`"a"b`, 1, `"a"b`, "space is missing after", ""},
		{"priority:high", 10, "high", "not a whole number", ""},
		{"retries:>99999999999", 9, ">99999999999", "not a whole number", ""},
		{"older:2", 7, "2", "not a length of time", ""},
		{"older:-2h", 7, "-2h", "not a length of time", ""},
		{"newer:5300w", 7, "5300w", "100 years", ""},
		{"newer:9999999999999999999d", 7, "9999999999999999999d", "not a length of time", ""},
		{"id:123", 4, "123", "first 8 characters", ""},
		{"a\x00b", 1, "a\x00b", "control character", ""},
		{"\xff", 1, "", "not UTF-8", ""},
		{strings.Repeat("x", 2001), 1, "", "limit is 2000", ""},
		{strings.Repeat("x ", 51), 101, "x", "more than 50 words", ""},
		{`name:x` + strings.Repeat(` "\\\\ "`, 3) + " y" + strings.Repeat("\"", 1980), 1, "", "limit is 2000", ""},
	} {
		_, err := query.Parse(tt.text)
		var e *registry.QueryError
		if !errors.As(err, &e) {
			t.Errorf("%q: %v, want a QueryError", tt.text, err)
			continue
		}
		if e.Position != tt.position || e.Word != tt.word || !strings.Contains(e.Problem, tt.says) {
			t.Errorf("%q: character %d, %q: %s; want %d, %q: %s", tt.text, e.Position, e.Word, e.Problem, tt.position, tt.word, tt.says)
		}
		if tt.known == "" != (len(e.Known) == 0) || tt.known != "" && !slices.Contains(e.Known, tt.known) {
			t.Errorf("%q: known are %q, want %q among them", tt.text, e.Known, tt.known)
		}
	}
}

// TestQueryFields: people copy the fields' examples from the help, so they must parse.
func TestQueryFields(t *testing.T) {
	for _, f := range query.Fields() {
		if _, err := query.Parse(f.Name + ":" + f.Example); err != nil && f.Example != "ID" {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Means == "" {
			t.Errorf("%s is not explained", f.Name)
		}
	}
}

// Whatever is read is told in words that are read the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "state:failed,held -stage:download", `name:"a \"b\" \\" older:2h`, "ark:/1/2 -- -: : :: a:b", `"\`, `-"" x`, "priority:<=-5 id:0199f3c2", "\u2003é:x\u00a0y", `"a"b c`, "held:YES by:,",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := query.Parse(text)
		if err != nil {
			var e *registry.QueryError
			if !errors.As(err, &e) || e.Position < 1 || e.Problem == "" {
				t.Fatalf("%q: %#v, want a QueryError with a place", text, err)
			}
			return
		}
		again, err := query.Parse(q.String())
		if err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("%q: told as %q and read as %+v (%v), want %+v", text, q, again, err, q)
		}
	})
}
