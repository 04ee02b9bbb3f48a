package role

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// MigrateCommand returns the command `holdfast migrate`.
func MigrateCommand(a *cli.App) *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database's schema up to date",
		Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return migrate(cmd.Context(), a, database) },
	}
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON, one object a line")
	cmd.Flags().StringVar(&database, "database", "", "sqlite:PATH or postgres://... (default HOLDFAST_DATABASE_URL)")
	return cli.WithHelp(helpTexts, cmd)
}

const fixDatabase = "start it, make its folder, or correct its address, user or password"

// migration is the output of `migrate --json`.
type migration struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func migrate(ctx context.Context, a *cli.App, database string) error {
	given, what, needs := "--database", "the database "+config.WithoutPasswords(database), []string(nil)
	if database == "" {
		given, what, needs = "HOLDFAST_DATABASE_URL", "the database", config.DatabaseNeeds
	}
	c, err := a.Settings(ctx, config.Default(), needs...)
	if err != nil {
		return err
	}
	if database == "" {
		database = c.DatabaseURL
	}
	if database == "" {
		return exit.Usagef("no database: give --database or HOLDFAST_DATABASE_URL")
	}
	node.TightenDatabase(ctx, common(a, c).Log, database)
	from, to, err := sqldb.Migrate(ctx, database)
	if errors.As(err, new(*sqldb.SchemaError)) {
		return err // it says what to run
	} else if err != nil {
		return &node.NeedError{Setting: given, What: what, Fix: fixDatabase, Down: node.IsDown(err), Err: err}
	}
	if a.JSON {
		return a.PrintJSON(migration{From: from, To: to})
	}
	if from == to {
		_, err = fmt.Fprintf(a.Out, "schema is at version %d; nothing to do\n", to)
	} else {
		_, err = fmt.Fprintf(a.Out, "schema migrated from version %d to %d\n", from, to)
	}
	return err
}
