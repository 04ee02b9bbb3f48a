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

// ReasonFlag adds --reason to a command that makes others wait.
func ReasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "the reason, shown to people who wait")
}

// IDs returns the whole ids of a command's arguments; - stands for the words on standard input.
// With an action, only items of that action count. An unknown or ambiguous id is an error, and no
// ids are returned.
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

// TakesIDs lets the arguments of a command be shortened ids; with an action, of items of that
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

// mostCandidates limits the items that the error of an ambiguous id lists.
const mostCandidates = 10

// WholeID returns the only id that begins with text; with an action, among items of that action. It
// returns whole ids and other text unchanged, for the service to judge. The error for an ambiguous
// id lists the candidates.
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
		return "", exit.Fix(fmt.Errorf("no %s has an id that begins with %s: %w", what, text, registry.ErrNotFound), "`"+a.CommandLine(list)+"` lists them")
	}
	var b strings.Builder
	for i, it := range p.Rows {
		if i == mostCandidates {
			b.WriteString("\nand others")
			break
		}
		fmt.Fprintf(&b, "\n%s  %s  %s", it.ID, it.State, terminal.Clean(it.Name))
	}
	return "", exit.Usagef("several ids begin with %s; give more characters of one of these:%s", text, b.String())
}

// looksLikeID reports whether text may be the beginning of an id.
func looksLikeID(text string) bool {
	const digits, least = "0123456789abcdefABCDEF-", 3
	return len(text) >= least && len(text) < terminal.IDLength && strings.Trim(text, digits) == "" && strings.ContainsAny(text, "0123456789")
}
