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

// Filter narrows a list: by words of the query language, and by flags for those who prefer them.
type Filter struct {
	terms []registry.Term // of the flags
}

// flag adds a flag that is a term of a field, or free text.
func (f *Filter) flag(cmd *cobra.Command, name, field, help string) {
	cmd.Flags().Func(name, help, func(value string) error {
		t := registry.Term{Field: field, Value: value}
		if _, err := query.Parse(t.String()); err != nil {
			var wrong *registry.QueryError
			if errors.As(err, &wrong) && len(wrong.Known) > 0 {
				return fmt.Errorf("%s; known are %s", wrong.Problem, strings.Join(wrong.Known, ", "))
			}
			return err
		}
		f.terms = append(f.terms, t)
		return nil
	})
}

// Query reads the words of the command line together with the flags.
func (f *Filter) Query(words []string) (registry.Query, error) {
	flags := registry.Query{Terms: slices.Clone(f.terms)}
	q, err := query.Parse(strings.TrimSpace(strings.Join(words, " ") + " " + flags.String()))
	if err != nil {
		return q, exit.Fix(exit.Usagef("%w", err), "see holdfast item list --help")
	}
	return q, nil
}

// QueryHelp explains the query language.
func QueryHelp() string {
	var b strings.Builder
	b.WriteString(`QUERY is words, all of which must match: text in the name or the note, or at the
beginning of the id, and FIELD:VALUE. A minus sign in front of a word excludes
what matches it (a QUERY that begins with one stands behind --), quotes keep
spaces together, commas separate values of which one must match.

    state:failed collection:demo error:timeout older:2h
    'name:"field notes"' -state:completed,cancelled

Fields:
`)
	for _, f := range query.Fields() {
		fmt.Fprintf(&b, "  %-22s %s\n", f.Name+":"+f.Example, f.Means)
	}
	return strings.TrimRight(b.String(), "\n")
}
