package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// ReasonFlag adds --reason to a command that keeps others waiting; they see the reason.
func ReasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "the reason, shown to those who wait")
}

// IDs returns the whole ids that the arguments of a command name; - stands for the ids on standard
// input, one a word. With an action, only items of that action count. An id that no item has, or
// that begins those of several, is an error, and no ids are returned.
func (a *App) IDs(ctx context.Context, action registry.Action, args []string) ([]string, error) {
	var ids []string
	for _, arg := range args {
		if arg != "-" {
			ids = append(ids, arg)
			continue
		}
		words := bufio.NewScanner(a.In)
		words.Split(bufio.ScanWords)
		for words.Scan() {
			ids = append(ids, words.Text())
		}
		if err := words.Err(); err != nil {
			return nil, fmt.Errorf("read ids: %w", err)
		}
	}
	switch {
	case len(ids) == 0:
		return nil, exit.Usagef("no ids were given")
	case slices.Contains(ids, ""):
		return nil, exit.Usagef("an id is empty")
	}
	for i, id := range ids {
		whole, err := a.WholeID(ctx, action, id)
		if err != nil {
			return nil, err
		}
		ids[i] = whole
	}
	return ids, nil
}

// TakesIDs lets the arguments of a command be beginnings of ids; with an action, of items of that
// action. It returns cmd.
func (a *App) TakesIDs(action registry.Action, cmd *cobra.Command) *cobra.Command {
	do := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = slices.Clone(args)
		for i, arg := range args {
			whole, err := a.WholeID(cmd.Context(), action, arg)
			if err != nil {
				return err
			}
			args[i] = whole
		}
		return do(cmd, args)
	}
	return cmd
}

// mostCandidates is how many items the error of an ambiguous id names.
const mostCandidates = 10

// WholeID returns the one id that begins with text; with an action, among items of that action. It
// returns whole ids, and text that is no id, unchanged: the service says what is wrong with them.
// The error for several lists them.
func (a *App) WholeID(ctx context.Context, action registry.Action, text string) (string, error) {
	if len(text) == terminal.IDLength || !looksLikeID(text) {
		return text, nil
	}
	if !registry.IDStart(text) {
		return "", exit.Fix(exit.Usagef("%s is too short for an id", text), "give its first 8 characters or more")
	}
	c, err := a.Connect()
	if err != nil {
		return "", err
	}
	p, err := c.Items(ctx, registry.ItemQuery{
		Action: action, Limit: mostCandidates + 1, Match: registry.Query{Terms: []registry.Term{{Field: "id", Value: text}}},
	})
	switch {
	case err != nil:
		return "", err
	case len(p.Rows) == 1:
		return p.Rows[0].ID, nil
	case len(p.Rows) == 0:
		what, list := "item", "item list"
		if action == registry.Batch {
			what, list = "batch", "batch list"
		}
		return "", exit.Fix(fmt.Errorf("no %s has an id that begins with %s: %w", what, text, registry.ErrNotFound), "`"+a.CommandLine(list)+"` shows what there is")
	}
	var b strings.Builder
	for i, it := range p.Rows {
		if i == mostCandidates {
			b.WriteString("\nand others")
			break
		}
		fmt.Fprintf(&b, "\n%s  %s  %s", it.ID, it.State, terminal.Clean(it.Name))
	}
	return "", exit.Usagef("%s begins the ids of several; give more of the one you mean:%s", text, b.String())
}

// looksLikeID says that text may be the beginning of an id that somebody typed.
func looksLikeID(text string) bool {
	const digits, least = "0123456789abcdefABCDEF-", 3
	return len(text) >= least && len(text) < terminal.IDLength && strings.Trim(text, digits) == "" && strings.ContainsAny(text, "0123456789")
}
