package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func (a *app) feedCommand() *cobra.Command {
	return group("feed", "Have NSQ topics and webhooks told of events, see how far they are, and tell them again",
		a.feedListCommand(), a.feedShowCommand(), a.feedAddCommand(), a.feedRemoveCommand(), a.feedRewindCommand(), a.feedPauseCommand(),
		a.feedResumeCommand(), a.feedCredentialCommand())
}

func (a *app) feedListCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "list", Short: "List subscriptions and their progress", Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.Subscriptions(cmd.Context())
			if err != nil {
				return err
			}
			l := lister[registry.Subscription]{none: "no subscriptions", row: subscriptionRow, columns: []column{
				{name: "name"}, {name: "to", flex: true}, {name: "takes", flex: true}, {name: "cursor", right: true}, {name: "behind", right: true}, {name: "state", flex: true},
			}}
			return l.print(a, whole(all))
		},
	})
}

func subscriptionRow(s registry.Subscription) []string {
	return []string{s.Name, s.Target, filterText(s.Filter), strconv.FormatInt(s.Cursor, 10), registry.CountText(s.Behind), subscriptionState(s)}
}

// subscriptionState is how a subscription is, in a few words.
func subscriptionState(s registry.Subscription) string {
	switch {
	case s.Paused != nil:
		return "paused " + sinceText(s.Paused.At, s.Paused.Actor, s.Paused.Reason)
	case s.FailingSince != nil:
		return failingText(s)
	}
	return "ok"
}

// failingText says how long a subscription has been failing, and what waits.
func failingText(s registry.Subscription) string {
	text := fmt.Sprintf("failing since %s, %s", timeText(*s.FailingSince), plural(s.Tries, "try", "tries"))
	if s.BehindSince != nil {
		text += fmt.Sprintf(", %s behind since %s", plural(s.Behind, "event", "events"), timeText(*s.BehindSince))
	}
	return text + ": " + s.Error
}

// filterText says what a filter takes.
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

func (a *app) feedShowCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "show NAME", Short: "Show a subscription: its progress, and its last failure", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			s, err := c.Subscription(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printSubscription(s)
		},
	})
}

func (a *app) printSubscription(s registry.Subscription) error {
	if a.json {
		return a.printJSON(s)
	}
	var f facts
	f.add("subscription", s.Name)
	f.add("to", s.Target)
	f.add("takes", filterText(s.Filter))
	f.add("state", subscriptionState(s))
	if s.NextTry != nil {
		f.add("next try", timeText(*s.NextTry))
	}
	f.add("told up to event", strconv.FormatInt(s.Cursor, 10))
	if s.BehindSince != nil {
		f.add("behind", plural(s.Behind, "event", "events")+" of the whole feed, since "+timeText(*s.BehindSince))
	}
	told := plural(s.Told, "event", "events")
	if s.ToldAt != nil {
		told += ", the last " + timeText(*s.ToldAt)
	}
	f.add("told", told)
	if s.Rewinds > 0 {
		f.add("rewound", plural(s.Rewinds, "time", "times"))
	}
	f.add("forwarded by", s.Owner)
	f.add("made", timeText(s.CreatedAt)+" by "+s.CreatedBy)
	return f.write(a.out)
}

func (a *app) feedAddCommand() *cobra.Command {
	var r wire.SubscriptionRequest
	var from, keyFile string
	var actions, states []string
	cmd := &cobra.Command{
		Use: "add NAME --to URL|nsq:TOPIC", Short: "Add or change a subscription that forwards events to a webhook or an NSQ topic", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.Target == "" {
				return usage("say with --to who is told: https://HOST/..., or nsq:TOPIC")
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
			c, err := a.connect()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("signing-key-file") {
				if keyFile == "-" {
					keyFile = ""
				}
				if r.SigningKey, err = a.secret(keyFile); err != nil {
					return err
				}
			}
			return a.changedSubscription(cmd.Context(), func(ctx context.Context) (registry.Subscription, error) {
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
	return a.clientFlags(cmd)
}

// feedCursor reads a place in the feed: nil is its end.
func feedCursor(flag, text string) (*int64, error) {
	switch text {
	case "end":
		return nil, nil //nolint:nilnil // the end has no number of its own
	case "start":
		text = "0"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, &usageError{errors.New(flag + " must be start, end, or the number of an event")}
	}
	return &n, nil
}

// changedSubscription carries out an act and shows the subscription after it.
func (a *app) changedSubscription(ctx context.Context, change func(context.Context) (registry.Subscription, error)) error {
	s, err := change(ctx)
	if err != nil {
		return err
	}
	return a.printSubscription(s)
}

// onSubscription is a command that changes one subscription.
func (a *app) onSubscription(use, short string, change func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error)) *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: use, Short: short, Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			return a.changedSubscription(cmd.Context(), func(ctx context.Context) (registry.Subscription, error) { return change(ctx, c, args[0]) })
		},
	})
}

func (a *app) feedRemoveCommand() *cobra.Command {
	return a.clientFlags(&cobra.Command{
		Use: "remove NAME", Short: "Remove a subscription and its keys", Args: needs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.RemoveSubscription(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.note("removed: %s", args[0])
			return nil
		},
	})
}

func (a *app) feedRewindCommand() *cobra.Command {
	var to, reason string
	cmd := a.onSubscription("rewind NAME --to start|end|EVENT", "Tell again what came after an event, or pass over what is not told yet",
		func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error) {
			if to == "" {
				return registry.Subscription{}, usage("say with --to after which event it goes on: its number, start or end")
			}
			cursor, err := feedCursor("--to", to)
			if err != nil {
				return registry.Subscription{}, err
			}
			return c.RewindSubscription(ctx, name, wire.CursorRequest{Cursor: cursor, Reason: reason})
		})
	cmd.Flags().StringVar(&to, "to", "", "continue after the event with this number; 0 or start repeats everything, end skips what waits")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, recorded with the act")
	return cmd
}

func (a *app) feedPauseCommand() *cobra.Command {
	var reason string
	cmd := a.onSubscription("pause NAME --reason TEXT", "Send nothing more for the time being; events wait",
		func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error) {
			return c.PauseSubscription(ctx, name, reason)
		})
	reasonFlag(cmd, &reason)
	return cmd
}

func (a *app) feedResumeCommand() *cobra.Command {
	return a.onSubscription("resume NAME", "Go on after a pause; one that is failing is tried at once",
		func(ctx context.Context, c *client.Client, name string) (registry.Subscription, error) {
			return c.ResumeSubscription(ctx, name)
		})
}

func (a *app) feedCredentialCommand() *cobra.Command {
	return a.credentialsOf("Set, list and remove what a subscription shows its receiver, and the keys that it signs with", credentialOwner{
		noun: "subscription", put: (*client.Client).PutSubscriptionCredential, list: (*client.Client).SubscriptionCredentials,
		remove: (*client.Client).RemoveSubscriptionCredential,
		set: &cobra.Command{
			Use:   "set NAME ORIGIN --basic USER | --bearer | --signing",
			Short: "Set a subscription's credential for its receiver at https://HOST[:PORT], or its key signing:NAME",
		},
	})
}
