package object

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

func eventsCommand(a *cli.App) *cobra.Command {
	var limit int
	var premis bool
	var out string
	cmd := &cobra.Command{
		Use: "events ID", Short: "List an object's preservation events, oldest first, or write its PREMIS document", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if premis {
				return writePREMIS(cmd.Context(), a, c, args[0], out)
			}
			if out != "" {
				return exit.Usagef("--out needs --premis")
			}
			l := cli.Lister[registry.Premis]{None: "no events", Row: premisRow, Columns: []terminal.Column{
				{Name: "time"}, {Name: "version", Right: true}, {Name: "event"}, {Name: "outcome"}, {Name: "agent"}, {Name: "detail"},
			}}
			return l.Print(a, func(yield func(registry.Premis) error) (bool, error) {
				return cli.EachRow(cmd.Context(), limit, func(ctx context.Context, after string, limit int) (registry.Page[registry.Premis], error) {
					return c.PremisEvents(ctx, args[0], after, limit)
				}, yield)
			})
		},
	}
	cli.LimitFlag(cmd, &limit)
	cmd.Flags().BoolVar(&premis, "premis", false, "write object, versions, files, events and agents as a PREMIS 3 XML document")
	cmd.Flags().StringVar(&out, "out", "", "write the document to the new `FILE` (default standard output)")
	return a.ClientFlags(cmd)
}

func writePREMIS(ctx context.Context, a *cli.App, c *client.Client, id, out string) error {
	body, err := c.PREMIS(ctx, id)
	if err != nil {
		return err
	}
	defer body.Close()
	return writeWhole(a, out, func(w io.Writer) error {
		if _, err := io.Copy(w, body); err != nil {
			return fmt.Errorf("read the PREMIS document of %s: %w", id, err)
		}
		return nil
	})
}

func premisRow(e registry.Premis) []string {
	return []string{terminal.TimeText(e.At), strconv.Itoa(e.Version), e.Type, e.Outcome, e.Agent, e.Detail}
}
