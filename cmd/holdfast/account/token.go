// Package account has the commands token, session and login. The secret of a token is printed once,
// when the token is made. The first token of a Registry is made in its database.
package account

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/account"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

//go:embed help/*.txt
var helpTexts embed.FS

// TokenCommand returns the command `holdfast token`.
func TokenCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, cli.Group("token", "Make, list and revoke tokens of people and programs",
		tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a)))
}

func tokenCreateCommand(a *cli.App) *cobra.Command {
	var r wire.TokenRequest
	var expires, database string
	var stages []string
	var again bool
	cmd := &cobra.Command{
		Use: "create --name NAME --role ROLE", Short: "Create a token; its secret is printed only once", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := expiry(expires, time.Now())
			if err != nil {
				return exit.Usagef("%w", err)
			}
			r.ExpiresAt = at
			for _, s := range stages {
				r.Stages = append(r.Stages, registry.Stage(s))
			}
			if slices.Equal(stages, []string{everyStage}) {
				r.Stages = registry.Stages()
			}
			if cmd.Flags().Changed("database") {
				return createTokenIn(cmd.Context(), a, database, r, again)
			}
			return createToken(cmd.Context(), a, r, again)
		},
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "the holder; recorded with every act, and never reused")
	cmd.Flags().BoolVar(&again, "again", false, "if the name was used before, take the first free one of NAME-2, NAME-3 ...")
	cmd.Flags().StringVar(&r.Role, "role", "", "depositor, viewer, operator, admin or worker")
	cmd.Flags().StringSliceVar(&r.Collections, "collection", nil, "depositor: a collection that the token may use; repeatable")
	cmd.Flags().StringSliceVar(&stages, "stage", nil, "worker: a `STAGE` that the token may serve: download, run:FUNCTION, step:NAMESPACE ...; comma-separated, repeatable; all for every stage")
	cmd.Flags().StringVar(&expires, "expires", "", "when it expires: a span (12h, 90d) or a time (2027-01-31T00:00:00Z) (default never)")
	cmd.Flags().StringVar(&database, "database", "", "make it in the database itself: sqlite:PATH or postgres://... (without a value HOLDFAST_DATABASE_URL)")
	cmd.Flags().Lookup("database").NoOptDefVal = configured
	return a.ClientFlags(cmd)
}

// everyStage is the value of --stage for all stages.
const everyStage = "all"

// configured is the value of --database without an address.
const configured = "HOLDFAST_DATABASE_URL"

// createTokenIn makes a token in the database, without a Registry.
func createTokenIn(ctx context.Context, a *cli.App, database string, r wire.TokenRequest, again bool) (err error) {
	if database == configured {
		c, err := a.Settings(ctx, config.Default(), config.DatabaseNeeds...)
		if err != nil {
			return err
		}
		if database = c.DatabaseURL; database == "" {
			return exit.Usagef("no database: set HOLDFAST_DATABASE_URL or give its address by --database=ADDRESS")
		}
	}
	s, closeAll, err := node.OpenDatabase(ctx, database, slog.New(slog.DiscardHandler))
	if errors.Is(err, node.ErrInUse) {
		return exit.Fix(err, "stop the Registry that uses it, or make the token through it with an admin's token")
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	return makeToken(a, r, again, func(r wire.TokenRequest) (wire.TokenResponse, error) {
		made, err := account.MakeToken(ctx, s, r, signin.NewSecret(), "holdfast token create")
		if errors.Is(err, registry.ErrNameTaken) {
			err = exit.Fix(err, nameTakenAdvice)
		}
		return made, err
	})
}

const nameTakenAdvice = "give another name, or add --again to append a number"

// mostTokens limits the numbers that --again tries.
const mostTokens = 1000

// makeToken makes a token and prints its secret. If the name is taken, again appends the first free
// number.
func makeToken(a *cli.App, r wire.TokenRequest, again bool, makeOne func(wire.TokenRequest) (wire.TokenResponse, error)) error {
	made, err := makeOne(r)
	name := r.Name
	for n := 2; again && isNameTaken(err) && n <= mostTokens; n++ {
		r.Name = name + "-" + strconv.Itoa(n)
		made, err = makeOne(r)
	}
	if err != nil {
		return err
	}
	if err := printToken(a, made); err != nil || made.Token.Name == strings.TrimSpace(name) {
		return err
	}
	a.Note("%s has earlier tokens, which stay valid; revoke the unused ones: %s", terminal.Clean(name), a.CommandLine("token list"))
	return nil
}

// isNameTaken reports whether err, of the database or the Registry, says that the name is taken.
func isNameTaken(err error) bool {
	var p *wire.Problem
	return errors.Is(err, registry.ErrNameTaken) || errors.As(err, &p) && p.Code == wire.CodeNameTaken
}

// expiry parses --expires. It returns nil for "".
func expiry(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // never
	}
	at, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return &at, nil
	}
	var span time.Duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		const most = 36_500
		if n, err = strconv.Atoi(days); err == nil && n > most {
			err = errors.New("too many days")
		}
		span = time.Duration(n) * 24 * time.Hour
	} else {
		span, err = time.ParseDuration(text)
	}
	if err != nil || span <= 0 {
		return nil, fmt.Errorf("--expires %q is neither a span ahead (12h, 90d) nor a time (2027-01-31T00:00:00Z)", text)
	}
	at = now.Add(span).UTC()
	return &at, nil
}

func createToken(ctx context.Context, a *cli.App, r wire.TokenRequest, again bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	return makeToken(a, r, again, func(r wire.TokenRequest) (wire.TokenResponse, error) { return c.CreateToken(ctx, r) })
}

func printToken(a *cli.App, made wire.TokenResponse) error {
	if a.JSON {
		return a.PrintJSON(made)
	}
	// Standard output has the secret only, for scripts.
	if _, err := fmt.Fprintln(a.Out, made.Secret); err != nil {
		return err
	}
	a.Note("token %s (%s) for %s; keep the printed secret: it is not shown again", made.Token.ID, made.Token.Role, terminal.Clean(made.Token.Name))
	return nil
}

func tokenListCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "list", Short: "List tokens, oldest first, including revoked ones", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			all, err := c.Tokens(cmd.Context())
			if err != nil {
				return err
			}
			l := cli.Lister[registry.Token]{None: "no tokens", Row: tokenRow, Columns: []terminal.Column{
				{Name: "id"}, {Name: "role"}, {Name: "state", Meaning: terminal.ConditionMeaning}, {Name: "created", Spare: 2}, {Name: "by", Flex: true, Spare: 1}, {Name: "last used", Spare: 3}, {Name: "good for", Flex: true}, {Name: "name", Flex: true},
			}}
			return l.Print(a, cli.Whole(all))
		},
	})
}

func tokenRow(t registry.Token) []string {
	state := "good"
	switch {
	case t.RevokedAt != nil:
		state = "revoked " + terminal.TimeText(*t.RevokedAt)
	case !t.Good(time.Now()):
		state = "expired " + terminal.TimeText(*t.ExpiresAt)
	case t.ExpiresAt != nil:
		state = "until " + terminal.TimeText(*t.ExpiresAt)
	}
	used := "-"
	if t.UsedAt != nil {
		used = terminal.TimeText(*t.UsedAt)
	}
	return []string{t.ID, string(t.Role), state, terminal.TimeText(t.CreatedAt), cmp.Or(t.CreatedBy, "-"), used, goodFor(t), t.Name}
}

// goodFor lists the collections or stages of a token.
func goodFor(t registry.Token) string {
	switch {
	case t.Role == registry.RoleDepositor:
		return strings.Join(t.Collections, ", ")
	case t.Role == registry.RoleWorker && (len(t.Stages) == 0 || len(t.Stages) == len(registry.Stages())):
		return "every stage"
	case t.Role == registry.RoleWorker:
		stages := make([]string, len(t.Stages))
		for i, s := range t.Stages {
			stages[i] = string(s)
		}
		return strings.Join(stages, ", ")
	}
	return "all"
}

func tokenRevokeCommand(a *cli.App) *cobra.Command {
	return a.ClientFlags(&cobra.Command{
		Use: "revoke ID...", Short: "Revoke tokens", Args: cli.Needs("ID..."),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return revokeEach(cmd.Context(), a, ids, func(c *client.Client, ctx context.Context, id string) error { return c.RevokeToken(ctx, id) })
		},
	})
}
