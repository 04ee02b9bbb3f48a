package account

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
)

// LoginCommand returns the command `holdfast login`.
func LoginCommand(a *cli.App) *cobra.Command {
	return cli.WithHelp(helpTexts, a.ClientFlags(&cobra.Command{
		Use: "login", Short: "Print a link that signs a browser in to the pages, once", Args: cli.Needs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := a.Service()
			if err != nil {
				return err
			}
			c, err := a.ClientOf(at)
			if err != nil {
				return err
			}
			defer c.Close()
			made, err := c.MakeSignInLink(cmd.Context())
			if err != nil {
				return err
			}
			link := strings.TrimSuffix(at.URL, "/") + made.Path
			if a.JSON {
				return a.PrintJSON(signInLink{link, made.ExpiresAt})
			}
			_, err = fmt.Fprintln(a.Out, link)
			return err
		},
	}))
}

// signInLink is the output of `login --json`.
type signInLink struct {
	Link      string    `json:"link"`
	ExpiresAt time.Time `json:"expires_at"`
}
