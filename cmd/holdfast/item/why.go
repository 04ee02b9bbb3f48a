package item

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

func whyCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "why ID", Short: "Say why an item is waiting", Args: cli.Needs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			w, err := c.Why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(w)
			}
			var f terminal.Facts
			f.Add("item", w.ItemID)
			f.Add("reason", string(w.Reason))
			f.Add("why", w.Sentence)
			f.Add("by", w.Actor)
			f.Add("since", terminal.TimeText(w.Since))
			f.Add("what helps", strings.TrimSpace(w.Act))
			if w.Reason == registry.ReasonHeld {
				f.Add("see", a.CommandLine("hold list"))
			}
			return f.Write(a.Out)
		},
	}
	return a.ClientFlags(a.TakesIDs("", cmd))
}
