package item

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// Filter narrows a list by words of the query language and by flags that stand for its terms.
type Filter struct {
	terms []registry.Term // from flags
}

// flag adds a flag that stands for a term: a field's, or free text.
func (f *Filter) flag(cmd *cobra.Command, name, field, help string) {
	cmd.Flags().Func(name, help, func(value string) error {
		t := registry.Term{Field: field, Value: value}
		if _, err := query.Parse(t.String()); err != nil {
			var wrong *registry.QueryError
			if errors.As(err, &wrong) && len(wrong.Known) > 0 {
				return fmt.Errorf("%s; known values: %s", wrong.Problem, strings.Join(wrong.Known, ", "))
			}
			return err
		}
		f.terms = append(f.terms, t)
		return nil
	})
}

// Query parses the words of the command line and adds the terms of the flags.
func (f *Filter) Query(words []string) (registry.Query, error) {
	flags := registry.Query{Terms: slices.Clone(f.terms)}
	q, err := query.Parse(strings.TrimSpace(strings.Join(words, " ") + " " + flags.String()))
	if err != nil {
		return q, exit.Fix(exit.Usagef("%w", err), "see holdfast item list --help")
	}
	return q, nil
}

// QueryHelp returns the explanation of the query language and its fields.
func QueryHelp() string {
	var b strings.Builder
	b.WriteString(`QUERY is words that must all match: text in the name, the note or the beginning
of the id, and FIELD:VALUE. Commas separate alternative values. Quotes keep words
together. A minus sign excludes what the word matches; put -- before a QUERY that
begins with one.

    state:failed collection:demo error:timeout older:2h
    'name:"field notes"' -state:completed,cancelled

Fields:
`)
	for _, f := range query.Fields() {
		fmt.Fprintf(&b, "  %-22s %s\n", f.Name+":"+f.Example, f.Means)
	}
	return strings.TrimRight(b.String(), "\n")
}
