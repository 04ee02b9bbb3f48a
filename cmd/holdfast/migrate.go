package main

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
)

func (a *app) migrateCommand() *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database's schema up to date",
		Args: needs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.migrate(cmd.Context(), database) },
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON, one object a line")
	cmd.Flags().StringVar(&database, "database", "", "sqlite:PATH or postgres://... (default HOLDFAST_DATABASE_URL)")
	return cmd
}

// migration is what `migrate --json` prints.
type migration struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func (a *app) migrate(ctx context.Context, database string) error {
	c, err := config.Load(config.Default())
	if err != nil {
		return err
	}
	if database == "" {
		database = c.DatabaseURL
	}
	if database == "" {
		return usage("no database: give --database or HOLDFAST_DATABASE_URL")
	}
	node.TightenDatabase(ctx, a.common(c).Log, database)
	from, to, err := sqldb.Migrate(ctx, database)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(migration{From: from, To: to})
	}
	if from == to {
		_, err = fmt.Fprintf(a.out, "schema is at version %d; nothing to do\n", to)
	} else {
		_, err = fmt.Fprintf(a.out, "schema migrated from version %d to %d\n", from, to)
	}
	return err
}
