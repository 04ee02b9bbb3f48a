package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
)

// The length of an id, and of the part of it that tables print where there is no room for all. That part is a moment to less
// than a microsecond, which one process gives to one id only; the rest is chance.
const (
	wholeID = 36
	shownID = 18
)

// mostCandidates is how many items are named that a short id could mean.
const mostCandidates = 10

// shortID is an id without its end.
func shortID(id string) string {
	if len(id) != wholeID || !registry.IDStart(id) {
		return id
	}
	return id[:shownID]
}

// takesIDs lets the arguments of a command be the beginnings of items' ids, of batches only when action says so.
func (a *app) takesIDs(action registry.Action, cmd *cobra.Command) *cobra.Command {
	do := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args = slices.Clone(args)
		for i, arg := range args {
			whole, err := a.wholeID(cmd.Context(), action, arg)
			if err != nil {
				return err
			}
			args[i] = whole
		}
		return do(cmd, args)
	}
	return cmd
}

// wholeID returns the one id that begins with text. Whole ids, and what is none, are returned as they are: the service says
// what is wrong with them. The error for several names them.
func (a *app) wholeID(ctx context.Context, action registry.Action, text string) (string, error) {
	if len(text) == wholeID || !looksLikeID(text) {
		return text, nil
	}
	if !registry.IDStart(text) {
		return "", fix(usage(fmt.Sprintf("%s is too short for an id", text)), "give its first 8 characters or more")
	}
	c, err := a.connect()
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
		return "", fix(fmt.Errorf("no %s has an id that begins with %s: %w", what, text, registry.ErrNotFound), "`"+a.commandLine(list)+"` shows what there is")
	}
	var b strings.Builder
	for i, it := range p.Rows {
		if i == mostCandidates {
			b.WriteString("\nand others")
			break
		}
		fmt.Fprintf(&b, "\n%s  %s  %s", it.ID, it.State, clean(it.Name))
	}
	return "", usage(fmt.Sprintf("%s begins the ids of several; give more of the one you mean:%s", text, b.String()))
}

// looksLikeID says that text may be the beginning of an id that somebody typed.
func looksLikeID(text string) bool {
	const digits, least = "0123456789abcdefABCDEF-", 3
	return len(text) >= least && len(text) < wholeID && strings.Trim(text, digits) == "" && strings.ContainsAny(text, "0123456789")
}
