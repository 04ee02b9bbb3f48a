// Package feed has the command `holdfast feed`: subscriptions, which forward events to webhooks and
// NSQ topics, with their progress and credentials. Package events has the commands that read
// events.
package feed

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/credential"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// Command returns the command `holdfast feed`.
func Command(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("feed", "Manage subscriptions: forward events to webhooks and NSQ topics",
		listCommand(a), showCommand(a), addCommand(a), removeCommand(a), rewindCommand(a), pauseCommand(a),
		resumeCommand(a), credentialCommand(a)))
}

func listCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List subscriptions and their progress", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Subscriptions(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Subscription]{None: "no subscriptions", Row: subscriptionRow, Columns: []terminal.Column{
				{Name: "name"}, {Name: "to", Flex: true}, {Name: "filter", Flex: true}, {Name: "cursor", Right: true}, {Name: "behind", Right: true, Meaning: terminal.Counted(terminal.Waiting)}, {Name: "state", Flex: true, Meaning: terminal.ConditionMeaning},
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func subscriptionRow(s registry.Subscription) []string {
	return []string{s.Name, s.Target, filterText(s.Filter), strconv.FormatInt(s.Cursor, 10), registry.CountText(s.Behind), subscriptionState(s)}
}

// subscriptionState returns a subscription's condition in a few words.
func subscriptionState(s registry.Subscription) string {
	switch {
	case s.Paused != nil:
		return "paused " + terminal.SinceText(s.Paused.At, s.Paused.Actor, s.Paused.Reason)
	case s.FailingSince != nil:
		return FailingText(s)
	}
	return "ok"
}

// FailingText returns since when a subscription fails, how many events wait, and the error.
func FailingText(s registry.Subscription) string {
	text := fmt.Sprintf("failing since %s, %s", terminal.TimeText(*s.FailingSince), terminal.Plural(s.Tries, "try", "tries"))
	if s.BehindSince != nil {
		text += fmt.Sprintf(", %s behind since %s", terminal.Plural(s.Behind, "event", "events"), terminal.TimeText(*s.BehindSince))
	}
	return text + ": " + s.Error
}

// filterText returns a filter in the words of its flags.
func filterText(f registry.FeedFilter) string {
	var words []string
	add := func(name string, values []string) {
		if len(values) > 0 {
			words = append(words, name+":"+strings.Join(values, ","))
		}
	}
	add("types", f.Types)
	add("collections", f.Collections)
	add("actions", texts(f.Actions))
	add("states", texts(f.States))
	if words == nil {
		return "everything"
	}
	return strings.Join(words, " ")
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func showCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "show NAME", Short: "Show a subscription, its progress and its last failure", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			s, err := c.Subscription(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printSubscription(a, s)
		},
	})
}

func printSubscription(a *cli.App, s registry.Subscription) error {
	if a.JSON {
		return a.PrintJSON(s)
	}
	var f terminal.Facts
	f.Add("subscription", s.Name)
	f.Add("to", s.Target)
	f.Add("filter", filterText(s.Filter))
	f.AddAs(terminal.ConditionMeaning(subscriptionState(s)), "state", subscriptionState(s))
	if s.NextTry != nil {
		f.Add("next try", terminal.TimeText(*s.NextTry))
	}
	f.Add("sent up to event", strconv.FormatInt(s.Cursor, 10))
	if s.BehindSince != nil {
		f.Add("behind", terminal.Plural(s.Behind, "event", "events")+" of the whole feed, since "+terminal.TimeText(*s.BehindSince))
	}
	sent := terminal.Plural(s.Told, "event", "events")
	if s.ToldAt != nil {
		sent += ", the last " + terminal.TimeText(*s.ToldAt)
	}
	f.Add("sent", sent)
	if s.Rewinds > 0 {
		f.Add("rewound", terminal.Plural(s.Rewinds, "time", "times"))
	}
	f.Add("forwarded by", s.Owner)
	f.Add("made", terminal.TimeText(s.CreatedAt)+" by "+s.CreatedBy)
	return f.Write(a.Out)
}

func addCommand(a *cli.App) *cobra.Command {
	var r wire.SubscriptionRequest
	var from, keyFile string
	var actions, states []string
	cmd := &cobra.Command{
		Use: "add NAME --to URL|nsq:TOPIC", Short: "Add or change a subscription that forwards events to a webhook or an NSQ topic", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.Target == "" {
				return exit.Usagef("--to is missing: https://HOST/... or nsq:TOPIC")
			}
			if r.From, err = feedCursor("--from", from); err != nil {
				return err
			}
			for _, action := range actions {
				r.Filter.Actions = append(r.Filter.Actions, registry.Action(action))
			}
			for _, state := range states {
				r.Filter.States = append(r.Filter.States, registry.State(state))
			}
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("signing-key-file") {
				if keyFile == "-" {
					keyFile = ""
				}
				if r.SigningKey, err = a.ReadSecret(keyFile); err != nil {
					return err
				}
			}
			return changedSubscription(cmd.Context(), a, func(ctx context.Context) (registry.Subscription, error) {
				return c.PutSubscription(ctx, args[0], r)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Target, "to", "", "the receiver: https://HOST/... (or http://), or nsq:TOPIC")
	flags.StringSliceVar(&r.Filter.Types, "types", nil, "only events of these types: submit, advance, complete, fail, lose, requeue, ...")
	flags.StringSliceVar(&r.Filter.Collections, "collections", nil, "only events of items in these collections")
	flags.StringSliceVar(&actions, "actions", nil, "only transitions of items of these actions: ingest (jobs), batch, fixity, restore, delete, ...")
	flags.StringSliceVar(&states, "states", nil, "only transitions to these states: completed, failed, downloading, ...")
	flags.StringVar(&from, "from", "end", "where a new subscription begins: start, end, or after the event with this number")
	flags.StringVar(&keyFile, "signing-key-file", "", "the file with the key that signs requests, whsec_ and base64; - is standard input")
	return a.ClientFlags(cmd)
}

// feedCursor parses a place in the feed. It returns nil for its end.
func feedCursor(flag, text string) (*int64, error) {
	switch text {
	case "end":
		return nil, nil //nolint:nilnil // the end has no number of its own
	case "start":
		text = "0"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, exit.Usagef("%s must be start, end, or the number of an event", flag)
	}
	return &n, nil
}

// changedSubscription changes a subscription and prints it.
func changedSubscription(ctx context.Context, a *cli.App, change func(context.Context) (registry.Subscription, error)) error {
	s, err := change(ctx)
	if err != nil {
		return err
	}
	return printSubscription(a, s)
}

// onSubscription returns a command that changes one subscription.
func onSubscription(a *cli.App, use, short string, change func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error)) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: use, Short: short, Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			return changedSubscription(cmd.Context(), a, func(ctx context.Context) (registry.Subscription, error) { return change(ctx, c, args[0]) })
		},
	})
}

func removeCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "remove NAME", Short: "Remove a subscription and its keys", Args: cli.Needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if err := c.RemoveSubscription(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.Note("removed: %s", args[0])
			return nil
		},
	})
}

func rewindCommand(a *cli.App) *cobra.Command {
	var to, reason string
	cmd := onSubscription(a, "rewind NAME --to start|end|EVENT", "Move the cursor: repeat the events after an event, or skip waiting events",
		func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error) {
			if to == "" {
				return registry.Subscription{}, exit.Usagef("--to is missing: start, end, or the number of an event")
			}
			cursor, err := feedCursor("--to", to)
			if err != nil {
				return registry.Subscription{}, err
			}
			return c.RewindSubscription(ctx, name, wire.CursorRequest{Cursor: cursor, Reason: reason})
		})
	cmd.Flags().StringVar(&to, "to", "", "continue after the event with this number; 0 or start repeats everything, end skips waiting events")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	return cmd
}

func pauseCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := onSubscription(a, "pause NAME --reason TEXT", "Pause a subscription; its events wait",
		func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error) {
			return c.PauseSubscription(ctx, name, reason)
		})
	cli.ReasonFlag(cmd, &reason)
	return cmd
}

func resumeCommand(a *cli.App) *cobra.Command {
	return onSubscription(a, "resume NAME", "Resume a paused subscription, or retry a failing one at once",
		func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error) {
			return c.ResumeSubscription(ctx, name)
		})
}

func credentialCommand(a *cli.App) *cobra.Command {
	return credential.Commands(a, "Manage a subscription's credentials and signing keys", credential.Owner{
		Noun: "subscription", Put: (*client.Client).PutSubscriptionCredential, List: (*client.Client).SubscriptionCredentials,
		Remove: (*client.Client).RemoveSubscriptionCredential,
		Set: &cobra.Command{
			Use:   "set NAME ORIGIN --basic USER | --bearer | --signing",
			Short: "Set a subscription's credential for its receiver at https://HOST[:PORT], or its key signing:NAME",
		},
	})
}
