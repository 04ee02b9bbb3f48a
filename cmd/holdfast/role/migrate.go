package role

import (
	"context"
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

// migration is the output of `migrate --json`.
type migration struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func migrate(ctx context.Context, a *cli.App, database string) error {
	c, err := config.Load(ctx, config.Default())
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
	if err != nil {
		return err
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
