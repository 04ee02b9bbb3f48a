package task

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
)

// drawnNodes is the size up to which a graph is drawn whole.
const drawnNodes = 200

func graphCommand(a *cli.App) *cobra.Command {
	most, dot := drawnNodes, false
	cmd := &cobra.Command{
		Use: "graph ID", Short: "Show a graph, or what an item waits for, as a tree", Args: cli.Needs("ID"),
		Example: "  holdfast task graph 01a1ff7e-970e-7b87-bc77-ce185e182091 --dot | dot -Tsvg > graph.svg",
		RunE: func(cmd *cobra.Command, args []string) error {
			if dot && a.JSON {
				return exit.Usagef("--dot and --json exclude each other")
			}
			v, err := viewOf(cmd.Context(), a, args[0])
			switch {
			case err != nil:
				return err
			case a.JSON:
				return a.PrintJSON(v)
			case dot:
				return v.WriteDOT(a.Out, time.Now())
			}
			return v.WriteTree(a.Out, graphview.Text{Most: most, Now: time.Now(), Clean: terminal.Clean})
		},
	}
	cmd.Flags().BoolVar(&dot, "dot", false, "print the graph in the language of Graphviz, with a legend")
	cmd.Flags().IntVar(&most, "limit", drawnNodes, "sum up a graph of more than `N` nodes by level")
	return a.ClientFlags(cmd)
}

// viewOf reads the graph with an id or, if there is none, what is around the item with that id.
func viewOf(ctx context.Context, a *cli.App, id string) (*graphview.View, error) {
	c, err := a.Connect()
	if err != nil {
		return nil, err
	}
	v, err := graphview.OfGraph(ctx, c, id)
	if !errors.Is(err, registry.ErrNotFound) {
		return v, err
	}
	if id, err = a.WholeID(ctx, "", id); err != nil {
		return nil, err
	}
	return graphview.OfItem(ctx, c, id)
}
