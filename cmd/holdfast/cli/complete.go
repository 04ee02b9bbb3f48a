package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/client"
)

const (
	completeWithin = time.Second // a shell waits for completions, so they come soon or not at all
	mostCompleted  = 50
)

// values lists what a word may be that begins with start, each value with what it is after a tab. An
// error means none.
type values func(ctx context.Context, c *client.Client, start string) ([]string, error)

// argumentValues says what the arguments of a command are: of the first row whose command has the
// beginning of its path, and whose word its usage has.
var argumentValues = []struct {
	command, word string
	values        values
}{
	{"batch", "ID", itemsOf(registry.Batch)},
	{"item", "ID", itemsOf("")},
	{"watch", "ID", itemsOf("")},
	{"graph", "ID", itemsOf("")},
	{"task", "ID", itemsOf(registry.Task)},
	{"object", "ID", objects},
	{"collection", "NAME", collections},
	{"schedule", "NAME", schedules},
	{"feed", "NAME", subscriptions},
	{"", "QUERY", terms},
}

// flagValues says what the values of flags are, by the flag's name.
var flagValues = map[string]values{
	"collection": collections, "stage": named(registry.Stages()), "from": named(registry.Stages()), "match": terms,
	"status": named(registry.Statuses()), "role": named(registry.Roles()), "scope": named(registry.HoldScopes()),
	"corrects": failed,
}

// keyValues says what the value of --key is, by that of --scope.
var keyValues = map[registry.HoldScope]values{
	registry.HoldStage: named(registry.Stages()), registry.HoldCollection: collections, registry.HoldBatch: itemsOf(registry.Batch), registry.HoldItem: itemsOf(""),
}

// complete lets shells complete the arguments and flags of all commands below cmd that speak to a
// service. Where a command has a completion of its own, that stays.
func (a *App) complete(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		a.complete(c)
	}
	if cmd.Flags().Lookup("dir") == nil || cmd.HasSubCommands() {
		return
	}
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	words := strings.FieldsFunc(cmd.Use, func(r rune) bool { return strings.ContainsRune(" []|", r) })
	for _, row := range argumentValues {
		many := slices.Contains(words, row.word+"...") || row.word == "QUERY"
		if cmd.ValidArgs == nil && cmd.ValidArgsFunction == nil && strings.HasPrefix(path+" ", row.command) && (many || slices.Contains(words, row.word)) {
			cmd.ValidArgsFunction = a.completed(row.values, many)
		}
	}
	for name, v := range flagValues {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, a.completed(v, true)) // an error: the command has its own
		}
	}
	if cmd.Flags().Lookup("key") != nil && cmd.Flags().Lookup("scope") != nil {
		_ = cmd.RegisterFlagCompletionFunc("key", a.key) // it has no other
	}
}

// key lets shells complete --key by what --scope says.
func (a *App) key(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	v := keyValues[registry.HoldScope(cmd.Flag("scope").Value.String())]
	if v == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completed(v, true)(cmd, args, start)
}

// completed asks the running service for values. While it does not answer there are none.
func (a *App) completed(v values, many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		a.Err, a.ctx = io.Discard, ctx
		c, err := a.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		all, _ := v(ctx, c, start)
		all = slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, start) })
		if len(all) > 0 && !slices.ContainsFunc(all, func(s string) bool { return !strings.HasSuffix(s, ":") }) {
			directive |= cobra.ShellCompDirectiveNoSpace // the value of a field follows
		}
		return all[:min(len(all), mostCompleted)], directive
	}
}

// named returns names that no service is asked for.
func named[T ~string](all []T) values {
	names := make([]string, len(all))
	for i, name := range all {
		names[i] = string(name)
	}
	return func(context.Context, *client.Client, string) ([]string, error) { return names, nil }
}

// itemsOf returns the ids of items of an action, or of all, the newest first.
func itemsOf(action registry.Action) values {
	return func(ctx context.Context, c *client.Client, start string) ([]string, error) {
		q := registry.ItemQuery{Action: action, Limit: mostCompleted}
		if registry.IDStart(start) {
			q.Match = registry.Query{Terms: []registry.Term{{Field: "id", Value: start}}}
		}
		p, err := c.Items(ctx, q)
		return described(p.Rows, func(it registry.WorkItem) (string, string) { return it.ID, string(it.State) + " " + it.Name }), err
	}
}

// failed returns the ids of items that failed, the newest first.
func failed(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	p, err := c.Items(ctx, registry.ItemQuery{Status: registry.Failed, Limit: mostCompleted})
	return described(p.Rows, func(it registry.WorkItem) (string, string) { return it.ID, it.Heading() }), err
}

func objects(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	p, err := c.Objects(ctx, registry.ObjectQuery{Limit: mostCompleted})
	return described(p.Rows, func(o registry.Object) (string, string) { return o.ID, o.Title }), err
}

func collections(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	all, err := c.Collections(ctx)
	return described(all, func(c registry.Collection) (string, string) { return c.Mnemonic, "" }), err
}

func schedules(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	all, err := c.Schedules(ctx)
	return described(all, func(s registry.Schedule) (string, string) { return s.Name, s.Cron }), err
}

func subscriptions(ctx context.Context, c *client.Client, _ string) ([]string, error) {
	all, err := c.Subscriptions(ctx)
	return described(all, func(s registry.Subscription) (string, string) { return s.Name, "" }), err
}

// terms returns the fields of a query, and after a field that has few values, these.
func terms(ctx context.Context, c *client.Client, start string) (all []string, err error) {
	field, _, valued := strings.Cut(start, ":")
	if !valued {
		for _, f := range query.Fields() {
			all = append(all, f.Name+":")
		}
		return all, nil
	}
	found := query.Known(field)
	if field == "collection" {
		found, err = collections(ctx, c, "")
	}
	for _, value := range found {
		all = append(all, field+":"+value)
	}
	return all, err
}

// described returns a line for each row: its value, and after a tab what it is.
func described[T any](all []T, of func(T) (value, what string)) []string {
	lines := make([]string, len(all))
	for i, row := range all {
		value, what := of(row)
		lines[i] = value
		if what = terminal.Clean(strings.TrimSpace(what)); what != "" {
			lines[i] += "\t" + what
		}
	}
	return lines
}
